// A model file's data about its tokenizer. ReadTokenizerData reads it from a GGUF file and checks
// only that the keys have the right types; Tokenizer::Create checks the data. Tests fill it in by
// hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/token.h"
#include "runtime/gguf/metadata.h"

namespace trine {

// The type of a token. The numbers are those of GGUF.
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
  // The name of the rule by which byte-level BPE cuts text into words; "": the default rule.
  std::string pre_tokenizer = {};

  // The views need to live only until Tokenizer::Create returns.
  std::vector<std::string_view> tokens = {};
  std::vector<TokenType> types = {};          // empty: the file has none
  std::vector<float> scores = {};             // for SentencePiece; empty: all scores are 0
  std::vector<std::string_view> merges = {};  // for byte-level BPE: "left right", the best first

  int32_t bos = kNoToken;
  int32_t eos = kNoToken;
  int32_t eot = kNoToken;  // end of turn
  int32_t eom = kNoToken;  // end of message
  int32_t unk = kNoToken;
  int32_t sep = kNoToken;
  int32_t pad = kNoToken;

  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  // SentencePiece puts a space before text that begins a sequence
  // true: white space after a special token belongs to the token (Phi-3).
  bool special_strips_right = false;
};

// Reads the data. The views are into the file's memory. Returns INVALID_ARGUMENT or NOT_FOUND,
// naming the key, if a key is wrong or missing. Returns UNIMPLEMENTED, which lists the known kinds,
// for an unknown kind of tokenizer.
absl::StatusOr<TokenizerData> ReadTokenizerData(const gguf::Metadata& metadata);

// Returns INVALID_ARGUMENT, saying what was found and what was expected, for counts that differ,
// ids outside the vocabulary, scores that are not numbers, and byte tokens that name no byte.
// Allows texts that are empty, repeated or not UTF-8: encoding uses the first of equal texts,
// decoding all of them.
absl::Status CheckTokenizerData(const TokenizerData& data);

}  // namespace trine
