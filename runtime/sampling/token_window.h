// TokenWindow: the last n tokens of a sequence, and how often each occurs among them.
//
// Adding a token is O(1) whatever the window's length; the counts are an open-addressing table
// sized by the window, not by the vocabulary, so a copy is cheap. A value; one thread at a time.

#ifndef TRINE_RUNTIME_SAMPLING_TOKEN_WINDOW_H_
#define TRINE_RUNTIME_SAMPLING_TOKEN_WINDOW_H_

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

  TokenWindow() = default;  // of length 0
  // -1: unlimited, where the table doubles when it is full.
  explicit TokenWindow(int32_t length);

  void Add(int32_t token);
  void Clear();

  // How often the token is in the window.
  int32_t Count(int32_t token) const;
  int32_t distinct() const { return distinct_; }

  // Calls visit(token, count) for each distinct token, in no defined order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : table_) {
      if (entry.token != kEmpty) visit(entry.token, entry.count);
    }
  }

 private:
  static constexpr int32_t kEmpty = -1;

  size_t Find(int32_t token) const;  // its slot, or the empty one where it belongs
  void Increment(int32_t token);
  void Decrement(int32_t token);
  void Erase(size_t slot);
  void Grow();

  int32_t length_ = 0;
  std::vector<int32_t> recent_;  // a ring of length_ tokens; empty when unlimited
  size_t next_ = 0;              // where the next token goes in the ring
  std::vector<Entry> table_;     // a power of two, at most half full
  int32_t distinct_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_TOKEN_WINDOW_H_
