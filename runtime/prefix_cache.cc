#include "runtime/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "runtime/model/segment_graph.h"

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
  while (!ages_.empty()) Remove(ages_.front());  // which has no children: they would be before it
}

PrefixCacheCounters PrefixCache::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  PrefixCacheCounters counters = counters_;
  counters.held_blocks = static_cast<int64_t>(ages_.size());
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
  std::list<Node*> age = {node};
  const auto at =
      parent->children.emplace(std::vector<int32_t>(tokens.begin(), tokens.end()), std::move(made));
  // Nothing can fail from here on.
  node->tokens = &at.first->first;
  node->age = age.begin();
  ages_.splice(ages_.begin(), age);  // before its parent, until it is touched
  pool_->Hold(block);
  return node;
}

// With its parents behind it, so that they stay the longer.
void PrefixCache::Touch(Node* node) {
  for (; node->parent != nullptr; node = node->parent) ages_.splice(ages_.end(), ages_, node->age);
}

void PrefixCache::Remove(Node* leaf) {
  pool_->LetGo(leaf->block);
  ages_.erase(leaf->age);
  Node* const parent = leaf->parent;
  parent->children.erase(parent->children.find(*leaf->tokens));
  if (parent->parent == nullptr && parent->children.empty()) {
    spaces_.erase(spaces_.find(*parent->space));
  }
}

// A block that only the tree holds gets no other holder while the tree is locked.
size_t PrefixCache::Evict(size_t wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t given = 0;
  for (auto at = ages_.begin(); at != ages_.end() && given < wanted;) {
    Node* const node = *at++;
    if (!node->children.empty() || pool_->IsShared(node->block)) continue;
    Remove(node);
    ++given;
  }
  counters_.evictions += given;
  return given;
}

}  // namespace trine
