// SentencePiece's BPE: text is cut into characters, spaces written as U+2581, and the neighbours
// that together are the token of the highest score are merged first. A character that is no token
// becomes its bytes' tokens. Immutable; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_SPM_ENCODER_H_
#define TRINE_RUNTIME_TOKENIZER_SPM_ENCODER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/pair_merger.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

class SpmEncoder {
 public:
  // `data` has passed CheckTokenizerData. The vocabulary must outlive the encoder.
  SpmEncoder(const TokenizerData& data, const Vocabulary& vocabulary);

  // Appends the ids of `text`, with a space before it when `space_prefix`.
  void Encode(std::string_view text, bool space_prefix, std::vector<int32_t>* ids) const;

 private:
  void EncodeWord(std::string_view word, PairMerger* merger, std::vector<int32_t>* ids) const;
  void AppendCharacter(std::string_view character, std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary_;
  const int32_t unk_;
  std::vector<float> scores_;
  // No token has a space after something else, so that words can be encoded one by one.
  bool words_are_apart_ = true;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_SPM_ENCODER_H_
