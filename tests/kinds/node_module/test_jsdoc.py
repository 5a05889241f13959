"""A module that says nothing of itself is described by the comment above its function."""

from __future__ import annotations

import json

import pytest

from yard import Yard

pytestmark = pytest.mark.anyio

DEMO = """\
/**
 * Show how comments are read.
 * On two lines.
 * @typedef {Object} Args
 * @property {string} text - A text
 * @property {'foo'|'bar'|'aaa'} choice - One of three,
 *   that goes on
 * @property {string} [maybe] - Perhaps
 * @property {Integer} integer
 * @property {number} [number=2.5] A number
 * @property {string[]} [many]
 * @param {Args} args
 */
exports.run = function run(args) {
  return JSON.stringify(args);
};
"""
SHAPES = {
    "fields of the argument": (
        "a.mjs",
        """
        /** Other. */
        export function other() {}

        /**
         * It.
         * @param {Object} args
         * @param {string} args.v - The value
         * @param {(1|2)} [args.n=2]
         */
        export async function run({ v }) { return v }
        """,
        {"v": {"type": "string", "description": "The value"}, "n": {"type": "number", "enum": [1, 2], "default": 2}},
    ),
    "a record": (
        "a.cjs",
        """
        /**
         * It.
         * @param {{v: string, more?: Array<number>, map: Record<string, boolean>}} args
         */
        const run = (args) => args.v;
        module.exports = { run };
        """,
        {
            "v": {"type": "string"},
            "more": {"type": "array", "items": {"type": "number"}},
            "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
    ),
    "types of other comments": (
        "a.mjs",
        """
        /** @typedef {{lat: number}} Place */
        /**
         * @typedef {Object} Args
         * @property {?string} v
         * @property {Place[]} places
         * @property {Unheard} odd
         */
        export default class {
          /** It.
           * @param {Args} args */
          run({ v }) { return v }
        }
        """,
        {
            "v": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "places": {
                "type": "array",
                "items": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            },
            "odd": {},
        },
    ),
    "a type that holds itself": (
        "a.mjs",
        """
        /**
         * It.
         * @typedef {Object} Node
         * @property {string} v
         * @property {Node[]} [below]
         * @param {Node} node
         */
        export const run = ({ v }) => v;
        """,
        None,
    ),
}


async def test_a_module_with_run_is_described_by_its_comment_and_named_after_its_file(tmp_path):
    yard = Yard(tmp_path)
    yard.file("demo_js.js", DEMO)
    async with yard.app("node:demo_js.js") as app:
        assert app.problems() == []
        (spec,) = app.tool_specs()
        assert (spec.name, spec.description) == ("demo_js", "Show how comments are read.\nOn two lines.")
        assert spec.input.schema == {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "A text"},
                "choice": {
                    "type": "string",
                    "enum": ["foo", "bar", "aaa"],
                    "description": "One of three, that goes on",
                },
                "maybe": {"type": "string", "description": "Perhaps"},
                "integer": {"type": "integer"},
                "number": {"type": "number", "description": "A number", "default": 2.5},
                "many": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["text", "choice", "integer"],
        }
        result = await app.call_tool("demo_js", {"text": 5, "choice": "aaa", "integer": "3"})
        assert json.loads(result.text) == {"text": "5", "choice": "aaa", "integer": 3, "number": 2.5}
        assert (await app.call_tool("demo_js", {"text": "x"})).failure == "invalid_arguments"


SEVERAL = {
    "todo.cjs": """
        const list = [];
        /**
         * Add a new todo item.
         * @param {Object} args
         * @param {string} args.desc - What is to do
         */
        exports.add_todo = function addTodo({ desc }) { list.push(desc); return `${list.length}` };
        /** Show all. */
        exports.list_todos = () => list.join(", ");
        exports._helper = () => 1;
        exports.MOST = 5;
        """,
    "todo.mjs": """
        const list = [];
        /**
         * Add a new todo item.
         * @param {Object} args
         * @param {string} args.desc - What is to do
         */
        export async function add_todo({ desc }) { list.push(desc); return `${list.length}` }
        /** Show all. */
        export const list_todos = () => list.join(", ");
        export class Todo {}
        export const MOST = 5;
        """,
}


@pytest.mark.parametrize("file", SEVERAL)
async def test_a_module_that_is_no_tool_itself_has_one_in_each_function_that_it_exports(tmp_path, file):
    yard = Yard(tmp_path)
    yard.file(file, SEVERAL[file])
    for _ in range(2):  # the second time from what is kept of the first
        async with yard.app(f"node:{file}") as app:
            assert app.problems() == []
            assert {spec.name: spec.description for spec in app.tool_specs()} == {
                "add_todo": "Add a new todo item.",
                "list_todos": "Show all.",
            }
            assert (await app.call_tool("add_todo", {"desc": "sweep"})).text == "1"
            assert (await app.call_tool("add_todo", {})).failure == "invalid_arguments"
            assert (await app.call_tool("list_todos", {})).text == "sweep"


async def test_one_that_is_named_is_the_only_one(tmp_path):
    yard = Yard(tmp_path)
    yard.file("todo.mjs", SEVERAL["todo.mjs"])
    async with yard.app({"node_tool": {"file": "todo.mjs", "export": "list_todos"}}) as app:
        assert [spec.name for spec in app.tool_specs()] == ["todo"]


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_comment_may_describe(tmp_path, shape):
    file, text, properties = SHAPES[shape]
    yard = Yard(tmp_path)
    yard.file(file, text)
    async with yard.app(f"node:{file}") as app:
        assert app.problems() == []
        (spec,) = app.tool_specs()
        assert spec.description == "It."
        assert "v" in spec.input.schema["properties"]
        if properties is not None:
            assert spec.input.schema["properties"] == properties


async def test_what_a_module_says_itself_wins_over_its_comment(tmp_path):
    yard = Yard(tmp_path)
    yard.file("a.mjs", "/** Comment.\n * @param {{v: string}} args */\nexport function run({ v }) { return v }\n"
              "export const description = 'Own.';\n")  # fmt: skip
    async with yard.app("node:a.mjs") as app:
        (spec,) = app.tool_specs()
        assert (spec.description, list(spec.input.schema["properties"])) == ("Own.", ["v"])
