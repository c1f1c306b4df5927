// Converts text to token ids and back, as the model's file says. Immutable, and keeps no view into
// the data that it was made from; several threads may call it at once.
#pragma once

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
  // true: adds the tokens that the file asks for at the beginning and the end (BOS, EOS).
  bool add_special = true;
  // true: text such as <|im_end|> becomes the control token of this name. Must be false for
  // untrusted text: then no text becomes a control token.
  bool parse_special = false;
  // true: the text begins a sequence. false: it continues other text and gets no space prefix.
  bool at_start = true;
};

enum class SpecialText {
  kHide,  // control and unknown tokens give no text
  kShow,  // control and unknown tokens give their text
};

class Tokenizer {
 public:
  // Returns INVALID_ARGUMENT if the data contradicts itself, and UNIMPLEMENTED for an unknown
  // pre-tokenizer.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Create(const TokenizerData& data);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Encodes any bytes, including NUL and invalid UTF-8 (docs/tokenizer.md says how). Fails only for
  // text of 1 GiB or more.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text,
                                              const EncodeOptions& options = {}) const;

  // Returns the bytes of the tokens without the space that the encoder put before the text. The
  // bytes need not be UTF-8. Detokenizer gives text token by token, and always as UTF-8.
  std::string Decode(absl::Span<const int32_t> ids, SpecialText special = SpecialText::kHide) const;

  // Returns the bytes of one token, or "" for an id that isn't in the vocabulary.
  std::string_view TokenBytes(int32_t id, SpecialText special = SpecialText::kHide) const;

  // Returns the token as the vocabulary writes it, or "" for an id that isn't in the vocabulary.
  std::string_view TokenText(int32_t id) const;
  TokenType Type(int32_t id) const;  // kUndefined for an id that isn't in the vocabulary
  // Returns the lowest id with this text, as the vocabulary writes it, or kNoToken.
  int32_t FindToken(std::string_view text) const;

  // Returns whether generation ends with this token: EOS, end of turn, end of message, and other
  // tokens known for it.
  bool IsEndOfGeneration(int32_t id) const;
  const std::vector<int32_t>& end_of_generation() const;  // ascending

  int32_t vocab_size() const;
  TokenizerModel model() const { return model_; }
  const std::string& pre_tokenizer() const { return pre_tokenizer_; }
  // These are kNoToken if the file does not name such a token.
  int32_t bos() const { return bos_; }
  int32_t eos() const { return eos_; }
  int32_t eot() const { return eot_; }
  int32_t eom() const { return eom_; }
  int32_t unk() const { return unk_; }
  int32_t pad() const { return pad_; }
  int32_t sep() const { return sep_; }
  bool adds_bos() const { return add_bos_; }
  bool adds_space_prefix() const { return add_space_prefix_; }

 private:
  friend class Detokenizer;
  Tokenizer();

  // Returns TokenBytes, without the encoder's space if `*strip_space`. The first token with text
  // clears `*strip_space`.
  std::string_view NextBytes(int32_t id, SpecialText special, bool* strip_space) const;

  TokenizerModel model_ = TokenizerModel::kByteLevelBpe;
  std::string pre_tokenizer_;
  int32_t bos_ = kNoToken, eos_ = kNoToken, eot_ = kNoToken, eom_ = kNoToken;
  int32_t unk_ = kNoToken, pad_ = kNoToken, sep_ = kNoToken;
  bool add_bos_ = false, add_eos_ = false, add_space_prefix_ = false;
  std::unique_ptr<const Vocabulary> vocabulary_;
  std::vector<int32_t> end_of_generation_;
  std::unique_ptr<const SpecialSplitter> user_defined_;  // found in any text
  std::unique_ptr<const SpecialSplitter> all_special_;   // found if parse_special
  std::unique_ptr<const BpeEncoder> bpe_;                // either bpe_ or spm_ is set
  std::unique_ptr<const SpmEncoder> spm_;
};

struct DetokenizerOptions {
  SpecialText special = SpecialText::kHide;
  // true: the ids begin a text, so the space that a SentencePiece encoder put before the text is
  // removed. false: the ids continue a prompt, so " a" after "Once upon" keeps its space.
  bool at_start = false;
};

// Converts token ids to text, one at a time, for streaming. The output is always whole UTF-8
// characters. As in browsers, each longest run of bytes that begins a character but does not
// complete it becomes one U+FFFD. One thread at a time. Keeps the tokenizer alive.
class Detokenizer {
 public:
  explicit Detokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                       const DetokenizerOptions& options = {});

  // Returns the text that this token completes, often "". An unknown id contributes nothing.
  std::string Push(int32_t id);
  // Appends the text that this token completes to *text. Allocates nothing if *text has room.
  void Push(int32_t id, std::string* text);

  // Ends the sequence and starts a new one. Returns U+FFFD if a character is incomplete, else "".
  std::string Flush();

  // The number of bytes held back until their character is complete: 0 to 3.
  size_t held_bytes() const { return held_.size(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  DetokenizerOptions options_;
  bool strip_space_;
  std::string held_;
};

}  // namespace trine
