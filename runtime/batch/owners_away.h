// Keeps the list of owners that are away: they have received logits and have not come back with
// the next token. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/batch/sequence.h"

namespace trine {

// Knows each owner by a sequence, which it never dereferences: the sequence may have been
// destroyed.
class OwnersAway {
 public:
  using Clock = std::chrono::steady_clock;

  void Reserve(size_t owners) { away_.reserve(owners); }
  void Add(const Sequence* sequence, Clock::time_point since);
  // Returns the time since which the owner was away, or nullopt if it was not.
  std::optional<Clock::time_point> Remove(const Sequence* sequence);
  // Returns the time until which to wait if each owner is given `patience` to come back; nullopt:
  // all of them are late. Forgets owners that have been away for so long that they may never come
  // back.
  std::optional<Clock::time_point> ExpectedBack(Clock::duration patience);
  // Appends the owners that have been away for less than `patience`.
  void AppendExpected(Clock::duration patience, std::vector<const Sequence*>* sequences) const;
  // Returns whether an owner has left so recently that it is likely to come back with a token.
  bool AnyDecodes() const;

 private:
  struct Away {
    const Sequence* sequence;
    Clock::time_point since;
  };
  std::vector<Away> away_;
};

}  // namespace trine
