// Renders any bytes as a template, with a conversation that has something of everything. The
// template is refused with a message, or gives valid UTF-8 within the limits, the same each time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/template/template.h"
#include "runtime/template/values/print.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::jinja {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "system", "content": " be <|im_end|> k\u00efnd "},
               {"role": "user", "content": "a\nb\ud83d\ude00"},
               {"role": "assistant", "content": null, "tool_calls": [
                 {"id": "c1", "function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
  "add_generation_prompt": true, "bos_token": "<s>", "n": -7, "r": 0.5, "l": [3, 1, 2], "d": {"b": 1, "a": 2}})";

Limits SmallLimits() {
  Limits limits;
  limits.steps = 20000;
  limits.memory = 4 << 20;
  limits.output = 1 << 20;
  return limits;
}

void Render(std::string_view source) {
  const auto parsed = Template::Parse(std::string(source));
  if (!parsed.ok()) {
    Require(!parsed.status().message().empty());
    return;
  }
  static const Value given = *ParseJson(kVariables, "variables");
  Variables variables;
  for (const Dict::Entry& entry : given.dict().entries()) {
    variables.emplace_back(entry.key.bytes(), entry.value);
  }
  RenderOptions options;
  options.limits = SmallLimits();
  options.now = std::tm{};
  const auto text = parsed->Render(variables, options);
  const auto again = parsed->Render(variables, options);
  Require(text.ok() == again.ok());
  if (!text.ok()) return;
  Require(text->bytes() == again->bytes() && text->foreign() == again->foreign());
  Require(FindInvalidUtf8(text->bytes()) == text->size());
  size_t end = 0;
  for (const Text::Span& span : text->foreign()) {
    Require(span.begin >= end && span.begin < span.end && span.end <= text->size());
    end = span.end;
  }
}

}  // namespace
}  // namespace trine::jinja

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  trine::jinja::Render(bytes);
  (void)trine::jinja::ParseJson(bytes, "it");
  return 0;
}
