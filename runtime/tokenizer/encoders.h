// Byte-level BPE: cuts text into words and each word into its bytes, and merges neighbours in the
// order of the vocabulary's merges. Immutable; any thread may use it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tokenizer/pair_merger.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

class BpeEncoder {
 public:
  // REQUIRES: `data` has passed CheckTokenizerData. The vocabulary must outlive the encoder.
  static absl::StatusOr<std::unique_ptr<const BpeEncoder>> Create(const TokenizerData& data,
                                                                  const Vocabulary& vocabulary);

  // Appends the ids of `text`. Keeps a byte that is part of no UTF-8 character if there is a token
  // for it. A byte without a token becomes the unknown token; if there is none, U+FFFD; and if that
  // has no tokens, nothing.
  absl::Status Encode(std::string_view text, std::vector<int32_t>* ids) const;

 private:
  struct Merge {
    int32_t rank;
    int32_t symbol;
  };

  explicit BpeEncoder(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  absl::Status ReadMerges(const TokenizerData& data);
  int32_t Intern(std::string_view text);
  void EncodeWord(std::string_view word, PairMerger* merger, std::vector<int32_t>* ids) const;
  void AppendSymbol(const Symbol& symbol, std::string_view word, std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary_;
  bool whole_words_ = false;
  std::unique_ptr<const PreTokenizer> pre_tokenizer_;
  // A symbol is a token's id or, if it is at least vocabulary_.size(), a text that occurs in a
  // merge and is no token.
  std::array<int32_t, 256> byte_symbols_;
  absl::flat_hash_map<std::string, int32_t> extra_symbols_;
  absl::flat_hash_map<uint64_t, Merge> merges_;  // by pair of symbols
  std::vector<int32_t> missing_byte_;            // the ids for a byte without a token
};

// SentencePiece's BPE: cuts text into characters, with spaces written as U+2581, and merges first
// the neighbours that together are the token with the highest score. A character that is no token
// becomes the tokens of its bytes. Immutable; any thread may use it.
class SpmEncoder {
 public:
  // REQUIRES: `data` has passed CheckTokenizerData. The vocabulary must outlive the encoder.
  SpmEncoder(const TokenizerData& data, const Vocabulary& vocabulary);

  // Appends the ids of `text`, with a space before it if `space_prefix`.
  void Encode(std::string_view text, bool space_prefix, std::vector<int32_t>* ids) const;

 private:
  void EncodeWord(std::string_view word, PairMerger* merger, std::vector<int32_t>* ids) const;
  void AppendCharacter(std::string_view character, std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary_;
  const int32_t unk_;
  std::vector<float> scores_;
  // No token has a space after another character, so words can be encoded one by one.
  bool words_are_apart_ = true;
};

}  // namespace trine
