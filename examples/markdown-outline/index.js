// Two tools in one package: the default export, and one by its name.
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

const file = { type: "string", description: "The Markdown file, relative to the working directory." };

export default {
  description: "List the headings of a Markdown file with their line numbers.",
  parameters: {
    type: "object",
    properties: {
      file,
      depth: { type: "integer", minimum: 1, maximum: 6, default: 6, description: "How many levels of headings." },
    },
    required: ["file"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  configKeys: ["outline_mark"],

  preview: ({ file, depth }) => `outline of ${file}, ${depth} deep`,

  // Each heading is seen as soon as it is found, however long the file.
  async *run({ file, depth }, { signal, config }) {
    let number = 0;
    let inCode = false;
    for await (const line of createInterface({ input: createReadStream(file, { signal }) })) {
      number += 1;
      if (/^(```|~~~)/.test(line)) inCode = !inCode;
      const found = !inCode && /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
      if (found && found[1].length <= depth) {
        yield `${"  ".repeat(found[1].length - 1)}${config.outline_mark ?? "-"} ${found[2]} (${number})\n`;
      }
    }
  },
};

export const links = {
  description: "List the links of a Markdown file.",
  parameters: { type: "object", properties: { file }, required: ["file"], additionalProperties: false },
  annotations: { readOnlyHint: true },

  // A value that is not text is given to the model as JSON.
  async run({ file }, { signal }) {
    const text = await readFile(file, { encoding: "utf8", signal });
    return [...text.matchAll(/\[([^\]]*)\]\(([^)\s]+)\)/g)].map(([, title, target]) => ({ title, target }));
  },
};
