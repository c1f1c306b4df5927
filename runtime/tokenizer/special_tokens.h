// Finds the tokens that are more than text, such as control tokens, and the tokens that end a
// generation. Uses the types in the file, but corrects known mistakes of files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

// Returns the type of every token. In a file without types all tokens are normal, except <0xNN> in
// a SentencePiece vocabulary and the ids that the file names. A well-known end marker such as
// <|im_end|> is a control token even if the file calls it text: otherwise chats would never end,
// and users could forge turns.
std::vector<TokenType> ResolveTypes(const TokenizerData& data);

struct EndTokens {
  int32_t eot = kNoToken;  // the file's token, or else the first token with a known text
  int32_t eom = kNoToken;
  std::vector<int32_t> all;  // ascending, including EOS
};
EndTokens FindEndTokens(const TokenizerData& data, const Vocabulary& vocabulary);

// Calls found(entry) for each entry of [begin, end) with whose text `text` begins, the shortest
// first. Narrows the entries down byte by byte, as in a trie. REQUIRES: the entries are sorted by
// text, and all begin with the first `depth` bytes of `text`.
template <class Iterator, class TextOf, class Found>
void FindAtFront(Iterator begin, Iterator end, TextOf text_of, std::string_view text, size_t depth,
                 Found found) {
  for (; begin != end; ++depth) {
    for (; begin != end && text_of(*begin).size() == depth; ++begin) found(begin);
    if (depth == text.size()) return;
    const auto next = static_cast<uint8_t>(text[depth]);
    const auto byte_of = [&](const auto& entry) {
      return static_cast<uint8_t>(text_of(entry)[depth]);
    };
    begin = std::partition_point(begin, end, [&](const auto& e) { return byte_of(e) < next; });
    end = std::partition_point(begin, end, [&](const auto& e) { return byte_of(e) == next; });
  }
}

// A token, or text between tokens.
struct Fragment {
  std::string_view text;  // "" for a token
  int32_t token = kNoToken;
};

// Finds special tokens in text. Looks for the longest token in the whole text, then for the next
// longest, so that a token "<|" never cuts "<|im_end|>". Immutable; any thread may use it.
class SpecialSplitter {
 public:
  struct Special {
    int32_t id = kNoToken;
    bool strips_right = false;  // true: white space after the token belongs to it
  };

  // The vocabulary must outlive the splitter. Tokens with an empty text are never found.
  SpecialSplitter(const Vocabulary& vocabulary, absl::Span<const Special> specials);

  // Returns the tokens and the texts between them, except empty texts. The fragments view `text`.
  std::vector<Fragment> Split(std::string_view text) const;

 private:
  struct Entry {
    std::string_view text;
    int32_t id;
    bool strips_right;
    uint32_t order;  // the rank by length, the longest first
  };

  std::vector<const Entry*> FindPresent(std::string_view text) const;

  std::vector<Entry> entries_;  // sorted by text, without duplicates
  // The entries that begin with a byte b: from begin_[b] to begin_[b + 1].
  std::array<uint32_t, 257> begin_{};
};

}  // namespace trine
