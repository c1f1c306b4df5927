// TokenWindow: counts how often each token occurs among the last n tokens of a sequence.
//
// Adding a token is O(1) for any length. The counts are in an open-addressing table whose size
// depends on the window, not on the vocabulary, so copies are cheap. One thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trine {

class TokenWindow {
 public:
  struct Entry {
    int32_t token = kEmpty;
    int32_t count = 0;
  };

  TokenWindow() = default;  // a window of length 0
  // `length` -1: the window has no limit, and the table doubles when it is full.
  explicit TokenWindow(int32_t length);

  void Add(int32_t token);
  void Clear();

  // Returns how often the token is in the window.
  int32_t Count(int32_t token) const;
  int32_t distinct() const { return distinct_; }  // the number of different tokens

  // Calls visit(token, count) for each distinct token, in no defined order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : table_) {
      if (entry.token != kEmpty) visit(entry.token, entry.count);
    }
  }

 private:
  static constexpr int32_t kEmpty = -1;

  size_t Find(int32_t token) const;  // returns the token's slot, or the empty slot for it
  void Increment(int32_t token);
  void Decrement(int32_t token);
  void Erase(size_t slot);
  void Grow();

  int32_t length_ = 0;
  std::vector<int32_t> recent_;  // a ring of length_ tokens; empty if there is no limit
  size_t next_ = 0;              // index in recent_ of the next token
  std::vector<Entry> table_;     // size is a power of two; at most half full
  int32_t distinct_ = 0;
};

}  // namespace trine
