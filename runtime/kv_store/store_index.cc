#include "runtime/kv_store/store_index.h"

#include <algorithm>

namespace trine {
namespace {

constexpr size_t kMostDeclined = 4096;  // most entries in declined_

}  // namespace

double StoreIndex::Worth(const StoreItem& item) {
  const double work = static_cast<double>(item.block_bytes) *
                      (1 + static_cast<double>(item.first_position) / kAttentionPositions);
  return work / static_cast<double>(std::max<uint64_t>(item.bytes, 1));
}

StoreIndex::Entry& StoreIndex::Insert(const StoreItem& item) {
  Entry& e = entries_[item.key];
  e.item = item;
  bytes_ += item.bytes;
  Rank(&e);
  if (children_[item.parent]++ == 0) {
    const auto parent = entries_.find(item.parent);
    if (parent != entries_.end()) leaves_.erase(OrderOf(parent->second));
  }
  return e;
}

void StoreIndex::Rank(Entry* e) {
  e->rank = age_ + Worth(e->item) * e->uses;
  e->used_at = ++clock_;
}

void StoreIndex::AddLeaf(const Hash256& key) {
  const auto at = entries_.find(key);
  if (at != entries_.end() && IsLeaf(at->second)) leaves_.insert(OrderOf(at->second));
}

void StoreIndex::Remove(absl::flat_hash_map<Hash256, Entry>::iterator at) {
  leaves_.erase(OrderOf(at->second));
  bytes_ -= at->second.item.bytes;
  const Hash256 parent = at->second.item.parent;
  entries_.erase(at);
  const auto count = children_.find(parent);
  if (--count->second > 0) return;
  children_.erase(count);
  AddLeaf(parent);
}

bool StoreIndex::GiveUpOne(std::vector<Hash256>* gone) {
  if (leaves_.empty()) return false;
  const auto& [rank, used_at, key] = *leaves_.begin();
  age_ = std::max(age_, rank);
  gone->push_back(key);
  Remove(entries_.find(gone->back()));
  return true;
}

StoreIndex::Answer StoreIndex::Promise(const StoreItem& item, std::vector<Hash256>* gone) {
  const auto known = entries_.find(item.key);
  if (known != entries_.end()) {
    if (!known->second.there) return Answer::kPromised;
    Use(item.key);
    return Answer::kThere;
  }
  const auto decline = [&] {
    if (declined_.size() >= kMostDeclined) declined_.clear();
    declined_.insert(item.key);
    return Answer::kDeclined;
  };
  const bool fits = item.bytes <= max_bytes_ && bytes_ <= max_bytes_ - item.bytes;
  if (!fits && (item.bytes > max_bytes_ || declined_.contains(item.parent))) return decline();
  Insert(item);  // first, so that its parent is no leaf and stays
  while (bytes_ > max_bytes_) {
    if (GiveUpOne(gone)) continue;
    Remove(entries_.find(item.key));
    return decline();
  }
  Rank(&entries_.find(item.key)->second);
  declined_.erase(item.key);
  return Answer::kRoom;
}

void StoreIndex::Arrived(const StoreItem& item) {
  const auto known = entries_.find(item.key);
  Entry& e = known != entries_.end() ? known->second : Insert(item);
  if (e.there) return;
  e.there = true;
  AddLeaf(item.key);
}

void StoreIndex::Broken(const Hash256& key) {
  const auto at = entries_.find(key);
  if (at != entries_.end() && !at->second.there) Remove(at);
}

void StoreIndex::Load(const std::vector<StoreItem>& items) {
  if (!entries_.empty()) {
    for (const StoreItem& item : items) Arrived(item);
    return;
  }
  double worth = 0;
  for (const StoreItem& item : items) worth += Worth(item);
  const double n = static_cast<double>(std::max<size_t>(items.size(), 1));
  const double mean = worth / n;
  for (size_t i = 0; i < items.size(); ++i) {
    age_ = mean * static_cast<double>(i) / n;
    Arrived(items[i]);
  }
  age_ = mean;
}

void StoreIndex::Trim(std::vector<Hash256>* gone) {
  while (bytes_ > max_bytes_ && GiveUpOne(gone)) {
  }
}

bool StoreIndex::Has(const Hash256& key) const {
  const auto at = entries_.find(key);
  return at != entries_.end() && at->second.there;
}

bool StoreIndex::Use(const Hash256& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || !at->second.there) return false;
  Entry& e = at->second;
  leaves_.erase(OrderOf(e));
  e.uses = std::min(e.uses + 1, kMostUses);
  Rank(&e);
  AddLeaf(key);
  return true;
}

void StoreIndex::Erase(const Hash256& key) {
  const auto at = entries_.find(key);
  if (at != entries_.end()) Remove(at);
}

std::vector<Hash256> StoreIndex::Keys() const {
  std::vector<Hash256> keys;
  keys.reserve(entries_.size());
  for (const auto& [key, e] : entries_) {
    if (e.there) keys.push_back(key);
  }
  return keys;
}

}  // namespace trine
