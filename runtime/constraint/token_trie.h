// The texts of a vocabulary as a tree of bytes, in one array: a walk over it visits every prefix
// that tokens share once. Immutable; any thread.
#ifndef TRINE_RUNTIME_CONSTRAINT_TOKEN_TRIE_H_
#define TRINE_RUNTIME_CONSTRAINT_TOKEN_TRIE_H_

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace trine::constraint {

class TokenTrie {
 public:
  static constexpr uint32_t kRoot = 0;

  // The nodes below a node follow it, up to `end`: those of its children in turn.
  struct Node {
    uint32_t end;
    uint32_t
        first_token;  // of its own in tokens_; those of the node behind it begin where they end
    uint16_t depth;
    uint8_t byte;
  };

  // Text tokens and their bytes. Tokens longer than kMaxTokenBytes are left out.
  explicit TokenTrie(std::vector<std::pair<std::string_view, int32_t>> tokens);
  // Those of a tokenizer that stand for text: neither control tokens nor ends of generation.
  static std::shared_ptr<const TokenTrie> Of(const Tokenizer& tokenizer);

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  const Node& node(uint32_t i) const { return nodes_[i]; }
  // The tokens whose text ends at this node.
  std::span<const int32_t> tokens(uint32_t i) const {
    return std::span(tokens_).subspan(nodes_[i].first_token,
                                      nodes_[i + 1].first_token - nodes_[i].first_token);
  }
  uint32_t Child(uint32_t node, uint8_t byte) const;  // kRoot when there is none
  int32_t max_depth() const { return max_depth_; }
  // Bytes that are a token by themselves.
  const std::bitset<256>& single_bytes() const { return single_bytes_; }

  static constexpr size_t kMaxTokenBytes = 1024;

 private:
  std::vector<Node> nodes_;  // and one behind the last
  std::vector<int32_t> tokens_;
  int32_t max_depth_ = 0;
  std::bitset<256> single_bytes_;
};

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_TOKEN_TRIE_H_
