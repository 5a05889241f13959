"""Permissions: what the rules say of a command, and what a call does about it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import ClassVar

import pytest

from judged_workspace import lead_astray, make_workspace
from support import PATIENCE, need_backend
from toolyard.bash.syntax.parse import read_line
from toolyard.permissions.approval import ApprovalDesk
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.grants import GrantStore, default_grants_file
from toolyard.permissions.offers import derive_pattern
from toolyard.permissions.presets import ALLOWLIST, preset_rules
from toolyard.permissions.rules import Rule, RuleBook, RuleOrigin, parse_rule
from toolyard.permissions.verdict import Answer

pytestmark = pytest.mark.anyio
HERE = RuleOrigin(label="test")


def rules(**lists) -> list[Rule]:
    found = [parse_rule(value, decision, HERE) for decision, values in lists.items() for value in values]
    assert all(isinstance(rule, Rule) for rule in found), found
    return found


async def verdict(command, folder, wanted=None, **lists):
    where = CallSite(tool="bash", cwd=str(folder), workspace=str(folder))
    return await decide_line(command, RuleBook(rules(**lists)).reaching(wanted), where, wanted=wanted)


@pytest.mark.parametrize("tool", ["shell:command", "shell:session"])
@pytest.mark.parametrize(
    "command",
    [
        "sudo touch ran",
        "doas touch ran",
        "su -c 'touch ran'",
        "pkexec touch ran",
        "/usr/bin/sudo touch ran",
        "s\\udo touch ran",
        "touch ran && sudo true",
        "echo $(sudo touch ran)",
        "timeout 5 sudo touch ran",
        "env A=1 sudo touch ran",
        "echo x | xargs sudo touch ran",
        "find . -exec sudo touch ran \\;",
        "bash -c 'touch ran; sudo true'",
        "if true; then sudo touch ran; fi",
        "f() { sudo touch ran; }; f",
    ],
)
async def test_O05_other_rights_are_refused_wherever_they_would_be_used(yard, monkeypatch, tool, command):
    monkeypatch.chdir(yard.folder)
    async with yard.app(tool) as app:
        result = await app.call_tool(
            tool.replace("shell:session", "bash").replace("shell:command", "shell"), {"command": command}
        )
    assert result.failure == "denied"
    assert "refused" in result.text
    assert not (yard.folder / "ran").exists()


@pytest.mark.parametrize(
    "command", ["echo sudo", "echo 'sudo ls'", "printf '%s\\n' su", "ls su do", "echo x # sudo ls"]
)
async def test_O05_a_word_that_runs_nothing_is_not_refused(yard, command):
    async with yard.app("shell:command") as app:
        assert (await app.call_tool("shell", {"command": command})).ok


async def test_O05_no_answer_and_no_rule_makes_it_allowed(yard):
    config = yard.config("shell:command", permissions={"preset": "trusted", "allow": ["sudo **", "sudo true"]})
    async with yard.open(config, approver=ApprovalDesk()) as app:
        assert (await app.call_tool("shell", {"command": "sudo true"})).failure == "denied"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("ls -la /tmp", "ls **"),
        ("pwd", "pwd"),
        ("git status", "git status **"),
        ("git log --oneline -5", "git log **"),
        ("npm test", "npm test **"),
        ("docker compose ps", "docker compose ps"),
        ("kubectl get pods -n x", "kubectl get **"),
        ("cargo build --release", "cargo build **"),
        ("uv pip list --outdated", "uv pip list **"),
        ("./run.sh a b", "./run.sh **"),
        ("python3 script.py x", "python3 script.py x"),
        ("bash -c 'ls; pwd'", "bash -c 'ls; pwd'"),
        ("env A=1 ls", "env A=1 ls"),
        ("xargs rm", "xargs rm"),
        ("find . -exec cat {} +", "find . -exec cat '{}' +"),
        ("find . -name x", "find **"),
        ("timeout 5 ls -la", "timeout 5 ls -la"),
        ("rm -rf x", "rm -rf x"),
        ("git push origin main", "git push origin main"),
        ("git -C x status", "git -C x status"),
        ("grep 'a b' \"c d\"", "grep **"),
        ("echo 'it'\\''s'", "echo **"),
        ('cat "$x"', "cat **"),
        ('rm "$x"', None),
        ("$x y", None),
        ('python3 "$x"', None),
    ],
)
async def test_O06_always_derives_the_first_words_and_nothing_wider_than_the_text_for_what_runs_others(
    command, pattern
):
    (part,) = (part for part in read_line(command).commands[:1])
    assert derive_pattern(part) == pattern


@pytest.mark.parametrize(
    "command",
    [
        *("pip install requests", "pip3 install -r requirements.txt", "uv pip install x", "uv add x", "uv sync"),
        *("npm install left-pad", "npm i", "npm ci", "pnpm add x", "yarn add x", "yarn install", "bun add x"),
        *("cargo install ripgrep", "cargo add serde", "go install example.org/x@latest", "gem install rails"),
        *("brew install jq", "apt install jq", "apt-get install -y jq", "dnf install jq", "pacman -S jq", "apk add jq"),
        *("poetry add x", "bundle install", "composer require x/y", "conda install numpy", "rustup update"),
        *("npm publish", "twine upload dist/x", "cargo publish", "gem push x.gem", "uv publish", "poetry publish"),
        *("make test", "make -j4 all", "npm run build -- --watch", "pnpm run dev", "yarn run lint", "just build"),
        *("task lint", "tox -e py311", "nox -s tests", "cargo run --release", "docker build .", "docker run x"),
        *("rake db:migrate", "gradle build", "mvn package", "bazel test //x", "pre-commit run -a", "bun run dev"),
        *("uv run pytest -x", "poetry run pytest", "npx eslint .", "git pull origin main", "helm upgrade a b"),
    ],
)
async def test_E09_always_is_the_exact_text_for_what_installs_publishes_or_runs_one_of_several_targets(
    tmp_path, command
):
    asked = await verdict(command, tmp_path)
    assert asked.decision == "ask"
    assert [offer.rule for offer in asked.offers] == [{"command": command}]
    allow = [offer.rule for offer in asked.offers]
    assert (await verdict(command, tmp_path, allow=allow)).decision == "allow"
    assert (await verdict(f"{command} more", tmp_path, allow=allow)).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("lxc list", "incus list", "crictl ps", "ctr i ls", "buildah images", "minikube start", "virsh list"),
        *("skopeo copy a b", "rename a b f", "convert a b", "ffmpeg -i a b", "dune build", "rebar3 ct", "mix test"),
        *("flutter test", "vagrant up", "hadolint x", "some-tool --flag x", "git lfs pull", "git my-alias x"),
        *("dig example.org", "whois example.org", "gpg --list-keys", "ssh-add -l", "openssl version"),
        *("/usr/bin/lxc list", "/opt/x/run.sh a", "../run.sh a", "uv pip compile x", "gh pr merge 1", "renice 1 1"),
    ],
)
async def test_E09_always_is_the_exact_text_for_programs_and_commands_that_are_not_known(command):
    (part,) = read_line(command).commands
    assert derive_pattern(part) == command


async def test_E09_always_holds_in_the_workspace_where_it_was_answered_and_in_no_other(yard, tmp_path):
    class Always:
        async def approve(self, request, verdict):
            return Answer(allowed=True, reason="yes", scope="always", bound_to=request.fingerprint)

    config = yard.config("shell:command", permissions={"preset": "ask-everything"})
    async with yard.open(config, approver=Always()) as app:
        assert (await app.call_tool("shell", {"command": "ls -la"})).ok
    saved = GrantStore(default_grants_file()).load()
    (grant,) = saved.grants
    assert grant.rule == {"command": "ls **"}
    assert grant.workspace is not None
    assert [rule.text for rule in saved.rules(grant.workspace, default_grants_file())] == ["ls **"]
    assert saved.rules(str(tmp_path / "elsewhere"), default_grants_file()) == []


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("cp report.txt /srv/out/r", ["cp report.txt /srv/out/r"]),
        ("touch /srv/out/t", ["touch /srv/out/t"]),
        ("mkdir -p /srv/out/m", ["mkdir -p /srv/out/m"]),
        ("cat /srv/out/log", ["cat /srv/out/log"]),
        ("grep -r key /srv", ["grep -r key /srv"]),
        ("git status -s", ["git status -s"]),
        ("./run.sh a", []),
        ("make deploy", []),
        ("ls", ["ls"]),
        ("echo hi > /srv/out/o", ["echo hi", "write=/srv/out/o"]),
        ("ls -l /srv | head -3", ["ls -l /srv", "head -3"]),
        ('cat "$x"', []),
    ],
)
async def test_E09_always_is_the_exact_text_for_what_reaches_outside_of_the_sandbox(tmp_path, command, kept):
    assert [offer.text for offer in (await verdict(command, tmp_path, "outside")).offers] == kept


@pytest.mark.parametrize("scope", ["always", "session"])
async def test_E09_a_yes_to_one_copy_outside_lets_no_other_pass_unasked(yard, tmp_path, scope):
    need_backend("bubblewrap", "bubblewrap-pids")
    shown = []

    class Answers:
        async def approve(self, request, verdict):
            shown.append(request.plan.command)
            return Answer(allowed=len(shown) == 1, reason="", scope=scope, bound_to=request.fingerprint)

    (tmp_path / "mine").write_text("theirs")
    (tmp_path / "important").write_text("mine")
    first, other = f"cp {tmp_path}/mine {tmp_path}/copy", f"cp {tmp_path}/mine {tmp_path}/important"
    config = yard.config("shell:command", permissions={"preset": "sandboxed"})
    async with yard.open(config, approver=Answers()) as app:
        for line in (first, first, other):
            await app.call_tool("shell", {"command": line, "reach": "outside", "reason": "to hand it over"})
    assert shown == [first, other]
    assert (tmp_path / "copy").read_text() == "theirs"
    assert (tmp_path / "important").read_text() == "mine"


async def test_O06_each_part_of_a_line_gets_a_rule_of_its_own_and_together_they_allow_it(tmp_path):
    line = "ls -la /tmp && git status | grep 'a b' > out.txt"
    asked = await verdict(line, tmp_path)
    assert [offer.text for offer in asked.offers] == ["ls **", "git status **", "grep **", "write=out.txt"]
    again = await verdict(line, tmp_path, allow=[offer.rule for offer in asked.offers])
    assert again.decision == "allow"
    assert (await verdict("ls", tmp_path, allow=["ls **"])).decision == "allow", "no arguments are any arguments, too"


@pytest.mark.parametrize("command", ["x=1; ls", "ls $(rm y", 'eval "$x"', "ls; $x"])
async def test_O06_nothing_is_offered_that_would_be_asked_about_again(tmp_path, command):
    assert (await verdict(command, tmp_path)).offers == ()


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("ls -la", "allow"),
        ("ls | cat", "allow"),
        ("ls; cat x", "allow"),
        ("ls 'a; rm b'", "allow"),
        ("ls && touch x", "ask"),
        ("ls $(touch x)", "ask"),
        ("ls <(touch x)", "ask"),
        ("if ls; then touch x; fi", "ask"),
        ("(ls; touch x)", "ask"),
        ("ls > x", "ask"),
        ("ls 'unclosed", "ask"),
        ("ls && rm x", "deny"),
        ("ls $(rm x)", "deny"),
        ("ls; bash -c 'rm x'", "deny"),
        ("lsof", "ask"),
        ("ls\u200b", "ask"),
    ],
)
async def test_O07_a_line_is_as_dangerous_as_its_most_dangerous_part(tmp_path, command, decision):
    found = await verdict(command, tmp_path, allow=["ls **", "cat **"], deny=["rm **"])
    assert found.decision == decision
    assert found.parts, "every verdict says what decided it"
    assert all(part.rule or part.doubt or part.reason for part in found.parts)


async def test_O07_a_call_obeys_the_rules_of_its_configuration_and_says_which(yard, monkeypatch):
    monkeypatch.chdir(yard.folder)
    permissions = {"preset": "ask-everything", "allow": ["echo **"], "deny": ["rm **"]}
    async with yard.app("shell:command", permissions=permissions) as app:
        allowed = await app.call_tool("shell", {"command": "echo one"})
        asked = await app.call_tool("shell", {"command": "echo one > file"})
        denied = await app.call_tool("shell", {"command": "echo one; rm -rf x"})
    assert allowed.ok
    assert asked.failure == "denied"
    assert "nobody is there to ask" in asked.text
    assert "no rule allows writing 'file'" in asked.text
    assert denied.failure == "denied"
    assert "toolyard.json:" in denied.text
    assert not (yard.folder / "file").exists()
    ends = [line for line in yard.audit() if line["event"] == "end"]
    assert [(line["decision"], line["rule"]) for line in ends] == [
        ("allow", "echo **"),
        ("deny", None),
        ("deny", "rm **"),
    ]


async def test_O07_a_command_that_waited_is_judged_where_the_session_is_by_then(yard, monkeypatch):
    """Two calls of one turn: the first leaves the workspace, so the second is not what was looked at before."""
    from toolyard.core.tool import ToolCall

    inside = yard.folder / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    calls = [
        ToolCall(id="1", name="bash", arguments={"command": "cd .."}),
        ToolCall(id="2", name="bash", arguments={"command": "git status"}),
    ]
    config = yard.config("shell:session", permissions={"preset": "ask-everything", "allow": ["cd **", "git status **"]})
    async with yard.open(config) as app:
        results = await app.call_tools(calls)
    assert results["1"].ok
    assert results["2"].failure == "denied"
    assert "outside of the workspace" in results["2"].text


async def test_S13_the_allowlist_lets_nothing_through_that_its_text_check_would(tmp_path):
    book = preset_rules("allowlist")
    where = CallSite(tool="bash", cwd=str(tmp_path), workspace=str(tmp_path))

    async def decide(command):
        found = await decide_line(command, RuleBook(book.rules, otherwise=book.otherwise), where)
        return found.decision

    slips = [
        "ls a;rm x",
        "ls\nrm x",
        "ls a$(id)",
        "cat <(id)",
        "ls&&id",
        "ls|id",
        "ls>x",
        "ls `id`",
        "ls a&id",
        "cat x>y",
    ]
    slips += ["find . -exec id \\;", "find . -delete", "rm x", "id", 'ls "$(id)"', "/bin/ls", "", "ls '"]
    for command in slips:
        assert await decide(command) == "deny", command
    for command in [
        "ls",
        "ls -la",
        "echo 'a && b'",
        'echo "x > y; z"',
        "grep '$x' f",
        "ls | grep x",
        "find . -name '*.py'",
    ]:
        assert await decide(command) == "allow", command
    assert ALLOWLIST == ("ls", "cat", "echo", "pwd", "grep", "find", "wc", "head", "tail")


async def test_S13_the_allowlist_is_a_preset_with_programs_of_ones_own(yard):
    permissions = {"preset": "allowlist", "allowed_commands": ["echo", "true"]}
    async with yard.app("shell:session", permissions=permissions) as app:
        assert (await app.call_tool("bash", {"command": "echo 'a; b' && true"})).text == "a; b\n"
        refused = await app.call_tool("bash", {"command": "ls"})
    assert refused.failure == "denied"
    assert refused.text == "The call was not allowed: ls: Command 'ls' is not in the allowlist"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo a", None),
        ("echo 'a | b; c' \"d && e\"", None),
        ("rm x", "rm x: Command 'rm' is not in the allowlist"),
        ("rm x | cat", "rm x: Command 'rm' is not in the allowlist"),
        ("ls | cat", "Shell operator '|' is not allowed"),
        ("ls && pwd", "Shell operator '&&' is not allowed"),
        ("ls; pwd", "Shell operator ';' is not allowed"),
        ("ls;rm x", "Shell operator ';' is not allowed"),
        ("ls $(pwd)", "Shell operator '$(pwd)' is not allowed"),
        ("ls `pwd`", "Shell operator '`pwd`' is not allowed"),
        ("echo $HOME", "Shell operator '$HOME' is not allowed"),
        ("ls > out", "Shell operator '>' is not allowed"),
        ("ls\nrm x", "Shell operator 'newline' is not allowed"),
    ],
)
async def test_S13_a_strict_allowlist_refuses_operators_and_substitutions_too(yard, command, said):
    permissions = {"preset": "allowlist", "operators": False}
    async with yard.app("shell:command", permissions=permissions) as app:
        assert app.get_config_errors() == []
        result = await app.call_tool("shell", {"command": command})
    assert result.ok if said is None else result.text == f"The call was not allowed: {said}"


async def test_S13_operators_that_are_no_yes_or_no_damage_the_rules(yard):
    async with yard.app("shell:command", permissions={"preset": "allowlist", "operators": "no"}) as app:
        assert any("operators' must be true or false" in one["detail"] for one in app.get_config_errors())
        assert (await app.call_tool("shell", {"command": "ls | cat"})).failure == "denied"


async def test_A05_a_grant_is_on_disk_before_the_call_that_it_was_given_for_runs(yard, monkeypatch):
    """The application is killed in the moment in which the permission is told."""
    monkeypatch.chdir(yard.folder)
    config = yard.config("shell:command", permissions={"preset": "ask-everything"})
    program = f"""
import asyncio, os
from toolyard import AgentApplication
from toolyard.permissions.verdict import Answer

class Always:
    async def approve(self, request, verdict):
        return Answer(allowed=True, reason="yes", scope="always")

def die(event):
    if type(event).__name__ == "PermissionDecided":
        os.kill(os.getpid(), 9)

async def main():
    async with AgentApplication({str(config)!r}, {str(yard.folder / "sessions")!r}, approver=Always()) as app:
        await app.call_tool("shell", {{"command": "ls nothing"}}, on_event=die)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, cwd=yard.folder)
    assert done.returncode == -9
    (grant,) = json.loads(default_grants_file().read_text())["grants"]
    assert (grant["decision"], grant["rule"], grant["source"]) == ("allow", {"command": "ls **"}, "ls nothing")
    assert grant["workspace"] == str(yard.folder)


async def test_A05_what_was_granted_holds_in_the_next_application_and_in_no_other_workspace(
    yard, tmp_path, monkeypatch
):
    monkeypatch.chdir(yard.folder)
    config = yard.config("shell:command", permissions={"preset": "ask-everything"})

    class Always:
        async def approve(self, request, verdict):
            return Answer(allowed=True, reason="yes", scope="always", bound_to=request.fingerprint)

    async with yard.open(config, approver=Always()) as app:
        assert (await app.call_tool("shell", {"command": "ls -la"})).ok
    async with yard.open(config) as app:
        assert (await app.call_tool("shell", {"command": "ls ."})).ok
        assert (await app.call_tool("shell", {"command": "ls . > x"})).failure == "denied"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    async with yard.open(config) as app:
        assert (await app.call_tool("shell", {"command": "ls ."})).failure == "denied"


SEEN_AS_BASH_SEES_THEM = {
    "cat {src/app.py,README.md}": "allow",
    "cat {README.md,/etc/passwd}": "ask",
    "cat /etc/{passwd,group}": "ask",
    "cat ~/.bashrc": "ask",
    "ls {~,src}": "ask",
    "cat src/*.py": "allow",
    "cat *.py": "ask",  # one of them is a link that leads out
    "cat astray/*": "ask",
    "cat w*/passwd": "ask",
    "ls */": "ask",
    "for f in src/*.py; do cat $f; done": "allow",
    "for f in *.py; do cat $f; done": "ask",
    'for f in "README.md /etc/passwd"; do cat $f; done': "ask",
    "for f in $(find src -name '*.py'); do cat $f; done": "allow",
    "for f in $(cat README.md); do cat $f; done": "ask",
    'x=src/app.py; cat "$x"': "allow",
    'x=/etc/passwd; cat "$x"': "ask",
    "x='README.md /etc/passwd'; cat $x": "ask",
    "find src -name '*.py' | xargs grep -n def": "allow",
    "find astray | xargs grep -n def": "ask",
    'find src | while read -r f; do wc -l "$f"; done': "allow",
    'while read -r f; do cat "$f"; done < README.md': "ask",
    "n=$(grep -c def src/app.py); echo $((n + 1))": "allow",
    "n=$(cat README.md); echo $((n + 1))": "ask",
    "cd src && cat ../README.md": "allow",
    "cd astray && cat key.py": "ask",
    "(cd src && ls); cat ../neighbour/secret": "ask",
    "cat /proc/$PPID/environ": "ask",
    "GIT_PAGER=cat git log": "allow",
    "GIT_PAGER=id git log": "ask",
}


@pytest.mark.parametrize(("line", "decision"), SEEN_AS_BASH_SEES_THEM.items())
async def test_E08_words_are_judged_as_bash_will_see_them(line, decision, tmp_path):
    where = make_workspace(tmp_path)
    lead_astray(where)
    site = CallSite(tool="bash", cwd=str(where), workspace=str(where))
    found = await decide_line(line, preset_rules("read-only"), site)
    assert found.decision == decision, found.reason


async def test_E08_what_an_approved_line_left_in_a_session_counts_for_the_lines_after_it(yard):
    class Yes:
        asked: ClassVar[list[str]] = []

        async def approve(self, request, verdict):
            self.asked.append(request.plan.command)
            return Answer(allowed=True, reason="yes", bound_to=request.fingerprint)

    config = yard.config("shell:session", permissions={"preset": "workspace"})
    async with yard.open(config, approver=Yes()) as app:
        for line in ("export FOO=bar", "x=1", "ls", "export GIT_PAGER=id", "ls", "git log", "ls() { id; }", "ls"):
            await app.call_tool("bash", {"command": line})
        assert Yes.asked == ["export GIT_PAGER=id", "git log", "ls() { id; }", "ls"]
        Yes.asked.clear()
        for line in ("source /dev/null", "echo a", "pwd"):
            await app.call_tool("bash", {"command": line})
        await app.call_tool("bash", {"restart": True})
        await app.call_tool("bash", {"command": "echo b"})
        assert Yes.asked == ["source /dev/null", "echo a", "pwd"]
