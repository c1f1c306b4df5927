// Finds special tokens in text. The longest token goes first wherever it stands, then the next:
// "<|im_end|>" is never cut by a token "<|". Immutable; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_SPECIAL_SPLITTER_H_
#define TRINE_RUNTIME_TOKENIZER_SPECIAL_SPLITTER_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

struct Fragment {
  std::string_view text;  // when it is no token
  int32_t token = kNoToken;
};

class SpecialSplitter {
 public:
  struct Special {
    int32_t id = kNoToken;
    bool strips_right = false;  // white space after it belongs to it
  };

  // The vocabulary must outlive this. Tokens with an empty text are never found.
  SpecialSplitter(const Vocabulary& vocabulary, absl::Span<const Special> specials);

  // Views are into `text`; none is empty.
  std::vector<Fragment> Split(std::string_view text) const;

 private:
  struct Entry {
    std::string_view text;
    int32_t id;
    bool strips_right;
    uint32_t order;  // longest text first
  };

  std::vector<const Entry*> FindPresent(std::string_view text) const;

  std::vector<Entry> entries_;  // by text, each text once
  // entries_ that begin with a byte b: from begin_[b] to begin_[b + 1].
  std::array<uint32_t, 257> begin_{};
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_SPECIAL_SPLITTER_H_
