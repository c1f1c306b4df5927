// Cuts text into the words that byte-level BPE merges within, by the regular expressions of a rule.
// Immutable; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_PRE_TOKENIZER_H_
#define TRINE_RUNTIME_TOKENIZER_PRE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tokenizer/pre_tokenizer_rules.h"

namespace trine {

class PreTokenizer {
 public:
  // With `allow_jit` the expressions become machine code where PCRE2 and the system permit it.
  static absl::StatusOr<std::unique_ptr<const PreTokenizer>> Create(const PreTokenizerRule& rule,
                                                                    bool allow_jit = true);
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  // Sets `ends` to where each word ends, ascending, the last at the end of the text. `text` is
  // valid UTF-8 of less than 2 GiB. Takes time in proportion to it, whatever it holds.
  absl::Status Split(std::string_view text, std::vector<uint32_t>* ends) const;

 private:
  class Expression;
  PreTokenizer();
  std::vector<std::unique_ptr<const Expression>> expressions_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_PRE_TOKENIZER_H_
