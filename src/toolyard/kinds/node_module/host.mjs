// The host of Node tools: JSON-RPC in the dialect of MCP, a message a line, by the two descriptors it is given.
// What tools print goes elsewhere, so that nothing they do to their standard streams is in the way.
import { AsyncLocalStorage } from "node:async_hooks";
import { Socket } from "node:net";
import { Fault, asAnswer, asText, findTool, findTools, words } from "./host_tools.mjs";

const OLDEST_NODE = 20;
const PIECE = 1 << 18; // characters of one message
const BREATH = 10; // milliseconds after which a tool that only yields lets others have their turn

const [inward = 0, outward = 1] = process.argv.slice(2).map(Number);
const input = new Socket({ fd: inward, readable: true, writable: false });
const output = new Socket({ fd: outward, readable: false, writable: true });
output.setMaxListeners(0); // every call may wait for room
const current = new AsyncLocalStorage();
const calls = new Map();
let root = process.cwd();
let declared = new Map();
let loading = 0;
let breathed = performance.now();

class Call {
  #controller = new AbortController();
  #parts = 0;
  #half = "";
  #decoder = new TextDecoder();

  constructor(id, token) {
    this.id = id;
    this.token = token;
    this.signal = this.#controller.signal;
    this.broken = new Promise((_, reject) => (this.fail = reject));
    this.broken.catch(() => {});
  }

  abort(reason) {
    this.#controller.abort(new DOMException(reason || "the call was cancelled", "AbortError"));
  }

  /** Stream a value, at once; resolves when there is room for more. */
  write(value) {
    const bytes = value instanceof Uint8Array;
    this.send(bytes ? this.#decoder.decode(value, { stream: true }) : typeof value === "string" ? value : `${asText(value)}\n`);
    return room();
  }

  send(text, meta) {
    // The first half of a character waits for the second.
    const whole = this.#half + text;
    this.#half = isFirstHalf(whole, whole.length - 1) ? whole.at(-1) : "";
    this.#sendPieces(this.#half ? whole.slice(0, -1) : whole, meta);
  }

  finish(meta) {
    const rest = this.#half + this.#decoder.decode();
    this.#half = "";
    this.#sendPieces(rest, meta);
  }

  #sendPieces(text, meta) {
    for (let start = 0, end; start < text.length; start = end) {
      end = Math.min(start + PIECE, text.length);
      if (end < text.length && isFirstHalf(text, end - 1)) end -= 1;
      const message = text.slice(start, end).toWellFormed();
      post({ method: "notifications/progress", params: { progressToken: this.token, progress: ++this.#parts, message, _meta: meta } });
    }
  }
}

function isFirstHalf(text, place) {
  return (text.charCodeAt(place) & 0xfc00) === 0xd800;
}

function post(message) {
  output.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

/** Wait until the other side has taken most of what was written, and now and then for everybody else. */
async function room() {
  if (output.writableNeedDrain) await new Promise((go) => output.once("drain", go));
  if (performance.now() - breathed > BREATH) {
    await new Promise(setImmediate);
    breathed = performance.now();
  }
}

const METHODS = {
  initialize({ _meta: about = {} }) {
    root = about["toolyard/root"] ?? root;
    declared = new Map((about["toolyard/tools"] ?? []).map((tool) => [tool.id, tool]));
    const serverInfo = { name: "toolyard-node-host", version: process.version };
    return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
  },
  ping: () => ({}),
  "tools/list": listTools,
  "tools/preview": ({ name, ...rest }, call) => preview(name, rest, call),
  "tools/call": ({ name, ...rest }, call) => run(name, rest, call),
};

async function listTools() {
  const tools = [];
  const faults = [];
  for (const each of declared.values()) {
    try {
      for (const one of await loadAll(each)) tools.push(one.listing);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      faults.push({ id: each.id, code: error.code, message: error.message, hint: error.hint, ...error.place });
    }
  }
  return { tools, _meta: { "toolyard/faults": faults } };
}

async function preview(name, params, call) {
  const tool = await toolNamed(name);
  const shown = await Promise.race([tool.preview?.(params.arguments ?? {}, contextOf(params, call)), call.broken]);
  return { content: [{ type: "text", text: asText(shown ?? "").toWellFormed() }] };
}

async function run(name, params, call) {
  const tool = await toolNamed(name);
  const context = contextOf(params, call);
  let answer;
  try {
    const work = finalValue(() => tool.run(params.arguments ?? {}, context), call);
    answer = asAnswer(await Promise.race([work, call.broken]));
  } catch (error) {
    if (!call.signal.aborted) console.error(error);
    answer = { content: [{ type: "text", text: words(error) }], failed: true, thrown: true };
  }
  call.finish();
  return result(answer, call);
}

/** The answer, or without one what was streamed; a long one goes ahead in pieces. */
function result(answer, call) {
  if (answer === undefined) return { content: [], isError: false };
  const { content, failed: isError, thrown } = answer;
  const _meta = thrown ? { "toolyard/thrown": true } : undefined;
  const texts = content.filter((part) => part.type === "text").map((part) => part.text);
  if (thrown || texts.reduce((sum, text) => sum + text.length, 0) <= PIECE) {
    return { content: content.map((part) => (part.type === "text" ? { ...part, text: part.text.toWellFormed() } : part)), isError, _meta };
  }
  call.send(texts.join("\n"), { "toolyard/answer": true });
  call.finish({ "toolyard/answer": true });
  return { content: content.filter((part) => part.type !== "text"), isError };
}

/** What the tool comes to, with everything it yields on the way streamed. */
async function finalValue(start, call) {
  const value = await start();
  const iterator = iteratorOf(value);
  if (!iterator) return value;
  for (;;) {
    const step = await iterator.next();
    if (step.done) return step.value;
    await call.write(step.value);
    if (call.signal.aborted) {
      await iterator.return?.();
      throw call.signal.reason;
    }
  }
}

/** Generators and streams; a list or a text is a value. */
function iteratorOf(value) {
  if (typeof value?.[Symbol.asyncIterator] === "function") return value[Symbol.asyncIterator]();
  return typeof value?.next === "function" && typeof value?.[Symbol.iterator] === "function" ? value : undefined;
}

function contextOf({ _meta: about = {} }, call) {
  const cwd = about["toolyard/cwd"] ?? process.cwd();
  return { signal: call.signal, cwd, config: about["toolyard/config"] ?? {}, callId: about["toolyard/callId"] ?? "", write: (value) => call.write(value) };
}

async function toolNamed(name) {
  const found = declared.get(name);
  if (!found) throw new Fault("node_unknown", `no tool is named '${name}'`);
  return loadTool(found);
}

const loadTool = (found) => whileLoading(() => findTool(root, found));
const loadAll = (found) => whileLoading(() => findTools(root, found));

async function whileLoading(find) {
  loading += 1;
  try {
    // What a module sets going when it is loaded belongs to no call.
    return await current.exit(find);
  } finally {
    loading -= 1;
  }
}

async function take(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch (error) {
    post({ id: null, error: { code: -32700, message: words(error) } });
    return;
  }
  const { id, method, params = {} } = message;
  if (method === "notifications/cancelled") calls.get(params.requestId)?.abort(params.reason);
  if (id === undefined) return;
  const call = new Call(id, params._meta?.progressToken ?? id);
  calls.set(id, call);
  try {
    post({ id, result: await current.run(call, () => handle(method, params, call)) });
  } catch (error) {
    const code = error instanceof Fault ? -32602 : -32603;
    post({ id, error: { code, message: words(error), data: { code: error?.code ?? "", ...error?.place } } });
  } finally {
    calls.delete(id);
  }
}

async function handle(method, params, call) {
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
    throw new Fault("node_too_old", `Node ${OLDEST_NODE} or newer is needed, this is ${process.version}`);
  }
  const answer = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (!answer) throw new Fault("node_unknown", `no method is named '${method}'`);
  const cwd = params._meta?.["toolyard/cwd"];
  if (cwd !== undefined) process.chdir(cwd);
  return answer(params, call);
}

/** An error that nobody caught fails the call that it comes of; where that cannot be told, it is only logged. */
function unexpected(error) {
  const call = current.getStore() ?? (calls.size === 1 ? calls.values().next().value : undefined);
  console.error("uncaught:", error);
  call?.fail(error);
}

process.on("uncaughtException", unexpected);
process.on("unhandledRejection", unexpected);

const exit = process.exit.bind(process);
/** A tool that wants to end the process ends its own call, or does not load; the others go on. */
process.exit = (code) => {
  const call = calls.get(current.getStore()?.id);
  if (!call && !loading) exit(code);
  const error = new Error(`process.exit(${code ?? ""}) was called`);
  call?.fail(error);
  throw error;
};

let pieces = [];
input.on("data", (chunk) => {
  let start = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
    pieces.push(chunk.subarray(start, end));
    const line = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    pieces = [];
    start = end + 1;
    if (line.length) take(line.toString());
  }
  if (start < chunk.length) pieces.push(chunk.subarray(start));
});
input.on("close", () => exit(0));
output.on("error", () => exit(1));
