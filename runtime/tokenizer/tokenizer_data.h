// What a model file says about its tokenizer, as plain data: read from GGUF by ReadTokenizerData,
// or filled in by hand. Nothing is checked here but that the file's keys have the right types;
// Tokenizer::Create holds the data to its rules.
#ifndef TRINE_RUNTIME_TOKENIZER_TOKENIZER_DATA_H_
#define TRINE_RUNTIME_TOKENIZER_TOKENIZER_DATA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/metadata.h"
#include "runtime/token.h"

namespace trine {

// GGUF's numbers.
enum class TokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

enum class TokenizerModel {
  kByteLevelBpe,   // "gpt2"
  kSentencePiece,  // "llama"
};

struct TokenizerData {
  TokenizerModel model = TokenizerModel::kByteLevelBpe;
  // Names the rule by which byte-level BPE cuts text into words; empty: the default one.
  std::string pre_tokenizer = {};

  // The views must outlive Tokenizer::Create, no longer.
  std::vector<std::string_view> tokens = {};
  std::vector<TokenType> types = {};          // empty: the file has none
  std::vector<float> scores = {};             // SentencePiece; empty: all 0
  std::vector<std::string_view> merges = {};  // byte-level BPE: "left right", best first

  int32_t bos = kNoToken;
  int32_t eos = kNoToken;
  int32_t eot = kNoToken;  // end of turn
  int32_t eom = kNoToken;  // end of message
  int32_t unk = kNoToken;
  int32_t sep = kNoToken;
  int32_t pad = kNoToken;

  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  // SentencePiece: a space before text at the start of a sequence
  // White space after a special token belongs to it (Phi-3).
  bool special_strips_right = false;
};

// INVALID_ARGUMENT or NOT_FOUND naming the key; UNIMPLEMENTED, with those that are known, for
// another kind of tokenizer. The views are into the file's memory.
absl::StatusOr<TokenizerData> ReadTokenizerData(const gguf::Metadata& metadata);

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_TOKENIZER_DATA_H_
