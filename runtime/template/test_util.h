// Helpers for the tests of templates.
#pragma once

#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "runtime/template/template.h"
#include "runtime/template/values/print.h"

namespace trine::jinja {

// Converts {"name": value, ...} to variables.
inline Variables FromJson(std::string_view json) {
  const auto object = ParseJson(json, "the test's variables");
  EXPECT_TRUE(object.ok()) << object.status();
  Variables variables;
  for (const Dict::Entry& entry : object->dict().entries()) {
    variables.emplace_back(entry.key.bytes(), entry.value);
  }
  return variables;
}

inline absl::StatusOr<Text> RenderText(std::string_view source, std::string_view json = "{}",
                                       const RenderOptions& options = {}) {
  const auto parsed = Template::Parse(std::string(source));
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(FromJson(json), options);
}

// Returns the rendered text, or "error: " and the message.
inline std::string Rendered(std::string_view source, std::string_view json = "{}") {
  const auto text = RenderText(source, json);
  return text.ok() ? text->bytes() : "error: " + std::string(text.status().message());
}

}  // namespace trine::jinja
