// The texts of a vocabulary as a tree of bytes (a trie) in one array. A node stands for a prefix,
// so a walk over the tree visits a prefix that several tokens share only once. Immutable; any
// thread may use it.
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

  // A node's descendants follow the node in the array: its first child with that child's
  // descendants, then its second child, and so on.
  struct Node {
    uint32_t end;          // the index after the last descendant
    uint32_t first_token;  // index in tokens_; the node's tokens end where those of the next begin
    uint16_t depth;        // the length of the prefix
    uint8_t byte;          // the last byte of the prefix
  };

  // Makes a trie of tokens, given as texts and ids. Leaves out empty tokens, and those longer than
  // kMaxTokenBytes. The texts need not outlive the call.
  explicit TokenTrie(std::vector<std::pair<std::string_view, int32_t>> tokens);
  // Makes a trie of the tokenizer's text tokens. Leaves out control tokens and tokens that end a
  // generation.
  static std::shared_ptr<const TokenTrie> Of(const Tokenizer& tokenizer);

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()) - 1; }  // nodes
  const Node& node(uint32_t i) const { return nodes_[i]; }
  // Returns the tokens whose text ends at this node.
  std::span<const int32_t> tokens(uint32_t i) const {
    return std::span(tokens_).subspan(nodes_[i].first_token,
                                      nodes_[i + 1].first_token - nodes_[i].first_token);
  }
  // Returns the child of a node for a byte; kRoot if there is none.
  uint32_t Child(uint32_t node, uint8_t byte) const;
  int32_t max_depth() const { return max_depth_; }  // the length of the longest token
  // Returns the bytes that are tokens by themselves.
  const std::bitset<256>& single_bytes() const { return single_bytes_; }

  static constexpr size_t kMaxTokenBytes = 1024;

 private:
  std::vector<Node> nodes_;  // with a sentinel after the last
  std::vector<int32_t> tokens_;
  int32_t max_depth_ = 0;
  std::bitset<256> single_bytes_;
};

}  // namespace trine::constraint
