"""System messages out of templates, files and code, by the bundled feature plugins."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

FEATURE = "path:${env:BUILTIN_PLUGINS}/feature-system-message"


def app_with(yard, template: str, variables: dict[str, Any] | None = None, **more: Any):
    system = {"template": template, "variables": variables or {}, **more}
    return yard.app(FEATURE, agents={"default": {"system_message": system, "tone": "dry"}})


async def message(yard, template: str, variables: dict[str, Any] | None = None, **more: Any) -> str:
    async with app_with(yard, template, variables, **more) as app:
        assert app.get_config_errors() == []
        result = await app.system_message()
        assert result.problems == []
        return result.text


async def complaint(yard, template: str, variables: dict[str, Any], **more: Any):
    async with app_with(yard, template, variables, **more) as app:
        result = await app.system_message()
        (problem,) = result.problems
        return result.text, problem


async def test_C16_text_and_files_stand_for_their_names(yard):
    yard.file("parts/a.md", "from a\n")
    yard.file("parts/b.md", "from b\n")
    variables = {
        "BASE": {"files": ["parts/a.md", "${env:CONFIG_DIR}/parts/b.md"]},
        "NAME": {"text": "Ada {{BASE}}"},
        "SHORT": "plain",
        "FILE": {"text": "${file:parts/a.md}"},
    }
    text = await message(yard, "{{BASE}}\n---\n{{ NAME }} {{SHORT}} {{FILE}}", variables)
    assert text == "from a\n\nfrom b\n---\nAda {{BASE}} plain from a\n", "what was put in is not looked at again"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("'a' + 'b'", "ab"),
        ("1 + 1", "2"),
        ("None", ""),
        ("f\"tone: {CONFIG['tone']}\"", "tone: dry"),
        ("VALUE = 'set'", "set"),
        ("import os\nVALUE = os.sep * 3", "///"),
        ("def f():\n    return [n for n in range(2)]\nVALUE = f()", "[0, 1]"),
        ("\n  'indented'\n", "indented"),
        ("[x for x in CONFIG if x == 'tone'][0]", "tone"),
    ],
)
async def test_C16_inline_code_is_an_expression_or_a_block_that_sets_VALUE(yard, code, text):
    assert await message(yard, "[{{X}}]", {"X": {"inline_code": code}}) == f"[{text}]"
    yard.file("snippet.py", code)
    assert await message(yard, "[{{X}}]", {"X": {"code": "snippet.py"}}) == f"[{text}]"


async def test_C16_conditions_leave_parts_out(yard):
    yard.file("no.py", "VALUE = 0")
    conditions: dict[str, Any] = {
        "A": {"inline_code": "CONFIG['tone'] == 'dry'"},
        "B": {"inline_code": "CONFIG['tone'] == 'wet'"},
        "C": {"code": "no.py"},
        "D": True,
        "E": False,
    }
    variables = {name: {"text": name, "condition": condition} for name, condition in conditions.items()}
    assert await message(yard, "{{A}}{{B}}{{C}}{{D}}{{E}}", variables) == "AD"


RUNTIME = """
import os
from pathlib import Path

with open({log!r}, "a") as file:
    file.write("ran\\n")

cwd = "/somewhere"
_hidden = "not seen"

def shout(text):
    return text.upper() + CONFIG["tone"]
"""


async def test_C16_runtime_code_runs_once_for_a_request_and_shares_its_public_names(yard):
    log = yard.folder / "log"
    yard.file("runtime.py", RUNTIME.replace("{log!r}", repr(str(log))))
    variables = {
        "A": {"inline_code": "cwd + os.sep + str(Path('x'))"},
        "B": {"inline_code": "shout('hey ')", "condition": {"inline_code": "cwd.startswith('/')"}},
        "C": {"inline_code": "'_hidden' in globals()"},
        "D": {"inline_code": "cwd = 'changed'\nVALUE = cwd"},
        "E": {"inline_code": "cwd"},
    }
    async with app_with(yard, "{{A}} {{B}} {{C}} {{D}} {{E}}", variables, runtime_code="runtime.py") as app:
        for runs in (1, 2):
            result = await app.system_message()
            assert result.problems == []
            assert result.text == "/somewhere/x HEY dry False changed /somewhere"
            assert yard.log() == ["ran"] * runs


async def test_C16_a_snippet_cannot_change_what_others_read(yard):
    variables = {
        "A": {"inline_code": "CONFIG['tone'] = 'loud'\nVALUE = CONFIG['tone']"},
    }
    async with app_with(yard, "{{A}}", variables) as app:
        assert (await app.system_message()).text == "loud"
        assert app._lifecycle.loaded.configuration.for_agent("default")["tone"] == "dry"


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("1 +", 1, "SyntaxError"),
        ("x = 1\ny = (", 2, "SyntaxError"),
        ("nothing_here", 1, "NameError: name 'nothing_here'"),
        ("x = 1\n\nVALUE = x / 0", 3, "ZeroDivisionError"),
        ("import sys\nsys.exit(1)", 2, "SystemExit"),
    ],
)
async def test_C16_an_error_in_a_snippet_names_variable_and_line(yard, code, line, words):
    text, problem = await complaint(yard, "before {{BAD}} after", {"BAD": {"inline_code": code}})
    assert text == "before  after"
    assert "'BAD'" in problem.message
    assert f"line {line}:" in problem.message
    assert words in problem.message
    file = yard.file("bad.py", code)
    text, problem = await complaint(yard, "{{BAD}}", {"BAD": {"code": "bad.py"}})
    assert "'BAD'" in problem.message
    assert (problem.where.file, problem.where.line) == (file, line)


async def test_C16_an_error_in_a_condition_or_in_the_runtime_file_is_named_too(yard):
    variables = {"X": {"text": "x", "condition": {"inline_code": "1 / 0"}}}
    text, problem = await complaint(yard, "{{X}}", variables)
    assert text == ""
    assert "condition of system_message variable 'X', line 1" in problem.message
    file = yard.file("runtime.py", "\ndef helper():\n    return 1 / 0\n")
    text, problem = await complaint(yard, "{{X}}", {"X": {"inline_code": "helper()"}}, runtime_code="runtime.py")
    assert "'X', line 1: ZeroDivisionError" in problem.message
    assert (problem.where.file, problem.where.line) == (file, 3)
    yard.file("runtime.py", "x = 1\nimport no_such_module_at_all\n")
    text, problem = await complaint(yard, "fixed", {}, runtime_code="runtime.py")
    assert text == "fixed"
    assert "runtime_code, line 2: ModuleNotFoundError" in problem.message


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ({"inline_code": "x = 1"}, "neither an expression nor sets VALUE"),
        ({"files": ["nowhere.md"]}, "cannot be read"),
        ({"code": "nowhere.py"}, "cannot be read"),
        ({"files": [3]}, "path of a file"),
        ({}, "exactly one of"),
        ({"text": "a", "files": []}, "exactly one of"),
        (3, "exactly one of"),
        ({"inline_code": 3}, "needs 'inline_code' or 'code'"),
        ({"text": "a", "condition": 3}, "must be true, false or an object"),
    ],
)
async def test_C16_a_variable_that_cannot_be_had_is_reported(yard, variable, words):
    _, problem = await complaint(yard, "{{X}}", {"X": variable})
    assert "'X'" in problem.message
    assert words in problem.message


async def test_C16_an_unknown_name_stays_and_is_reported(yard):
    text, problem = await complaint(yard, "{{GREETNG}}", {"GREETING": {"text": "hi"}})
    assert text == "{{GREETNG}}"
    assert "GREETING" in problem.hint


@pytest.mark.parametrize("settings", [3, {}, {"template": 3}, {"template": "x", "variables": []}])
async def test_C16_settings_of_the_wrong_shape_are_reported(yard, settings):
    async with yard.app(FEATURE, system_message=settings) as app:
        result = await app.system_message()
        assert len(result.problems) == 1


async def test_C16_a_plain_text_or_nothing_at_all(yard):
    async with yard.app(FEATURE, system_message="Be brief.") as app:
        assert (await app.system_message()).text == "Be brief."
    async with yard.app(FEATURE) as app:
        assert (await app.system_message()).text == ""


UI = """
def get_ui_elements():
    return [{"id": "tone", "value": CONFIG["tone"], "tags": TAGS, "models": MODELS}]
"""


async def test_C16_ui_elements_of_the_runtime_file_are_merged_into_the_schema(yard):
    yard.file("runtime.py", UI)
    request_options = "path:${env:BUILTIN_PLUGINS}/feature-request-options"
    system = {"template": "", "runtime_code": "runtime.py"}
    async with yard.app(FEATURE, request_options, tone="dry", system_message=system) as app:
        assert app.get_config_errors() == []
        result = await app.ui_elements(tags=["code"], models=["some-model"])
        assert result.problems == []
        assert result.elements[0] == {"id": "tone", "value": "dry", "tags": ["code"], "models": ["some-model"]}
        assert {"request_options.temperature", "request_options.max_tokens"} < {e["id"] for e in result.elements}
        assert (await app.system_message()).problems == [], "the runtime file does not need the names to be there"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def get_ui_elements():\n    return 3\n", "not a list"),
        ("def get_ui_elements():\n    raise ValueError('no')\n", "ValueError: no"),
    ],
)
async def test_C16_ui_elements_that_fail_are_reported(yard, code, words):
    yard.file("runtime.py", code)
    async with yard.app(FEATURE, system_message={"template": "", "runtime_code": "runtime.py"}) as app:
        (problem,) = (await app.ui_elements()).problems
        assert words in problem.message


async def test_request_options_come_from_the_configuration(yard):
    options = {"temperature": 0.2, "max_tokens": None, "stop": ["x"], "top_p": 3}
    async with yard.app("path:${env:BUILTIN_PLUGINS}/feature-request-options", request_options=options) as app:
        result = await app.request_options()
        assert result.options == {"temperature": 0.2, "stop": ["x"]}
        (problem,) = result.problems
        assert "top_p" in problem.message
        elements = {element["id"]: element for element in (await app.ui_elements()).elements}
        assert elements["request_options.temperature"]["value"] == 0.2


async def test_a_feature_that_breaks_or_hangs_stops_no_other(yard):
    module = """
class Breaks:
    id = "breaks"
    def build_system_message(self, config, context):
        return 1 / 0

class Hangs:
    id = "hangs"
    async def build_system_message(self, config):
        import asyncio
        await asyncio.sleep(1000)

class Later:
    id = "later"
    async def build_system_message(self, config):
        return "from later"
"""
    yard.file("features.py", module)
    policy = {"python_timeout_seconds": 5}
    async with yard.app("path:features.py", FEATURE, policy=policy, system_message="from the first") as app:
        result = await app.system_message()
        assert result.text == "from later\n\nfrom the first"
        assert sorted(problem.code for problem in result.problems) == ["plugin_failed", "plugin_failed_timeout"]


ODD = {
    "pipe": (os.mkfifo, "not a regular file"),
    "link": (lambda path: path.symlink_to("../key"), "is a link in a folder that tools can write"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a link in a folder that tools can write"),
    "huge": (lambda path: huge(path), "larger than 4 MiB"),
}


def huge(path):
    with path.open("wb") as file:
        file.truncate(3 << 30)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("variable", [
    {"files": ["odd"]}, {"code": "odd"}, {"text": "x", "condition": {"code": "odd"}}, {"inline_code": "1"},
])  # fmt: skip
async def test_C16_a_file_that_is_not_to_be_obeyed_is_a_problem_and_holds_up_nothing(yard, odd, variable):
    make, words = ODD[odd]
    (yard.folder.parent / "key").write_text("'very secret'")
    make(yard.folder / "odd")
    more = {"runtime_code": "odd"} if "inline_code" in variable else {}
    text, problem = await complaint(yard, "<{{IT}}>", {"IT": variable}, **more)
    assert words in problem.message
    assert text == ("<1>" if more else "<>")


async def test_C16_tags_and_models_are_the_agents_own_unless_others_are_given(yard):
    yard.file("runtime.py", UI)
    yard.file("plugin/tagger.py", 'class Tagger:\n    id = "tagger"\n    tags = ["of-a-plugin"]\n' + NO_TOOLS)
    plugins = [FEATURE, {"path": "plugin", "entry": "tagger.Tagger"}]
    agent = {"tags": ["code"], "model": "some-model", "tone": "dry"}
    system = {"template": "", "runtime_code": "runtime.py"}
    async with yard.app(*plugins, agents={"default": agent}, system_message=system) as app:
        assert app.get_config_errors() == []
        (own,) = (await app.ui_elements()).elements
        assert (own["tags"], own["models"]) == (["code", "of-a-plugin"], ["some-model"])
        (given,) = (await app.ui_elements(tags=[], models=["other"])).elements
        assert (given["tags"], given["models"]) == ([], ["other"])


NO_TOOLS = """
    def get_tool_schemas(self, state):
        return []

    def execute_tool(self, tool_name, payload, state):
        raise NotImplementedError
"""


async def test_faults_of_system_messages_and_options_are_problems_of_the_configuration(yard):
    options = "path:${env:BUILTIN_PLUGINS}/feature-request-options"
    broken = {"template": "{{A}} {{C}}", "variables": {"A": {"inline_code": "1 / 0"}, "B": {"text": ""}}}
    agents = {
        "default": {"request_options": {"top_p": 3}},
        "other": {"system_message": broken},
        "without": {"disabled_plugins": ["feature_system_message"], "system_message": broken},
    }
    app = yard.app(FEATURE, options, agents=agents)
    found = [(one["type"], one["detail"]) for one in app.get_config_errors()]
    expected = ["ZeroDivisionError", "a variable 'C' that there is not", "'request_options.top_p' is 3"]
    assert len(found) == len(expected)
    assert all(any(words in detail for _, detail in found) for words in expected)
    async with app:
        assert [(one["type"], one["detail"]) for one in app.get_config_errors()] == found
        assert app.problems(of_requests=False) == [], "nothing is made for a question that is not about it"


async def test_a_mended_system_message_is_a_problem_no_more(yard):
    yard.file("part.py", "VALUE = undefined")
    async with app_with(yard, "{{X}}", {"X": {"code": "part.py"}}) as app:
        (problem,) = app.get_config_errors()
        assert problem["file"].endswith("part.py")
        assert problem["line"] == 1
        yard.file("part.py", "VALUE = 1")
        assert app.get_config_errors() == []
