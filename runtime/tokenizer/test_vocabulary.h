// Builds small vocabularies, and random texts, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

// A vocabulary that tokens are added to. It owns all texts.
class TestVocabulary {
 public:
  // Returns a byte-level vocabulary of 256 tokens, in which a byte is its own id.
  static TestVocabulary ByteLevel(std::string_view pre_tokenizer = "gpt-2") {
    TestVocabulary vocabulary;
    vocabulary.data_.model = TokenizerModel::kByteLevelBpe;
    vocabulary.data_.pre_tokenizer = std::string(pre_tokenizer);
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      vocabulary.Add(Alphabet(std::string_view(&c, 1)), TokenType::kNormal);
    }
    return vocabulary;
  }
  // Returns a SentencePiece vocabulary of <unk>, <s>, </s> and 256 byte tokens, with ids 0 to 258.
  static TestVocabulary SentencePiece() {
    TestVocabulary vocabulary;
    vocabulary.data_.model = TokenizerModel::kSentencePiece;
    vocabulary.data_.unk = vocabulary.AddPiece("<unk>", 0, TokenType::kUnknown);
    vocabulary.data_.bos = vocabulary.AddPiece("<s>", 0, TokenType::kControl);
    vocabulary.data_.eos = vocabulary.AddPiece("</s>", 0, TokenType::kControl);
    vocabulary.data_.add_bos = true;
    vocabulary.data_.add_space_prefix = true;
    for (int byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof(text), "<0x%02X>", byte);
      vocabulary.AddPiece(text, 0, TokenType::kByte);
    }
    return vocabulary;
  }

  // Returns bytes as byte-level vocabularies write them: one printable character for each.
  static std::string Alphabet(std::string_view bytes) {
    std::string text;
    AppendAlphabet(bytes, &text);
    return text;
  }

  // Add a token and return its id. Add takes the text as the vocabulary writes it, AddPiece, too,
  // with SentencePiece's score. AddMerge takes plain bytes: it adds the merge of two byte-level
  // tokens, and the token that they become.
  int32_t Add(std::string_view text, TokenType type) {
    data_.tokens.push_back(Own(std::string(text)));
    data_.types.push_back(type);
    return static_cast<int32_t>(data_.tokens.size()) - 1;
  }
  int32_t AddPiece(std::string_view text, float score, TokenType type = TokenType::kNormal) {
    data_.scores.push_back(score);
    return Add(text, type);
  }
  int32_t AddMerge(std::string_view left, std::string_view right) {
    data_.merges.push_back(Own(Alphabet(left) + " " + Alphabet(right)));
    return Add(Alphabet(std::string(left).append(right)), TokenType::kNormal);
  }
  // Keeps a text as long as the vocabulary lives.
  std::string_view Own(std::string text) { return strings_.emplace_back(std::move(text)); }

  TokenizerData& data() { return data_; }

  // Makes the tokenizer, which may outlive the vocabulary. Fails the test, and returns null, if it
  // can't.
  std::shared_ptr<const Tokenizer> Create() const {
    auto tokenizer = Tokenizer::Create(data_);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
  }

 private:
  TokenizerData data_;
  std::deque<std::string> strings_;  // views into its strings stay valid
};

inline std::string RandomBytes(std::mt19937* random, size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)() & 0xFF);
  return bytes;
}

// Returns valid UTF-8 of characters of all lengths.
inline std::string RandomUnicode(std::mt19937* random, size_t characters) {
  // Half of it is ASCII, in which the characters that pre-tokenizers look for are frequent.
  static constexpr char kFavourites[] = "  \t\r\n'sSllreVE aZ09.,!<|>";
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    switch ((*random)() % 8) {
      case 0:
        AppendUtf8((*random)() % 0x80, &text);
        break;
      case 1:
        AppendUtf8(0x80 + (*random)() % 0x780, &text);
        break;
      case 2: {
        const uint32_t code_point = 0x800 + (*random)() % 0xF800;
        AppendUtf8(code_point >= 0xD800 && code_point < 0xE000 ? 0x4E00 : code_point, &text);
        break;
      }
      case 3:
        AppendUtf8(0x10000 + (*random)() % 0x100000, &text);
        break;
      default:
        text += kFavourites[(*random)() % (sizeof(kFavourites) - 1)];
    }
  }
  return text;
}

// Returns `count` bytes, each of them one of `letters`.
inline std::string RandomText(std::mt19937* random, std::string_view letters, size_t count) {
  std::string text(count, '\0');
  for (char& c : text) c = letters[(*random)() % letters.size()];
  return text;
}

}  // namespace trine
