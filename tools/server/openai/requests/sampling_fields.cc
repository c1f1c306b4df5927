#include "tools/server/openai/requests/sampling_fields.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

constexpr size_t kMaxStops = 16;
constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxTokens = int64_t{1} << 53;

void ReadStop(const Field& field, std::vector<std::string>* stop) {
  const auto add = [stop](const Field& text) {
    std::string value = text.Text();
    if (value.empty()) return text.Fail("is empty: expected a text to stop at");
    stop->push_back(std::move(value));
  };
  if (!field.present()) return;
  if (field.is_string()) return add(field);
  if (!field.is_array()) return field.FailType("a string or an array of strings");
  for (const Field& item : field.Items(kMaxStops)) {
    if (!item.is_string()) return item.FailType("a string");
    add(item);
  }
}

// Reads a number, or false for a token that must not come.
void ReadBias(const Field& value, int32_t token, std::vector<LogitBias>* out) {
  if (!value.present()) return;
  LogitBias bias{.token = token};
  if (value.is_bool() && !value.json().get<bool>()) {
    bias.bias = -std::numeric_limits<float>::infinity();
  } else if (value.is_number()) {
    value.Get(&bias.bias, -1e6, 1e6);
  } else {
    return value.FailType("a number, or false");
  }
  out->push_back(bias);
}

// Reads {"15043": -100}, or llama.cpp's [[15043, -100], [2, false]].
void ReadLogitBias(const Field& field, const RequestDefaults& defaults,
                   std::vector<LogitBias>* out) {
  const size_t at_most = static_cast<size_t>(defaults.vocab_size);
  if (!field.present()) return;
  if (field.is_array()) {
    for (const Field& item : field.Items(at_most)) {
      const std::vector<Field> pair = item.Items(2);
      if (item.failed()) return;
      if (pair.size() != 2) return item.FailType("a token and its bias");
      if (!pair[0].is_number()) return pair[0].FailType("a token");
      int32_t token = 0;
      pair[0].Get(&token, 0, defaults.vocab_size - 1);
      ReadBias(pair[1], token, out);
    }
    return;
  }
  if (!field.is_object()) return field.FailType("an object of tokens and their bias");
  for (const auto& [name, value] : field.Members(at_most)) {
    int32_t token = -1;
    if (!absl::SimpleAtoi(name, &token) || token < 0 || token >= defaults.vocab_size) {
      return value.Fail(
          absl::StrCat("is no token: expected a number from 0 to ", defaults.vocab_size - 1));
    }
    ReadBias(value, token, out);
  }
}

void ReadStages(const Field& field, std::vector<SamplerStage>* stages) {
  if (!field.present()) return;
  std::string names;
  if (field.is_array()) {
    for (const Field& item : field.Items(64)) {
      if (!item.is_string()) return item.FailType("a string");
      absl::StrAppend(&names, names.empty() ? "" : ";", item.Text());
    }
  } else {
    names = field.Text();
  }
  if (field.failed()) return;
  auto parsed = ParseStageOrder(names);
  if (!parsed.ok()) return field.Fail(absl::StrCat("is wrong: ", parsed.status().message()));
  *stages = *std::move(parsed);
}

void ReadMirostat(const Field& root, SamplerOptions* s) {
  root["mirostat"].Get(&s->mirostat, 0, 2);
  if (s->mirostat == 1) root["mirostat"].Fail("is 1: expected 0 (off) or 2 (mirostat 2.0)");
  root["mirostat_tau"].Get(&s->mirostat_tau, 0, 1e3);
  root["mirostat_eta"].Get(&s->mirostat_eta, 0, 1);
}

// Accepts the ranges that the sampler accepts.
void ReadSamplerOptions(const Field& root, const RequestDefaults& defaults, SamplerOptions* s) {
  root["temperature"].Get(&s->temp, 0, 1e6);
  root["top_k"].Get(&s->top_k, -1, kMaxInt);
  s->top_k = std::max(s->top_k, 0);  // some clients write -1 for off
  root["top_p"].Get(&s->top_p, 0, 1);
  root["min_p"].Get(&s->min_p, 0, 1);
  root["typical_p"].Get(&s->typical_p, 0, 1);
  root["repeat_last_n"].Get(&s->repeat_last_n, -1, 1 << 20);
  root["repeat_penalty"].Get(&s->repeat_penalty, 1e-3, 1e3);
  root["frequency_penalty"].Get(&s->frequency_penalty, -1e3, 1e3);
  root["presence_penalty"].Get(&s->presence_penalty, -1e3, 1e3);
  root["min_keep"].Get(&s->min_keep, 0, kMaxInt);
  ReadMirostat(root, s);
  ReadStages(root["samplers"], &s->stages);
  ReadLogitBias(root["logit_bias"], defaults, &s->logit_bias);
}

void Set(const Field& field, ConstraintText::Kind kind, std::string text, ConstraintText* out) {
  if (out->kind != ConstraintText::Kind::kNone) {
    return field.Fail(absl::StrCat("and '", out->param, "' both say what the answer looks like"));
  }
  *out = ConstraintText{.kind = kind, .text = std::move(text), .param = field.path()};
}

void SetSchema(const Field& schema, ConstraintText* out) {
  // true and false are JSON schemas, too.
  if (!schema.is_object() && !schema.is_bool()) return schema.FailType("a JSON schema");
  Set(schema, ConstraintText::Kind::kJsonSchema, Dump(schema.json()), out);
}

}  // namespace

std::optional<uint64_t> ReadSeed(const Field& field) {
  if (!field.present()) return std::nullopt;
  if (field.json().is_number_unsigned()) return field.json().get<uint64_t>();
  int64_t value = -1;
  field.Get(&value, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  if (value == -1) return std::nullopt;  // means a random seed to llama.cpp
  return static_cast<uint64_t>(value);
}

void ReadSampling(const Field& root, const RequestDefaults& defaults, GenerationRequest* request) {
  request->sampler = defaults.sampler;
  ReadSamplerOptions(root, defaults, &request->sampler);
  request->seed = ReadSeed(root["seed"]);
  if (request->seed) request->sampler.seed = *request->seed;
  ReadStop(root["stop"], &request->stop);
  root["n"].Get(&request->n, 1, defaults.max_choices);
  root["ignore_eos"].Get(&request->ignore_eos);
  root["stream"].Get(&request->stream);
  root["stream_options"]["include_usage"].Get(&request->include_usage);
  root["model"].Get(&request->model);
  root["user"].Get(&request->user);
}

void ReadMaxTokens(const Field& root, std::initializer_list<const char*> names, int64_t low,
                   GenerationRequest* request) {
  for (const char* const name : names) {
    const Field field = root[name];
    int64_t value = -1;
    field.Get(&value, -1, kMaxTokens);
    if (value >= 0 && value < low) {
      field.Fail(absl::StrCat("is ", value, ": expected at least ", low));
    }
    if (value >= 0 && !request->max_tokens.has_value()) request->max_tokens = value;
  }
}

void ReadFormatObject(const Field& format, bool flat, ConstraintText* constraint) {
  if (!format.present()) return;
  if (!format.is_object()) return format.FailType("an object");
  if (!format["type"].Require()) return;
  const std::string type = format["type"].Text();
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
  holder["name"].Text();
  holder["strict"].Or(false);
  if (holder["schema"].Require()) SetSchema(holder["schema"], constraint);
}

void ReadFormat(const Field& root, GenerationRequest* request) {
  ConstraintText& constraint = request->constraint;
  ReadFormatObject(root["response_format"], false, &constraint);
  if (root["json_schema"].present()) SetSchema(root["json_schema"], &constraint);
  std::string grammar = root["grammar"].Text();
  if (!grammar.empty()) {
    Set(root["grammar"], ConstraintText::Kind::kGbnf, std::move(grammar), &constraint);
  }
  if (constraint.kind != ConstraintText::Kind::kNone && request->ignore_eos) {
    root["ignore_eos"].Fail("is true: an answer of a given form has to end");
  }
}

}  // namespace trine::server
