"""What leaves the store for other eyes has no secret in it that this process knows."""

from __future__ import annotations

import json

from support import CommandLine

SECRET = {"MY_API_TOKEN": "tokenvalue12345"}


def test_a_session_is_shown_and_exported_without_secrets_that_a_model_wrote(toolyard: CommandLine) -> None:
    settings = {"provider": "replay", "replay": "${env:CONFIG_DIR}/answers.jsonl"}
    toolyard.config("shell:session", "path:${env:BUILTIN_PLUGINS}/replay", **settings)
    call = {"id": "1", "name": "bash", "arguments": {"command": f": {SECRET['MY_API_TOKEN']}; echo ran"}}
    lines = ({"calls": [call]}, {"text": f"It is {SECRET['MY_API_TOKEN']}."})
    toolyard.file("answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    assert toolyard("chat", "-p", "go", env=SECRET).code == 0
    (row,) = toolyard("sessions", "list", "--json").out.splitlines()
    id = json.loads(row)["id"]
    forms = (["show", id], ["show", id, "--json"], ["replay", id], ["export", id], ["export", id, "--format", "atif"])
    for words in forms:
        ran = toolyard("sessions", *words, env=SECRET)
        assert ran.code == 0
        assert "echo ran" in ran.out
        assert "[redacted MY_API_TOKEN]" in ran.out
        assert SECRET["MY_API_TOKEN"] not in ran.out
