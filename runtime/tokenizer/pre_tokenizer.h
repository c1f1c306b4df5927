// Cuts text into words by the regular expressions of a rule. Byte-level BPE merges only within
// words. Immutable; any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace trine {

// A rule by which byte-level BPE vocabularies cut text into words before merging.
struct PreTokenizerRule {
  // Regular expressions in PCRE2's syntax, which are applied in turn. Each cuts the pieces that the
  // previous one left into its matches and the text between them. \s is Unicode's White_Space.
  absl::Span<const std::string_view> patterns;
  bool whole_words = false;  // true: a word that is a token is not merged from its bytes
  bool add_bos = false;      // whether a BOS is added if the file doesn't say
};

// Finds a rule by its name in tokenizer.ggml.pre of GGUF files. "" names the default rule. Returns
// null for an unknown name.
const PreTokenizerRule* FindPreTokenizerRule(std::string_view name);

// Returns all names, separated by commas.
std::string PreTokenizerNames();

class PreTokenizer {
 public:
  // With `allow_jit`, compiles the expressions to machine code if PCRE2 and the system permit.
  static absl::StatusOr<std::unique_ptr<const PreTokenizer>> Create(const PreTokenizerRule& rule,
                                                                    bool allow_jit = true);
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  // Sets `ends` to the ends of all words, in order; the last is text.size(). Takes linear time for
  // any text. REQUIRES: `text` is valid UTF-8 of less than 2 GiB.
  absl::Status Split(std::string_view text, std::vector<uint32_t>* ends) const;

 private:
  class Expression;
  PreTokenizer();
  std::vector<std::unique_ptr<const Expression>> expressions_;
};

}  // namespace trine
