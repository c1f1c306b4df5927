#include "runtime/constraint/grammar/token_trie.h"

#include <algorithm>

namespace trine::constraint {

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, int32_t>> tokens) {
  std::erase_if(tokens, [](const auto& token) {
    return token.first.empty() || token.first.size() > kMaxTokenBytes;
  });
  std::sort(tokens.begin(), tokens.end());
  nodes_.push_back({0, 0, 0, 0});
  std::vector<uint32_t> path = {kRoot};  // the node of each prefix of the previous text
  std::string_view before;
  for (const auto& [text, id] : tokens) {
    const auto differ = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first;
    size_t shared = static_cast<size_t>(differ - text.begin());
    for (size_t depth = shared + 1; depth < path.size(); ++depth) {
      nodes_[path[depth]].end = static_cast<uint32_t>(nodes_.size());
    }
    path.resize(shared + 1);
    for (; shared < text.size(); ++shared) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), static_cast<uint16_t>(shared + 1),
                        static_cast<uint8_t>(text[shared])});
    }
    tokens_.push_back(id);
    max_depth_ = std::max(max_depth_, static_cast<int32_t>(text.size()));
    if (text.size() == 1) single_bytes_.set(static_cast<uint8_t>(text[0]));
    before = text;
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), 0, 0});
}

std::shared_ptr<const TokenTrie> TokenTrie::Of(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string_view, int32_t>> tokens;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    // Control tokens have no bytes, but a token that ends the generation may be typed as text.
    if (!tokenizer.IsEndOfGeneration(id)) tokens.push_back({tokenizer.TokenBytes(id), id});
  }
  return std::make_shared<const TokenTrie>(std::move(tokens));
}

uint32_t TokenTrie::Child(uint32_t node, uint8_t byte) const {
  for (uint32_t i = node + 1; i < nodes_[node].end; i = nodes_[i].end) {
    if (nodes_[i].byte == byte) return i;
  }
  return kRoot;
}

}  // namespace trine::constraint
