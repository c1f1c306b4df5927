#include "tools/server/openai/format_fields.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

void Set(const Field& field, ConstraintText::Kind kind, std::string text, ConstraintText* out) {
  if (out->kind != ConstraintText::Kind::kNone) {
    return field.Fail(absl::StrCat("and '", out->param, "' both say what the answer looks like"));
  }
  *out = ConstraintText{.kind = kind, .text = std::move(text), .param = field.path()};
}

void SetSchema(const Field& schema, ConstraintText* out) {
  // JSON Schema also knows true and false.
  if (!schema.is_object() && !schema.is_bool()) return schema.FailType("a JSON schema");
  Set(schema, ConstraintText::Kind::kJsonSchema, Dump(schema.json()), out);
}

}  // namespace

void ReadFormatObject(const Field& format, bool flat, ConstraintText* constraint) {
  if (!format.present()) return;
  if (!format.is_object()) return format.FailType("an object");
  std::string type, name;
  if (!format["type"].Require()) return;
  format["type"].Get(&type);
  if (type == "text") return;
  if (type == "json_object") {
    if (!flat && format["schema"].present()) return SetSchema(format["schema"], constraint);
    return Set(format, ConstraintText::Kind::kJsonSchema, R"({"type":"object"})", constraint);
  }
  if (type != "json_schema") {
    return format["type"].Fail(
        absl::StrCat("is '", type, "': expected 'text', 'json_object' or 'json_schema'"));
  }
  const Field holder = flat ? format : format["json_schema"];
  if (!holder.Require()) return;
  holder["name"].Get(&name);
  bool strict = false;
  holder["strict"].Get(&strict);
  if (holder["schema"].Require()) SetSchema(holder["schema"], constraint);
}

void ReadFormat(const Field& root, GenerationRequest* request) {
  ConstraintText& constraint = request->constraint;
  ReadFormatObject(root["response_format"], false, &constraint);
  if (root["json_schema"].present()) SetSchema(root["json_schema"], &constraint);
  std::string grammar;
  root["grammar"].Get(&grammar);
  if (!grammar.empty()) {
    Set(root["grammar"], ConstraintText::Kind::kGbnf, std::move(grammar), &constraint);
  }
  if (constraint.kind != ConstraintText::Kind::kNone && request->ignore_eos) {
    root["ignore_eos"].Fail("is true: an answer of a given form has to end");
  }
}

}  // namespace trine::server
