// Renders every template with every conversation, here with @huggingface/jinja and there with
// Trine, and compares byte for byte; where one refuses, so must the other. Where the package departs
// from Jinja2 and Trine does not, differences.json has what Trine renders, and why.
//
//   parity.cjs RENDER_CASES FOLDER [GGUF_FOLDER]
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { Template } = require("@huggingface/jinja");

// The clock of render_cases.cc. The package reads it by new Date(), in the zone of the process.
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length > 0) super(...given);
    else super(2024, 6, 26, 14, 5, 9);
  }
};

function reference(one) {
  try {
    return { text: new Template(one.template).render(structuredClone(one.variables)) };
  } catch (error) {
    return { error: String(error.message) };
  }
}

// The value of a string in a GGUF file, found by its key: enough for a chat template.
function stringOf(file, key) {
  const bytes = fs.readFileSync(file);
  const at = bytes.indexOf(Buffer.from(key));
  if (at < 0 || bytes.readUInt32LE(at + key.length) !== 8) return undefined;
  const size = Number(bytes.readBigUInt64LE(at + key.length + 4));
  const begin = at + key.length + 12;
  return bytes.toString("utf8", begin, begin + size);
}

function loadCases(folder, models) {
  const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
  const cases = [];
  for (const one of read("features.json")) {
    cases.push({ name: one.name, template: one.template, variables: one.variables ?? {} });
  }
  const features = cases.length;
  const conversations = read("conversations.json");
  const templates = new Map();
  for (const file of fs.readdirSync(path.join(folder, "families")).sort()) {
    templates.set(file, fs.readFileSync(path.join(folder, "families", file), "utf8"));
  }
  for (const file of models && fs.existsSync(models) ? fs.readdirSync(models).sort() : []) {
    if (!file.endsWith(".gguf")) continue;
    const template = stringOf(path.join(models, file), "tokenizer.chat_template");
    if (template !== undefined) templates.set(file, template);
  }
  for (const [name, template] of templates) {
    for (const [conversation, variables] of Object.entries(conversations)) {
      cases.push({ name: `${name} with ${conversation}`, template, variables });
    }
  }
  return { cases, features, templates: templates.size };
}

const [program, folder, models] = process.argv.slice(2);
const { cases, features, templates } = loadCases(folder, models);
const output = execFileSync(program, { input: JSON.stringify(cases), maxBuffer: 1 << 30 });
const answers = JSON.parse(output.toString("utf8"));
const differences = JSON.parse(fs.readFileSync(path.join(folder, "differences.json"), "utf8"));

// The same text, or both refuse.
function agree(a, b) {
  return a.text === b.text && (a.error === undefined) === (b.error === undefined);
}

let failures = 0;
let refused = 0;
function fail(name, why, expected, actual) {
  ++failures;
  console.log(`FAILED ${name}: ${why}`);
  console.log(`  expected ${JSON.stringify(expected)}`);
  console.log(`  actual   ${JSON.stringify(actual)}`);
}
for (let i = 0; i < cases.length; ++i) {
  const { name, variables } = cases[i];
  const expected = reference(cases[i]);
  const actual = answers[i];
  const difference = differences[name];
  if (expected.text === undefined) ++refused;
  if (difference !== undefined) {
    delete differences[name];
    if (agree(expected, actual)) fail(name, "there is no difference any more", expected, actual);
    if (!agree(difference, actual)) fail(name, difference.why, difference, actual);
  } else if (!agree(expected, actual)) {
    fail(name, "not as @huggingface/jinja has it", expected, actual);
  } else if (variables.raised !== undefined && actual.error !== variables.raised) {
    fail(name, "not what was raised", variables.raised, actual);
  }
}
for (const name of Object.keys(differences)) fail(name, "differs, but is no case", {}, {});
console.log(
  `${cases.length} cases (${features} features, ${templates} templates), ` +
    `${refused} refused by the package, ${failures} failed`,
);
process.exit(failures === 0 && cases.length > 0 ? 0 : 1);
