#include "runtime/kv/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "runtime/kv_store/store_index.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {
namespace {

constexpr auto kBlockTokens = static_cast<size_t>(kBlockPositions);

}  // namespace

bool PrefixCache::TokensLess::operator()(std::span<const int32_t> a,
                                         std::span<const int32_t> b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

PrefixCache::PrefixCache(std::shared_ptr<KvBlockPool> pool) : pool_(std::move(pool)) {
  pool_->set_reclaim([this](size_t wanted) { return Evict(wanted); });
}

PrefixCache::~PrefixCache() {
  pool_->set_reclaim(nullptr);
  Clear();
}

int64_t PrefixCache::Adopt(const std::string& space, std::span<const int32_t> tokens, int64_t from,
                           bool again, BlockTable* table) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!again) ++counters_.lookups;
  const auto found = spaces_.find(space);
  if (found == spaces_.end()) return from;
  Node* node = &found->second;
  std::vector<int32_t> blocks;
  for (size_t at = 0; at + kBlockTokens <= tokens.size(); at += kBlockTokens) {
    const auto child = node->children.find(tokens.subspan(at, kBlockTokens));
    if (child == node->children.end()) break;
    node = child->second.get();
    blocks.push_back(node->block);
  }
  const auto end = static_cast<int64_t>(blocks.size() * kBlockTokens);
  if (end <= from) return from;
  table->Adopt(blocks);
  Touch(node);
  counters_.hit_tokens += static_cast<uint64_t>(end - from);
  return end;
}

int64_t PrefixCache::Holds(const std::string& space, std::span<const int32_t> tokens) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = spaces_.find(space);
  if (found == spaces_.end()) return 0;
  const Node* node = &found->second;
  size_t at = 0;
  for (; at + kBlockTokens <= tokens.size(); at += kBlockTokens) {
    const auto child = node->children.find(tokens.subspan(at, kBlockTokens));
    if (child == node->children.end()) break;
    node = child->second.get();
  }
  return static_cast<int64_t>(at);
}

void PrefixCache::Offer(const std::string& space, std::span<const int32_t> tokens,
                        BlockTable* table) {
  if (tokens.size() < kBlockTokens) return;
  std::lock_guard<std::mutex> lock(mutex_);
  Node* node = SpaceOf(space);
  std::vector<int32_t> blocks;
  for (size_t at = 0; at + kBlockTokens <= tokens.size(); at += kBlockTokens) {
    const auto part = tokens.subspan(at, kBlockTokens);
    const auto child = node->children.find(part);
    node = child != node->children.end() ? child->second.get()
                                         : AddChild(node, part, table->blocks()[blocks.size()]);
    blocks.push_back(node->block);
  }
  table->Adopt(blocks);
  Touch(node);
}

void PrefixCache::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  while (!leaves_.empty()) Remove(*leaves_.begin());
}

PrefixCacheCounters PrefixCache::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  PrefixCacheCounters counters = counters_;
  counters.held_blocks = nodes_;
  counters.total_blocks = pool_->total();
  counters.free_blocks = pool_->free();
  return counters;
}

PrefixCache::Node* PrefixCache::SpaceOf(const std::string& space) {
  const auto [at, is_new] = spaces_.try_emplace(space);
  if (is_new) at->second.space = &at->first;
  return &at->second;
}

PrefixCache::Node* PrefixCache::AddChild(Node* parent, std::span<const int32_t> tokens,
                                         int32_t block) {
  auto made = std::make_unique<Node>();
  Node* const node = made.get();
  node->parent = parent;
  node->block = block;
  if (parent->parent != nullptr) {
    node->first_position = parent->first_position + kBlockPositions;
  }
  node->used_at = ++clock_;
  node->rank = age_;
  const auto leaf = leaves_.insert(node).first;
  try {
    const auto at = parent->children.emplace(std::vector<int32_t>(tokens.begin(), tokens.end()),
                                             std::move(made));
    node->tokens = &at.first->first;
  } catch (...) {
    leaves_.erase(leaf);
    throw;
  }
  // Nothing can fail from here on.
  if (parent->children.size() == 1 && parent->parent != nullptr) leaves_.erase(parent);
  ++nodes_;
  pool_->Hold(block);
  return node;
}

// Counts a use of a node and of all nodes above it, whose blocks are used together with its own.
void PrefixCache::Touch(Node* node) {
  const uint64_t now = ++clock_;
  for (; node->parent != nullptr; node = node->parent) {
    // Moves the leaf in the order without allocating: the set's node is reused.
    auto leaf = node->children.empty() ? leaves_.extract(node) : decltype(leaves_)::node_type();
    node->uses = std::min(node->uses + 1, StoreIndex::kMostUses);
    const double work =
        1 + static_cast<double>(node->first_position) / StoreIndex::kAttentionPositions;
    node->rank = age_ + work * node->uses;
    node->used_at = now;
    if (!leaf.empty()) leaves_.insert(std::move(leaf));
  }
}

void PrefixCache::Remove(Node* leaf) {
  Node* const parent = leaf->parent;
  if (parent->children.size() == 1 && parent->parent != nullptr) {
    auto place = leaves_.extract(leaf);  // reused for the parent, so nothing can fail
    place.value() = parent;
    leaves_.insert(std::move(place));
  } else {
    leaves_.erase(leaf);
  }
  --nodes_;
  pool_->LetGo(leaf->block);
  parent->children.erase(parent->children.find(*leaf->tokens));
  if (parent->parent == nullptr && parent->children.empty()) {
    spaces_.erase(spaces_.find(*parent->space));
  }
}

// Evicts up to `wanted` blocks. A block that only the tree holds gets no other holder while the
// tree is locked.
size_t PrefixCache::Evict(size_t wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t given = 0;
  // Starts over after each eviction: a parent without children has become a leaf.
  for (auto at = leaves_.begin(); at != leaves_.end() && given < wanted;) {
    Node* const node = *at;
    if (pool_->IsShared(node->block)) {
      ++at;
      continue;
    }
    age_ = std::max(age_, node->rank);
    Remove(node);
    ++given;
    at = leaves_.begin();
  }
  counters_.evictions += given;
  return given;
}

}  // namespace trine
