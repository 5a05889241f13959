// What the JSDoc comment above a function says: its description, and a JSON Schema of its argument.

const BLOCK = /\/\*\*([\s\S]*?)\*\//g;
// What may stand between a comment and the function that it is about.
const LEAD = /^(?:\s|export\b|default\b|async\b|static\b|(?:const|let|var)\s+[\w$]+\s*(?::[^=]*)?=|[\w$.]+\s*=|[\w$"']+\s*:|\()*$/;
const TAG = /^@(\w+)\s*([\s\S]*)$/;
const DEEPEST = 8; // of types that refer to others

/** What a comment says of a function; nothing when there is none. */
export function describe(run, text) {
  const blocks = [...text.matchAll(BLOCK)].map((found) => ({ end: found.index + found[0].length, ...readBlock(found[1]) }));
  const place = text.indexOf(Function.prototype.toString.call(run));
  const own = blocks.filter((block) => block.end <= place && LEAD.test(text.slice(block.end, place))).at(-1);
  if (!own) return {};
  const types = new Map(blocks.filter((block) => block.typedef).map((block) => [block.typedef.name, block.typedef.schema]));
  return { description: own.description, parameters: argumentSchema(own, types) };
}

function readBlock(comment) {
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\*? ?/, "").trimEnd());
  const [head, ...tags] = lines.reduce((parts, line) => (/^\s*@\w/.test(line) ? [...parts, line.trim()] : [...parts.slice(0, -1), `${parts.at(-1)}\n${line}`]), [""]);
  const read = tags.map((tag) => TAG.exec(tag)).filter(Boolean).map(([, name, text]) => ({ name, text: text.trim() }));
  const said = read.find(({ name }) => name === "description" || name === "desc");
  return { description: (head.trim() || said?.text) ?? "", params: read.filter(({ name }) => name === "param" || name === "arg").map(({ text }) => readField(text)).filter(Boolean), typedef: readTypedef(read) };
}

/** `@typedef {Object} Name` with its properties, or `@typedef {TYPE} Name`. */
function readTypedef(tags) {
  const tag = tags.find(({ name }) => name === "typedef");
  const [type, rest] = tag ? takeType(tag.text) : [];
  const name = /^[\w$]+/.exec(rest ?? "")?.[0];
  if (!name) return undefined;
  const fields = tags.filter(({ name }) => name === "property" || name === "prop").map(({ text }) => readField(text)).filter(Boolean);
  return { name, schema: fields.length || type === undefined ? { fields } : { type } };
}

/** `{TYPE} name - text`, where `[name]` and `[name=default]` may be left out. */
function readField(text) {
  const [type, rest] = takeType(text);
  const found = /^(?:\[\s*([\w$.]+)\s*(?:=\s*([^\]]*))?\]|([\w$.]+))\s*(?:-\s*)?([\s\S]*)$/.exec(rest);
  if (!found) return undefined;
  const [, optional, fallback, name, description] = found;
  return { type: type ?? "*", name: optional ?? name, required: optional === undefined && !type?.endsWith("="), fallback, description: description.replace(/\s*\n\s*/g, " ").trim() };
}

/** The type in braces at the beginning of a text, and what follows it. */
function takeType(text) {
  if (!text.startsWith("{")) return [undefined, text];
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    if (text[index] === "{") depth += 1;
    if (text[index] === "}") depth -= 1;
    if (depth === 0) return [text.slice(1, index).trim(), text.slice(index + 1).trim()];
  }
  return [undefined, text];
}

/** The one argument of a tool: what its type says, with what is said of its fields one by one. */
function argumentSchema({ params, typedef }, types) {
  const [first] = params;
  if (!first) return typedef ? schemaOf(typedef.schema, types, 0) : undefined;
  const inner = params.filter(({ name }) => name.startsWith(`${first.name}.`)).map((field) => ({ ...field, name: field.name.slice(first.name.length + 1) }));
  if (inner.length) return objectSchema(inner.filter(({ name }) => !name.includes(".")), types, 0);
  const schema = typeSchema(first.type, types, 0);
  return schema.type === "object" ? schema : undefined;
}

function schemaOf(declared, types, depth) {
  return declared.fields ? objectSchema(declared.fields, types, depth) : typeSchema(declared.type, types, depth);
}

function objectSchema(fields, types, depth) {
  const properties = {};
  for (const { name, type, description, fallback } of fields) {
    properties[name] = { ...typeSchema(type, types, depth + 1), ...(description && { description }) };
    const value = fallback === undefined ? undefined : asValue(fallback, properties[name]);
    if (value !== undefined) properties[name].default = value;
  }
  const required = fields.filter((field) => field.required).map(({ name }) => name);
  return { type: "object", properties, ...(required.length && { required }) };
}

/** A default as it is written in a comment. */
function asValue(text, schema) {
  const word = text.trim();
  try {
    return JSON.parse(word.replace(/^'(.*)'$/, (_, inner) => JSON.stringify(inner)));
  } catch {
    return schema.type === "string" ? word : undefined;
  }
}

const NAMES = {
  string: "string", str: "string", number: "number", float: "number", integer: "integer", int: "integer",
  boolean: "boolean", bool: "boolean", object: "object", null: "null",
};

/** A type of JSDoc or TypeScript; one that is not known allows anything. */
function typeSchema(written, types, depth) {
  const text = unwrapped(written.replace(/=$/, "").trim());
  const branches = split(text, "|");
  if (branches.length > 1) return unionSchema(branches, types, depth);
  if (/^[?!]/.test(text)) return text.startsWith("!") ? typeSchema(text.slice(1), types, depth) : unionSchema([text.slice(1), "null"], types, depth);
  if (text.endsWith("[]")) return { type: "array", items: typeSchema(text.slice(0, -2), types, depth + 1) };
  if (/^['"`\d-]|^(?:true|false)$/.test(text)) return choiceSchema([text]);
  if (text.startsWith("{") && text.endsWith("}")) return objectSchema(recordFields(text.slice(1, -1)), types, depth);
  const generic = /^(\w+)\.?<(.*)>$/s.exec(text);
  if (generic) return genericSchema(generic[1].toLowerCase(), split(generic[2], ","), types, depth);
  if (text.toLowerCase() === "array") return { type: "array", items: {} };
  if (types.has(text) && depth < DEEPEST) return schemaOf(types.get(text), types, depth + 1);
  const name = NAMES[text.toLowerCase()];
  return name ? { type: name } : {};
}

function genericSchema(name, inner, types, depth) {
  const last = typeSchema(inner.at(-1), types, depth + 1);
  if (["array", "set", "readonlyarray", "iterable"].includes(name)) return { type: "array", items: last };
  return ["object", "record", "map"].includes(name) ? { type: "object", additionalProperties: last } : name === "promise" ? last : {};
}

function unionSchema(branches, types, depth) {
  const left = branches.map((branch) => branch.trim()).filter((branch) => branch && branch !== "undefined");
  if (left.every((branch) => /^(?:'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?|true|false)$/.test(branch))) return choiceSchema(left);
  // Without quotes, words that are no types are choices as well.
  if (left.every((branch) => /^\w+$/.test(branch) && !NAMES[branch.toLowerCase()] && !types.has(branch))) return { type: "string", enum: left };
  const schemas = left.map((branch) => typeSchema(branch, types, depth + 1));
  return schemas.length === 1 ? schemas[0] : { anyOf: schemas };
}

function choiceSchema(words) {
  const values = words.map((word) => (/^['"`]/.test(word) ? word.slice(1, -1) : JSON.parse(word)));
  const kinds = new Set(values.map((value) => typeof value));
  return kinds.size === 1 ? { type: [...kinds][0], enum: values } : { enum: values };
}

/** The fields of `{a: TYPE, b?: TYPE}`. */
function recordFields(text) {
  return split(text, ",").flatMap((part) => split(part, ";")).map((part) => /^\s*["']?([\w$-]+)["']?(\?)?\s*:\s*([\s\S]+)$/.exec(part)).filter(Boolean)
    .map(([, name, optional, type]) => ({ name, type: type.trim(), required: !optional, description: "" }));
}

/** A text without brackets around the whole of it. */
function unwrapped(text) {
  return text.startsWith("(") && text.endsWith(")") && split(text.slice(1, -1), ")").length === 1 ? unwrapped(text.slice(1, -1).trim()) : text;
}

/** Divide at a sign, but not inside brackets or quotes. */
function split(text, sign) {
  const parts = [""];
  let depth = 0;
  let quote = "";
  for (const char of text) {
    if (quote ? char === quote : /['"`]/.test(char)) quote = quote ? "" : char;
    else if (!quote && /[({[<]/.test(char)) depth += 1;
    else if (!quote && depth && /[)}\]>]/.test(char)) depth -= 1;
    if (char === sign && !depth && !quote) parts.push("");
    else parts[parts.length - 1] += char;
  }
  return parts;
}
