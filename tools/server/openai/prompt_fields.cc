#include "tools/server/openai/prompt_fields.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

PlainPrompt ReadPrompt(const Field& field, int32_t vocab_size) {
  if (field.is_array()) return ReadTokens(field, vocab_size);
  std::string text;
  if (!field.is_string()) {
    field.FailType("a string or an array of tokens");
  } else {
    field.Get(&text);
  }
  return text;
}

}  // namespace

// A prompt may have very many: a Field for each would cost more than the tokens.
std::vector<int32_t> ReadTokens(const Field& field, int32_t vocab_size) {
  std::vector<int32_t> tokens;
  if (!field.is_array()) {
    field.FailType("an array of tokens");
    return tokens;
  }
  for (const Json& token : field.json()) {
    const bool whole = token.is_number_integer();
    const int64_t value = whole ? token.get<int64_t>() : -1;
    if (value < 0 || value >= vocab_size) {
      field.Fail(absl::StrCat("has ", whole ? absl::StrCat(value) : "something else", " as item ",
                              tokens.size(), ": expected a token from 0 to ", vocab_size - 1));
      return {};
    }
    tokens.push_back(static_cast<int32_t>(value));
  }
  if (tokens.empty()) field.Fail("is empty: expected at least one token");
  return tokens;
}

std::vector<PlainPrompt> ReadPrompts(const Field& field, int32_t vocab_size, size_t at_most) {
  std::vector<PlainPrompt> prompts;
  if (!field.Require()) return prompts;
  if (field.is_string()) {
    prompts.push_back(ReadPrompt(field, vocab_size));
  } else if (!field.is_array()) {
    field.FailType("a string, an array of strings, or tokens");
  } else if (field.json().empty()) {
    field.Fail("is empty: expected at least one text");
  } else if (field.json().front().is_number()) {
    prompts.push_back(ReadTokens(field, vocab_size));
  } else {
    for (const Field& item : field.Items(at_most)) {
      prompts.push_back(ReadPrompt(item, vocab_size));
    }
  }
  return prompts;
}

}  // namespace trine::server
