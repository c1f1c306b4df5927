// EncodeChat: where the text is cut so that nothing foreign becomes a control token.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat_template.h"

namespace trine {
namespace {

// The texts of control tokens, found in text wherever they stand.
class ControlTexts {
 public:
  explicit ControlTexts(const Tokenizer& tokenizer) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const TokenType type = tokenizer.Type(id);
      if (type != TokenType::kControl && type != TokenType::kUnknown) continue;
      const std::string_view text = tokenizer.TokenText(id);
      if (text.size() > 1) texts_.push_back(text);
    }
    std::sort(texts_.begin(), texts_.end());
  }

  // Calls found(length) for each that stands at the beginning of `text`: the sorted texts are
  // narrowed down byte by byte, as in a trie.
  template <class Found>
  void FindAt(std::string_view text, Found found) const {
    auto begin = texts_.begin(), end = texts_.end();
    for (size_t depth = 0; begin != end; ++depth) {
      for (; begin != end && begin->size() == depth; ++begin) found(depth);
      if (depth == text.size()) return;
      const auto next = static_cast<unsigned char>(text[depth]);
      begin = std::partition_point(begin, end, [depth, next](std::string_view entry) {
        return static_cast<unsigned char>(entry[depth]) < next;
      });
      end = std::partition_point(begin, end, [depth, next](std::string_view entry) {
        return static_cast<unsigned char>(entry[depth]) == next;
      });
    }
  }

 private:
  std::vector<std::string_view> texts_;
};

// Places inside whatever reads like a control token and is not the template's own from its first
// byte to its last. In between a template may have put a role: "<|" + role + "|>" is its own.
std::vector<size_t> FindCuts(const Tokenizer& tokenizer, const jinja::Text& text) {
  std::vector<size_t> cuts;
  if (!text.has_foreign()) return cuts;
  const ControlTexts control(tokenizer);
  const std::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    bool foreign = false;
    control.FindAt(bytes.substr(at), [&](size_t length) {
      foreign = foreign || text.ForeignAt(at) || text.ForeignAt(at + length - 1);
    });
    if (foreign) cuts.push_back(at + 1);
  }
  return cuts;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, const jinja::Text& text,
                                                bool at_start) {
  std::vector<size_t> cuts = FindCuts(tokenizer, text);
  cuts.push_back(text.size());
  std::vector<int32_t> tokens;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    const std::string_view run = std::string_view(text.bytes()).substr(begin, cut - begin);
    const auto ids = tokenizer.Encode(
        run, {.add_special = false, .parse_special = true, .at_start = at_start && begin == 0});
    if (!ids.ok()) return ids.status();
    tokens.insert(tokens.end(), ids->begin(), ids->end());
    begin = cut;
  }
  // Many templates write the BOS themselves.
  if (at_start && tokenizer.adds_bos() && (tokens.empty() || tokens[0] != tokenizer.bos())) {
    tokens.insert(tokens.begin(), tokenizer.bos());
  }
  return tokens;
}

}  // namespace trine
