// Holds constrained answers to their schemas with a validator that knows nothing of Trine.
//
//   validate.js CONSTRAINED-ANSWERS
//
// Every answer that is called complete must be JSON and satisfy its schema; at most 2 % may be cut.
'use strict';
const {execFileSync} = require('child_process');
const Ajv = require('ajv/dist/2020');
const addFormats = require('ajv-formats');

const count = process.env.TRINE_LONG ? 5000 : 150;
const lines = execFileSync(process.argv[2], [String(count)], {
  encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'],
}).trim().split('\n').map((line) => JSON.parse(line));

// How often each keyword was put to the test, so that an empty one would be seen.
const keywords = new Map();
const note = (schema) => {
  if (schema === null || typeof schema !== 'object') return;
  for (const [key, value] of Object.entries(schema)) {
    if (!Array.isArray(schema)) keywords.set(key, (keywords.get(key) || 0) + 1);
    note(value);
  }
};

let cut = 0, wrong = 0;
for (const {schema, text, complete} of lines) {
  note(schema);
  if (!complete) {
    cut += 1;
    continue;
  }
  const ajv = addFormats(new Ajv({strict: false, allErrors: true}));
  let why = '';
  try {
    const validate = ajv.compile(schema);
    if (!validate(JSON.parse(text))) why = ajv.errorsText(validate.errors);
  } catch (error) {
    why = String(error);
  }
  if (why) {
    wrong += 1;
    console.log(`WRONG: ${why}\n  schema: ${JSON.stringify(schema)}\n  answer: ${text}`);
  }
}
console.log(`${lines.length} answers: ${lines.length - cut - wrong} valid, ${cut} cut, ${wrong} wrong`);
const expected = ['minimum', 'exclusiveMaximum', 'multipleOf', 'pattern', 'format', 'maxLength',
  'enum', 'const', 'anyOf', 'oneOf', 'allOf', '$ref', 'prefixItems', 'patternProperties',
  'additionalProperties', 'minProperties', 'maxProperties'];
const untested = expected.filter((keyword) => !keywords.has(keyword));
if (untested.length > 0) console.log(`never met: ${untested.join(', ')}`);
const failed = wrong > 0 || lines.length !== count || cut > 0.02 * count || untested.length > 0;
process.exit(failed ? 1 : 0);
