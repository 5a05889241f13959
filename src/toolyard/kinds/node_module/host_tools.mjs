// From a module to a tool: which export it is, what it says of itself, and what its values are as text.
import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { dirname, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { describe } from "./jsdoc.mjs";

export class Fault extends Error {
  constructor(code, message, { hint = "", place = {} } = {}) {
    super(message);
    Object.assign(this, { code, hint, place });
  }
}

const MOST_DATA = 32 << 20; // characters of base64 in one message
const loaded = new Map();

/** The tool of a declaration, loaded once. */
export function findTool(root, declared) {
  const key = declared.id;
  if (!loaded.has(key)) loaded.set(key, load(resolve(root, declared.entry), declared));
  return loaded.get(key);
}

/** The same of a module that stands alone: where it is no tool itself, each function that it exports is one. */
export async function findTools(root, declared) {
  const names = declared.may_be_several ? severalIn(await importModule(resolve(root, declared.entry)), declared.id) : [];
  const each = names.length ? names.map((name) => ({ ...declared, id: name, export: name })) : [declared];
  return Promise.all(each.map((one) => findTool(root, one)));
}

function severalIn(module, id) {
  const outer = module.default?.__esModule ? module.default : module;
  const all = outer.default ?? outer;
  if (typeof all !== "object" || runnerOf(all) || runnerOf(outer) || outer[id] !== undefined) return [];
  return Object.keys(all).filter((name) => typeof all[name] === "function" && !name.startsWith("_") && !isConstructor(all[name]));
}

async function load(file, declared) {
  const module = await importModule(file);
  const exported = select(module, declared, file);
  try {
    return await shape(exported, declared, file);
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault("node_shape", `the class of '${declared.id}' cannot be made: ${words(error)}`, { place: placeOf(error) ?? { file } });
  }
}

async function importModule(file) {
  try {
    await stat(file);
  } catch {
    throw new Fault("node_entry_missing", "no such file", { place: { file } });
  }
  try {
    return await import(pathToFileURL(file));
  } catch (error) {
    const hint = /\.[cm]?tsx?$/.test(file) && error?.code === "ERR_UNKNOWN_FILE_EXTENSION"
      ? "this Node runs no TypeScript: make it a package with a build script, and name what that writes" : "";
    const place = placeOf(error) ?? (error instanceof SyntaxError ? await syntaxPlace(file) : undefined) ?? { file };
    throw new Fault("node_import", `the module does not load: ${words(error)}`, { hint, place });
  }
}

/** `module[export]`, else the default export, else the export named like the tool, else the module as a whole. */
function select(module, { id, export: name }, file) {
  // What a compiler made of `export default` for CommonJS is one level further down.
  const common = module.default?.__esModule ? module.default : undefined;
  const outer = common ?? module;
  if (name !== undefined && name !== null) {
    const found = outer[name] ?? module.default?.[name];
    if (found !== undefined) return found;
    throw new Fault("node_export", `the module has no export '${name}'`, { hint: exportsHint(outer), place: { file } });
  }
  const found = outer.default ?? outer[id] ?? (runnerOf(outer) ? outer : undefined);
  if (found !== undefined) return found;
  throw new Fault("node_export", `the module has no default export and none named '${id}'`, { hint: exportsHint(outer), place: { file } });
}

function exportsHint(module) {
  const names = Object.keys(module).filter((name) => name !== "default" && name !== "__esModule" && name !== "module.exports");
  return names.length ? `it exports ${names.join(", ")}` : "it exports nothing";
}

/** A function, an object or a class, as one shape. */
async function shape(exported, { id }, file) {
  const isClass = typeof exported === "function" && isConstructor(exported);
  const instance = isClass ? new exported() : exported;
  const about = isClass ? [instance, exported] : [exported];
  const run = isClass || typeof exported === "object" ? runnerOf(instance) : exported;
  if (typeof run !== "function") {
    const hint = "export a function, or an object or class with `run`";
    throw new Fault("node_shape", `'${id}' is no tool: it has no function 'run' or 'execute'`, { hint, place: { file } });
  }
  const said = (...names) => names.flatMap((name) => about.map((each) => each?.[name])).find((value) => value !== undefined);
  const comment = said("parameters", "inputSchema") === undefined || said("description") === undefined ? await comments(run, file) : {};
  const read = (...names) => said(...names) ?? names.map((name) => comment[name]).find((value) => value !== undefined);
  const preview = said("preview");
  return {
    run: (args, context) => run.call(instance, args, context),
    preview: typeof preview === "function" ? (args, context) => preview.call(instance, args, context) : undefined,
    listing: listing(id, read),
  };
}

/** What the author wrote above the function, for one that says nothing of itself. */
async function comments(run, file) {
  try {
    return describe(run, await readFile(file, "utf8"));
  } catch {
    return {};
  }
}

/** Also what a compiler made of a class for old engines. */
function isConstructor(value) {
  return /^class\b/.test(Function.prototype.toString.call(value)) || runnerOf(value.prototype) !== undefined;
}

function runnerOf(value) {
  return [value?.run, value?.execute].find((each) => typeof each === "function");
}

/** The entry of `tools/list`. */
function listing(id, read) {
  return {
    name: id,
    description: read("description") ?? "",
    inputSchema: schemaOf(read("parameters", "inputSchema")),
    annotations: read("annotations") ?? {},
    _meta: {
      "toolyard/preview": typeof read("preview") === "function",
      "toolyard/configKeys": read("configKeys") ?? [],
      "toolyard/parallel": read("parallel") ?? true,
    },
  };
}

/** A JSON Schema as it is, or what a schema library makes of its own kind. */
function schemaOf(given) {
  if (given === undefined) return { type: "object", properties: {} };
  return typeof given?.toJSONSchema === "function" ? given.toJSONSchema() : given;
}

/** An error in words, with what caused it. */
export function words(error) {
  if (typeof error === "string") return error;
  if (typeof error?.message !== "string") return inspect(error, { depth: 2 });
  const own = error.message || error.name || "an error without words";
  const cause = error.cause === undefined || error.cause === null ? "" : words(error.cause);
  return cause && !own.includes(cause) ? `${own} (${cause})` : own;
}

const PLACE = /((?:file:\/\/)?\/[^\n]*?):(\d+)(?::\d+)?\)?$/gm;
const OURS = dirname(fileURLToPath(import.meta.url)) + sep;

/** Where a module is at fault: the first place outside Node and this host that its error names. */
function placeOf(error) {
  for (const [, name, line] of String(error?.stack ?? "").replaceAll(/\(?node:.*$/gm, "").matchAll(PLACE)) {
    const file = name.startsWith("file:") ? fileURLToPath(name) : name;
    if (!file.startsWith(OURS)) return { file, line: Number(line) };
  }
  return undefined;
}

/** The errors of ES modules do not say where; a check of the file alone does. */
function syntaxPlace(file) {
  return new Promise((done) => {
    execFile(process.execPath, ["--check", file], (_, __, said) => done(placeOf({ stack: said })));
  });
}

/** What a tool returned, as `{ content, failed }`, parts in the form of MCP; undefined when it returned nothing. */
export function asAnswer(value) {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value.content) && value.content.every((part) => typeof part?.type === "string")) {
    return { content: bounded(value.content.map(asPart)), failed: value.isError === true };
  }
  const mixed = Array.isArray(value) && value.some(isPart);
  return { content: bounded(mixed ? value.map(asPart) : [asPart(value)]), failed: false };
}

/** Parts that fit into one message; the first that does not is named. */
function bounded(content) {
  let room = MOST_DATA;
  return content.map((part) => {
    room -= part.type === "text" ? 0 : JSON.stringify(part).length;
    return room >= 0 ? part : { type: "text", text: `[${part.type}: left out, since it is too much for one result]` };
  });
}

/** Whether a value is something else than text and data: bytes, or what MCP has a form for. */
function isPart(value) {
  if (value instanceof Uint8Array) return true;
  if (value?.type === "image" || value?.type === "audio") return typeof value.data === "string" || value.data instanceof Uint8Array;
  return (value?.type === "resource_link" && typeof value.uri === "string") || (value?.type === "resource" && typeof value.resource === "object");
}

/** A value as one part; what bytes are is found out from themselves, outside. */
function asPart(value) {
  if (value instanceof Uint8Array && value.byteLength <= MOST_DATA / 2) return { type: "bytes", data: base64(value) };
  if (isPart(value) && value.type) return value.data instanceof Uint8Array ? { ...value, data: base64(value.data) } : value;
  return { type: "text", text: value?.type === "text" ? String(value.text) : asText(value) };
}

function base64(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Any value as text: strings as they are, bytes as UTF-8, the rest as JSON. */
export function asText(value) {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return inspect(value, { depth: 6 }); // a circle, or a number that JSON does not have
  }
}
