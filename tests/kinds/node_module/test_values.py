"""What a module may export, and what its tool may return, yield and throw."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path

import pytest

from node_yard import NodeYard, call, codes
from support import PATIENCE, PNG
from toolyard.core.content import ImagePart, LinkPart
from toolyard.core.events import OutputChunk
from toolyard.core.tool import Hints

pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path) -> NodeYard:
    return NodeYard(tmp_path)


SHAPES = {
    "an object": ("a.mjs", "export default { description: 'It.', run: ({ v }) => `<${v}>` };"),
    "an object with execute": ("a.mjs", "export default { description: 'It.', execute({ v }) { return `<${v}>` } }"),
    "a function with properties": ("a.mjs", "export default function f({ v }) { return `<${v}>` }\n"
                                   "f.description = 'It.';"),
    "an arrow function": ("a.mjs", "const f = async ({ v }) => `<${v}>`;\nf.description = 'It.';\n"
                          "export { f as default };"),
    "a class": ("a.mjs", "export default class { description = 'It.'; #l = '<';\n"
                " run({ v }) { return `${this.#l}${v}>` } }"),
    "a class with static fields": ("a.mjs", "export default class { static description = 'It.';\n"
                                   " run({ v }) { return `<${v}>` } }"),
    "an old class": ("a.cjs", "function T() { this.l = '<' }\nT.description = 'It.';\n"
                     "T.prototype.run = function ({ v }) { return `${this.l}${v}>` };\nmodule.exports = T;"),
    "the module as a whole": ("a.mjs", "export const description = 'It.';\nexport const run = ({ v }) => `<${v}>`;"),
    "an export named like the tool": ("a.mjs", "export const probe = { description: 'It.', run: ({ v }) => `<${v}>` }"),
    "CommonJS": ("a.cjs", "module.exports = { description: 'It.', run: ({ v }) => `<${v}>` };"),
    "CommonJS by its exports": ("a.cjs", "exports.description = 'It.';\nexports.run = ({ v }) => `<${v}>`;"),
    "CommonJS in a .js file": ("a.js", "module.exports = { description: 'It.', run: ({ v }) => `<${v}>` };"),
    "what compilers make of a default": ("a.cjs", "Object.defineProperty(exports, '__esModule', { value: true });\n"
                                         "exports.default = { description: 'It.', run: ({ v }) => `<${v}>` };"),
    "a schema of a library": ("a.mjs", "const parameters = { toJSONSchema: () => ({ type: 'object' }) };\n"
                              "export default { description: 'It.', parameters, run: ({ v }) => `<${v}>` };"),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_tool_may_be(yard, shape):
    name, text = SHAPES[shape]
    yard.file(name, text)
    async with yard.app({"node_tool": {"file": name, "id": "probe"}}) as app:
        assert codes(app) == []
        (spec,) = app.tool_specs()
        assert (spec.name, spec.description) == ("probe", "It.")
        assert await call(app, arguments={"v": "x"}) == "<x>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return 'plain\\n'", "plain\n"),
        ("return ''", ""),
        ("return", ""),
        ("return null", ""),
        ("return 3.5", "3.5"),
        ("return false", "false"),
        ("return { b: 1, a: [true, null] }", '{"b":1,"a":[true,null]}'),
        ("return ['a', 'b']", '["a","b"]'),
        ("return Buffer.from('grün')", "grün"),
        ("return 10n ** 20n", "100000000000000000000n"),
        ("const o = {}; o.o = o; return o", "<ref *1> { o: [Circular *1] }"),
        ("return { content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }", "a\nb"),
        (
            "return { content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }] }",
            "[image: image/png, 3 bytes; left out, since its content is broken or something else]",
        ),
        ("return { content: 'not the protocol' }", '{"content":"not the protocol"}'),
        ("return new Date(0)", '"1970-01-01T00:00:00.000Z"'),
        ("return '\\ud83d' + 'x'", "\ufffdx"),
        ("context.write('a'); await context.write('b')", "ab"),
        ("context.write('heard'); return 'said'", "said"),
        ("return args.value + ' 😀 \\u0000 \\r\\n \\u2028'", "ünï 😀  \n \u2028"),
    ],
)
async def test_what_is_returned_is_the_text(yard, body, text):
    async with yard.probe(body) as app:
        assert await call(app, arguments={"value": "ünï"}) == text


GENERATORS = {
    "an async generator": "async *run() { yield 'a'; await null; yield 'b'; yield 'c' }",
    "a plain generator": "*run() { yield 'a'; yield 'b'; yield 'c' }",
    "a generator out of a promise": "async run() { return (async function* () { yield 'ab'; yield 'c' })() }",
    "a web stream": "run() { return new ReadableStream({ start(c) { c.enqueue('ab'); c.enqueue('c'); c.close() } }) }",
    "a Node stream": "async run() { return (await import('node:stream')).Readable.from(['ab', 'c']) }",
    "bytes": "*run() { yield Buffer.from('ab'); yield new Uint8Array([99]) }",
}


@pytest.mark.parametrize("kind", GENERATORS)
async def test_what_is_yielded_is_streamed_and_is_the_text(yard, kind):
    yard.file("probe.mjs", f"export default {{ {GENERATORS[kind]} }};")
    async with yard.app("node:probe.mjs") as app:
        assert await call(app, on_event=yard.watch) == "abc"
    assert yard.streamed() == "abc"
    assert len([event for event in yard.events if isinstance(event, OutputChunk)]) >= 2


async def test_a_returned_value_takes_the_place_of_what_was_yielded(yard):
    yard.file(
        "probe.mjs", "export default { async *run() { yield 'half\\n'; yield { done: 1 }; return 'all of it' } };"
    )
    async with yard.app("node:probe.mjs") as app:
        assert await call(app, on_event=yard.watch) == "all of it"
    assert yard.streamed() == 'half\n{"done":1}\n'


async def test_a_character_in_two_pieces_is_one(yard):
    body = (
        "for (const unit of 'a😀'.split('')) yield unit; for (const byte of Buffer.from('é😀')) yield Buffer.of(byte)"
    )
    yard.file("probe.mjs", f"export default {{ async *run() {{ {body} }} }};")
    async with yard.app("node:probe.mjs") as app:
        assert await call(app, on_event=yard.watch) == "a😀é😀"
    assert "\ufffd" not in yard.streamed()


async def test_what_is_yielded_is_heard_while_the_tool_still_runs(yard):
    yard.file(
        "probe.mjs",
        "import { existsSync } from 'node:fs'; import { setTimeout as wait } from 'node:timers/promises';\n"
        "export default { async *run(_, { cwd }) {\n"
        "  yield 'first'; while (!existsSync(`${cwd}/go`)) await wait(10); yield 'last' } };",
    )
    heard = asyncio.Event()

    def watch(event):
        yard.watch(event)
        if isinstance(event, OutputChunk):
            heard.set()

    async with yard.app("node:probe.mjs", working_directory=str(yard.folder)) as app:
        running = asyncio.ensure_future(app.call_tool("probe", {}, on_event=watch))
        await asyncio.wait_for(heard.wait(), PATIENCE)
        assert (yard.streamed(), running.done()) == ("first", False)
        yard.file("go", "")
        assert (await running).text == "firstlast"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("throw new Error('no such thing')", "no such thing"),
        ("throw new TypeError('')", "TypeError"),
        ("throw 'only words'", "only words"),
        ("throw { code: 7 }", "{ code: 7 }"),
        ("throw undefined", "undefined"),
        ("await Promise.reject(new Error('later'))", "later"),
        ("throw new Error('outer', { cause: new Error('inner') })", "outer (inner)"),
        ("null.x", "Cannot read properties of null"),
        ("return { get then() { throw new Error('no thing') } }", "no thing"),
        ("throw new Error('half \\ud83d')", "half \ufffd"),
    ],
)
async def test_what_is_thrown_fails_the_call_in_its_own_words(yard, body, words):
    async with yard.probe(body) as app:
        result = await app.call_tool("probe", {})
        assert (result.failure, result.exit_code) == ("exit_code", 1)
        assert result.text.startswith(f"Error: 'probe' failed: {words}")
        assert "node_host" not in result.text, "no stack of ours"


async def test_a_failure_has_what_was_streamed_before(yard):
    async with yard.probe("context.write('so far'); throw new Error('stop')") as app:
        assert (await app.call_tool("probe", {})).text == "Error: 'probe' failed: stop\noutput:\nso far"


async def test_a_result_that_says_it_is_an_error_is_a_failure_in_its_own_words(yard):
    async with yard.probe("return { content: [{ type: 'text', text: 'not today' }], isError: true }") as app:
        result = await app.call_tool("probe", {})
        assert (result.failure, result.text) == ("exit_code", "not today")


async def test_arguments_are_checked_before_anything_runs_and_arrive_whole(yard):
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "tags": {"type": "array"}, "more": {"default": {"x": [1]}}},
        "required": ["count"],
    }
    yard.file("probe.mjs", f"export default {{ parameters: {json.dumps(schema)}, run: (args) => args }};")
    async with yard.app("node:probe.mjs") as app:
        refused = await app.call_tool("probe", {"count": "many"})
        assert refused.failure == "invalid_arguments"
        got = json.loads(await call(app, arguments={"count": "3", "tags": ["ü", "\ud800", 1e300, 2**53]}))
        assert got == {"count": 3, "tags": ["ü", "\ud800", 1e300, 2**53], "more": {"x": [1]}}


@pytest.mark.parametrize(
    ("preview", "shown"),
    [
        ("", "probe value='a b'"),
        ("preview: ({ value }) => `see ${value}`,", "see a b"),
        ("preview: async () => 'one\\ntwo',", "one"),
        ("preview: () => 'x'.repeat(500),", "x" * 199 + "…"),
        ("preview: () => { throw new Error('no') },", ""),
        ("preview: () => undefined,", ""),
    ],
)
async def test_a_preview_is_a_line(yard, preview, shown):
    async with yard.probe("return 'ran'", more=preview) as app:
        assert await app.preview_tool("probe", {"value": "a b"}) == shown


async def test_a_tool_says_what_it_does_to_the_world(yard):
    yard.module("", more="annotations: { readOnlyHint: true, title: 'x' }, parallel: false,")
    async with yard.app("node:probe.mjs") as app:
        (tool,) = app.tools()
        assert tool.spec.hints == Hints(read_only=True, destructive=False, parallel=False)
        assert tool.kind == "node_module"


DOT = f"Buffer.from('{b64encode(PNG).decode()}', 'base64')"
IMAGE = ImagePart(media_type="image/png", data=PNG)
LINK = "{ type: 'resource_link', uri: 'https://example.org/a', name: 'a' }"


@pytest.mark.parametrize(
    ("body", "text", "attachments"),
    [
        (f"return {DOT}", "", (IMAGE,)),
        (f"return new Uint8Array({DOT})", "", (IMAGE,)),
        (f"return {{ type: 'image', mimeType: 'image/png', data: {DOT} }}", "", (IMAGE,)),
        (f"return {{ content: [{{ type: 'image', mimeType: 'image/gif', data: '{b64encode(PNG).decode()}' }}] }}", "",
         (IMAGE,)),
        (f"return ['left', {DOT}, {{ a: 1 }}]", 'left\n[1: image]\n{"a":1}', (IMAGE,)),
        (f"return ['it is', {LINK}]", "it is", (LinkPart(uri="https://example.org/a", name="a"),)),
        (f"context.write('heard'); return {DOT}", "heard", (IMAGE,)),
        ("return Buffer.from([0xff, 0xfe, 0x41])", "\ufffd\ufffdA", ()),
        (f"return {{ type: 'image', mimeType: 'image/png', data: Buffer.concat([{DOT}, Buffer.alloc(3e7)]) }}",
         "[image: left out, since it is too much for one result]", ()),
    ],
)  # fmt: skip
async def test_pictures_sound_and_links_are_attached(yard, body, text, attachments):
    async with yard.probe(body) as app:
        result = await app.call_tool("probe", {"value": "x"})
    assert (result.text, result.attachments) == (text, attachments)


async def test_a_picture_comes_with_a_text_that_is_sent_in_pieces(yard):
    async with yard.probe(f"return ['x'.repeat(3e5), {DOT}]") as app:
        result = await app.call_tool("probe", {"value": "x"})
    assert result.truncated is not None
    assert (result.bytes_out, result.attachments) == (300_000, (IMAGE,))
