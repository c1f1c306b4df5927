// Byte-level BPE: text is cut into words, a word into its bytes, and neighbours are merged in the
// order of the vocabulary's merges. Immutable; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_BPE_ENCODER_H_
#define TRINE_RUNTIME_TOKENIZER_BPE_ENCODER_H_

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
  // `data` has passed CheckTokenizerData. The vocabulary must outlive the encoder.
  static absl::StatusOr<std::unique_ptr<const BpeEncoder>> Create(const TokenizerData& data,
                                                                  const Vocabulary& vocabulary);

  // Appends the ids of `text`. A byte outside any UTF-8 character is kept as it is, if the
  // vocabulary has a token for it. A byte without one becomes the unknown token, else U+FFFD, else
  // nothing.
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
  // A symbol is a token's id, or from vocabulary_.size() on a text that merges mention but that is
  // no token.
  std::array<int32_t, 256> byte_symbols_;
  absl::flat_hash_map<std::string, int32_t> extra_symbols_;
  absl::flat_hash_map<uint64_t, Merge> merges_;  // by two symbols
  std::vector<int32_t> missing_byte_;            // what a byte without a token becomes
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_BPE_ENCODER_H_
