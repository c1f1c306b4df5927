// The texts of a vocabulary as a tree of bytes in one array. A walk over it visits each prefix that
// tokens share once. Immutable; any thread may use it.
#pragma once

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

  // A node's descendants follow the node, up to `end`. After each child come the child's own
  // descendants.
  struct Node {
    uint32_t end;
    uint32_t first_token;  // index in tokens_; the node's tokens end at the next node's index
    uint16_t depth;
    uint8_t byte;
  };

  // `tokens` has the bytes and ids of text tokens. Leaves out tokens longer than kMaxTokenBytes.
  explicit TokenTrie(std::vector<std::pair<std::string_view, int32_t>> tokens);
  // Makes a trie of the tokenizer's text tokens. Leaves out control tokens and tokens that end a
  // generation.
  static std::shared_ptr<const TokenTrie> Of(const Tokenizer& tokenizer);

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  const Node& node(uint32_t i) const { return nodes_[i]; }
  // Returns the tokens whose text ends at this node.
  std::span<const int32_t> tokens(uint32_t i) const {
    return std::span(tokens_).subspan(nodes_[i].first_token,
                                      nodes_[i + 1].first_token - nodes_[i].first_token);
  }
  uint32_t Child(uint32_t node, uint8_t byte) const;  // kRoot: there is no such child
  int32_t max_depth() const { return max_depth_; }
  // Returns the bytes that are a token by themselves.
  const std::bitset<256>& single_bytes() const { return single_bytes_; }

  static constexpr size_t kMaxTokenBytes = 1024;

 private:
  std::vector<Node> nodes_;  // with a sentinel after the last
  std::vector<int32_t> tokens_;
  int32_t max_depth_ = 0;
  std::bitset<256> single_bytes_;
};

}  // namespace trine::constraint
