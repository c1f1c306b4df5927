// The part of JSON Schema that these tests use, checked independently of the server.
"use strict";
const assert = require("node:assert/strict");

function typeOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

const known = new Set(["type", "properties", "required", "additionalProperties", "items", "enum",
                       "minimum", "maximum", "minItems", "maxItems", "maxLength", "pattern",
                       "$schema", "description"]);

function assertFits(value, schema, at = "it") {
  for (const word of Object.keys(schema)) assert.ok(known.has(word), `${word} is not checked here`);
  const type = typeOf(value);
  assert.ok(type === schema.type || (type === "integer" && schema.type === "number"),
            `${at} is ${type}, not ${schema.type}`);
  if (schema.enum) assert.ok(schema.enum.includes(value), `${at} is ${value}`);
  if (schema.minimum !== undefined) assert.ok(value >= schema.minimum, `${at} is ${value}`);
  if (schema.maximum !== undefined) assert.ok(value <= schema.maximum, `${at} is ${value}`);
  if (schema.maxLength !== undefined) assert.ok([...value].length <= schema.maxLength, at);
  if (schema.pattern) assert.match(value, new RegExp(schema.pattern));
  if (type === "array") {
    assert.ok(value.length >= (schema.minItems ?? 0), `${at} is short`);
    assert.ok(value.length <= (schema.maxItems ?? Infinity), `${at} is long`);
    value.forEach((item, i) => assertFits(item, schema.items, `${at}[${i}]`));
  }
  if (type === "object") {
    for (const name of schema.required ?? []) assert.ok(name in value, `${at}.${name} is missing`);
    for (const [name, member] of Object.entries(value)) {
      if (!(name in schema.properties)) {
        assert.notEqual(schema.additionalProperties, false, `${at}.${name} is too much`);
      } else {
        assertFits(member, schema.properties[name], `${at}.${name}`);
      }
    }
  }
}

// What a tool takes, and what an answer may have to look like.
const weather = {
  type: "object",
  properties: {
    city: { type: "string", enum: ["Paris", "Rome", "Berlin"] },
    days: { type: "integer", minimum: 1, maximum: 14 },
    units: { type: "string", enum: ["celsius", "fahrenheit"] },
  },
  required: ["city", "days"],
  additionalProperties: false,
};

const hero = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 0, maximum: 120 },
    friends: { type: "array", minItems: 1, maxItems: 3, items: { type: "string", maxLength: 8 } },
    brave: { type: "boolean" },
  },
  required: ["name", "age", "friends", "brave"],
  additionalProperties: false,
};

module.exports = { assertFits, hero, weather };
