// The rules by which byte-level BPE vocabularies cut text into words before merging, by the names
// that GGUF files give them in tokenizer.ggml.pre.
#ifndef TRINE_RUNTIME_TOKENIZER_PRE_TOKENIZER_RULES_H_
#define TRINE_RUNTIME_TOKENIZER_PRE_TOKENIZER_RULES_H_

#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace trine {

struct PreTokenizerRule {
  // Regular expressions in PCRE2's syntax, applied in turn: each cuts the pieces left by the one
  // before into its matches and what stands between them. \s is Unicode's White_Space.
  absl::Span<const std::string_view> patterns;
  bool whole_words = false;  // a word that is a token is taken as it is, without merging
  bool add_bos = false;      // where the file doesn't say
};

// Null when no rule has this name. An empty name is the default rule's.
const PreTokenizerRule* FindPreTokenizerRule(std::string_view name);

// All names, with commas between.
std::string PreTokenizerNames();

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_PRE_TOKENIZER_RULES_H_
