// Walks along what a constraint allows, for fuzz targets. A walk must never come to a dead end, and
// must write a text of the grammar.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/constraint/mask/constraint.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

inline void Require(bool condition) {
  if (!condition) std::abort();
}

// Makes a vocabulary of every byte by its number, some pairs of bytes, and an end.
inline ConstraintVocabulary FuzzVocabulary() {
  std::vector<std::string> texts;
  const auto add = [&](std::string_view bytes) { AppendAlphabet(bytes, &texts.emplace_back()); };
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add(std::string_view(&c, 1));
  }
  for (const char* text : {"ab", "aa", "\",", "\":", "{\"", "\"}", "]]", "12", "true", "\xC3\xA9",
                           "\xF0\x9F", ", \"", "abcabc", "--"}) {
    add(text);
  }
  TokenizerData data;
  data.tokens.assign(texts.begin(), texts.end());
  data.types.assign(texts.size(), TokenType::kNormal);
  data.tokens.push_back("<|im_end|>");
  data.types.push_back(TokenType::kControl);
  auto tokenizer = Tokenizer::Create(data);
  Require(tokenizer.ok());
  return ConstraintVocabulary::Of(*std::move(tokenizer));
}

// Returns the text that the walk wrote; "" if it would take too long to finish.
inline std::string Walk(const std::shared_ptr<const Constraint>& constraint, uint32_t seed) {
  constexpr int64_t kMost = 300;
  std::mt19937 random(seed);
  ConstraintState state(constraint);
  int64_t left = state.TokensToFinish() + static_cast<int64_t>(random() % 40);
  if (left > kMost) return "";
  const Tokenizer& tokenizer = constraint->tokenizer();
  std::vector<uint32_t> mask(constraint->mask_words());
  std::string text;
  for (; left > 0 && !state.ended(); --left) {
    state.Mask(left, mask);
    std::vector<int32_t> choices;
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) choices.push_back(id);
    }
    Require(!choices.empty());
    const int32_t token = choices[random() % choices.size()];
    const absl::Status status = state.Accept(token);
    if (absl::IsResourceExhausted(status)) return "";  // too many readings to follow
    Require(status.ok());
    text += tokenizer.TokenBytes(token);
  }
  Require(state.IsComplete());
  ConstraintState again(constraint);
  for (const char c : text) Require(again.Accept(static_cast<uint8_t>(c)).ok());
  Require(again.IsComplete());
  return text;
}

}  // namespace trine
