// Helpers for tests of constraints: make a vocabulary, and read a text byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/constraint/mask/constraint.h"
#include "runtime/tokenizer/test_vocabulary.h"

namespace trine {

// Returns a vocabulary of all bytes and of some runs that occur in JSON and prose.
inline ConstraintVocabulary SmallVocabulary() {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  const std::string_view merges[][2] = {
      {"a", "b"},      {"ab", "c"},    {"b", "c"},        {"a", "a"},       {"aa", "aa"},
      {"\"", ","},     {"\"", ":"},    {"\":", " "},      {"\": ", "\""},   {"{", "\""},
      {"\"", "}"},     {"]", "}"},     {"}", "}"},        {",", " "},       {", ", "\""},
      {"1", "2"},      {"12", "3"},    {"t", "rue"},      {"\xC3", "\xA9"}, {"\xF0", "\x9F"},
      {"name", "\":"}, {"\"", "name"}, {"\"name", "\":"}, {"\\", "n"}};
  for (const auto& [left, right] : merges) {
    vocabulary.Add(TestVocabulary::Alphabet(std::string(left).append(right)), TokenType::kNormal);
  }
  vocabulary.data().eos = vocabulary.Add("<|endoftext|>", TokenType::kControl);
  vocabulary.Add("<|control|>", TokenType::kControl);
  return ConstraintVocabulary::Of(vocabulary.Create());
}

inline std::shared_ptr<const Constraint> MustMakeGbnf(std::string_view text,
                                                      const ConstraintVocabulary& vocabulary) {
  auto made = Constraint::FromGbnf(text, vocabulary);
  EXPECT_TRUE(made.ok()) << made.status() << "\n" << text;
  return made.ok() ? *made : nullptr;
}

inline std::shared_ptr<const Constraint> MustMakeSchema(std::string_view text,
                                                        const ConstraintVocabulary& vocabulary) {
  auto made = Constraint::FromJsonSchema(text, vocabulary);
  EXPECT_TRUE(made.ok()) << made.status() << "\n" << text;
  return made.ok() ? *made : nullptr;
}

enum class Reading { kRefused, kBegun, kComplete };

// Reads a text byte by byte. REQUIRES: SmallVocabulary, in which a byte is its own id.
inline Reading Read(const std::shared_ptr<const Constraint>& constraint, std::string_view text) {
  ConstraintState state(constraint);
  for (const char c : text) {
    if (!state.Accept(static_cast<uint8_t>(c)).ok()) return Reading::kRefused;
  }
  return state.IsComplete() ? Reading::kComplete : Reading::kBegun;
}

inline bool IsSet(const std::vector<uint32_t>& mask, int32_t token) {
  return (mask[static_cast<size_t>(token) / 32] >> (static_cast<size_t>(token) % 32) & 1) != 0;
}

}  // namespace trine
