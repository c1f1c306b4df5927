// Text to token ids and back, as the model's file says. Immutable and self-contained once created
// (it keeps no view into the data); any thread may call, several at once.
#ifndef TRINE_RUNTIME_TOKENIZER_TOKENIZER_H_
#define TRINE_RUNTIME_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace trine {

class BpeEncoder;
class Detokenizer;
class SpecialSplitter;
class SpmEncoder;
class Vocabulary;

struct EncodeOptions {
  // Begin and end with the tokens the file asks for (BOS, EOS).
  bool add_special = true;
  // Text such as <|im_end|> becomes that control token. Never for text that isn't trusted: without
  // it no text whatever gives a control token.
  bool parse_special = false;
  // The text begins one. False for text that goes on from other text: no space is put before it.
  bool at_start = true;
};

enum class SpecialText {
  kHide,  // control and unknown tokens contribute nothing
  kShow,  // they contribute their text
};

class Tokenizer {
 public:
  // INVALID_ARGUMENT when the data contradicts itself, UNIMPLEMENTED for an unknown pre-tokenizer.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Create(const TokenizerData& data);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Any bytes are text, NUL and invalid UTF-8 too (docs/tokenizer.md says what becomes of them). An
  // error only for text of 1 GiB and more.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text,
                                              const EncodeOptions& options = {}) const;

  // The bytes the tokens stand for, whether they are UTF-8 or not; without the space the encoder
  // put before the text. Detokenizer gives text that is always UTF-8, and gives it token by token.
  std::string Decode(absl::Span<const int32_t> ids, SpecialText special = SpecialText::kHide) const;

  // The bytes one token contributes; nothing for an id that isn't in the vocabulary.
  std::string_view TokenBytes(int32_t id, SpecialText special = SpecialText::kHide) const;

  // The token as the vocabulary writes it; nothing for an id that isn't in it.
  std::string_view TokenText(int32_t id) const;
  TokenType Type(int32_t id) const;  // kUndefined for an id that isn't in the vocabulary
  // The lowest id with this text, as the vocabulary writes it; kNoToken when there is none.
  int32_t FindToken(std::string_view text) const;

  // Generation ends with this token: EOS, end of turn, end of message and tokens known for it.
  bool IsEndOfGeneration(int32_t id) const;
  const std::vector<int32_t>& end_of_generation() const;  // ascending

  int32_t vocab_size() const;
  TokenizerModel model() const { return model_; }
  const std::string& pre_tokenizer() const { return pre_tokenizer_; }
  // kNoToken where the file has none.
  int32_t bos() const { return bos_; }
  int32_t eos() const { return eos_; }
  int32_t eot() const { return eot_; }
  int32_t eom() const { return eom_; }
  int32_t unk() const { return unk_; }
  int32_t pad() const { return pad_; }
  int32_t sep() const { return sep_; }
  bool adds_bos() const { return add_bos_; }
  bool adds_eos() const { return add_eos_; }
  bool adds_space_prefix() const { return add_space_prefix_; }

 private:
  friend class Detokenizer;
  Tokenizer();

  // TokenBytes, without the encoder's space when `*strip_space`, which the first token of text
  // clears.
  std::string_view NextBytes(int32_t id, SpecialText special, bool* strip_space) const;

  TokenizerModel model_ = TokenizerModel::kByteLevelBpe;
  std::string pre_tokenizer_;
  int32_t bos_ = kNoToken, eos_ = kNoToken, eot_ = kNoToken, eom_ = kNoToken;
  int32_t unk_ = kNoToken, pad_ = kNoToken, sep_ = kNoToken;
  bool add_bos_ = false, add_eos_ = false, add_space_prefix_ = false;
  std::unique_ptr<const Vocabulary> vocabulary_;
  std::vector<int32_t> end_of_generation_;
  std::unique_ptr<const SpecialSplitter> user_defined_;  // looked for in any text
  std::unique_ptr<const SpecialSplitter> all_special_;   // looked for where parsing is allowed
  std::unique_ptr<const BpeEncoder> bpe_;                // one of the two
  std::unique_ptr<const SpmEncoder> spm_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_TOKENIZER_H_
