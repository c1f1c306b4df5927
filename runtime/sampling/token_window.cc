#include "runtime/sampling/token_window.h"

#include <bit>
#include <utility>

namespace trine {
namespace {

constexpr size_t kFirstTable = 64;  // size of the first table of an unlimited window

size_t Hash(int32_t token) {
  return static_cast<size_t>((static_cast<uint32_t>(token) * 0x9e3779b1u) >> 7);
}

}  // namespace

TokenWindow::TokenWindow(int32_t length) : length_(length) {
  if (length > 0) {
    recent_.assign(static_cast<size_t>(length), kEmpty);
    // One more, because a token enters before the one that it replaces leaves.
    table_.resize(std::bit_ceil(2 * (static_cast<size_t>(length) + 1)));
  } else if (length < 0) {
    table_.resize(kFirstTable);
  }
}

void TokenWindow::Add(int32_t token) {
  if (length_ == 0 || token < 0) return;
  Increment(token);
  if (length_ < 0) return;
  const int32_t leaving = std::exchange(recent_[next_], token);
  next_ = next_ + 1 == recent_.size() ? 0 : next_ + 1;
  if (leaving != kEmpty) Decrement(leaving);
}

void TokenWindow::Clear() { *this = TokenWindow(length_); }

int32_t TokenWindow::Count(int32_t token) const {
  return table_.empty() || token < 0 ? 0 : table_[Find(token)].count;
}

size_t TokenWindow::Find(int32_t token) const {
  const size_t mask = table_.size() - 1;
  size_t slot = Hash(token) & mask;
  while (table_[slot].token != token && table_[slot].token != kEmpty) slot = (slot + 1) & mask;
  return slot;
}

void TokenWindow::Increment(int32_t token) {
  size_t slot = Find(token);
  if (table_[slot].token == kEmpty) {
    if (2 * (static_cast<size_t>(distinct_) + 1) > table_.size()) {
      Grow();
      slot = Find(token);
    }
    table_[slot].token = token;
    ++distinct_;
  }
  ++table_[slot].count;
}

void TokenWindow::Decrement(int32_t token) {
  const size_t slot = Find(token);
  if (--table_[slot].count == 0) Erase(slot);
}

// Closes the hole with later entries of the run, so that no search ends early at it.
void TokenWindow::Erase(size_t hole) {
  const size_t mask = table_.size() - 1;
  for (size_t slot = (hole + 1) & mask; table_[slot].token != kEmpty; slot = (slot + 1) & mask) {
    const size_t home = Hash(table_[slot].token) & mask;
    if (((slot - home) & mask) >= ((slot - hole) & mask)) {
      table_[hole] = table_[slot];
      hole = slot;
    }
  }
  table_[hole] = Entry();
  --distinct_;
}

void TokenWindow::Grow() {
  std::vector<Entry> old = std::exchange(table_, std::vector<Entry>(2 * table_.size()));
  for (const Entry& entry : old) {
    if (entry.token != kEmpty) table_[Find(entry.token)] = entry;
  }
}

}  // namespace trine
