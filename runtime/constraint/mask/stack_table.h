// Keeps sets of an automaton's stacks, and computes how a byte changes a set.
//
// A text may be read in several ways at once, each with its own stack: the current state on top,
// and below it the states to return to. A set of stacks is kept as a tree whose root is the top.
// Equal parts are shared, and a node has at most one branch per state, so ambiguity makes sets
// wide, but never gives exponentially many. Equal sets have the same id.
//
// For some grammars the sets still become too large. The table is then overrun, for good: every
// step that has not been computed yet leads to kNoStacks.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/constraint/grammar/automaton.h"

namespace trine::constraint {

// The id of a set of stacks in its table. The ids of a table are 0, 1, 2, ...
using StackSet = uint32_t;

class StackTable {
 public:
  static constexpr StackSet kNoStacks = 0;  // the text can't continue
  static constexpr StackSet kDone = 1;      // only the stack with nothing left to read

  // A state on top, and the stacks that it is on top of.
  struct Frame {
    uint32_t state;
    StackSet below;
  };
  // The hash of a set's structure, equal in every table of the same automaton. With 128 bits,
  // different sets are assumed to have different hashes.
  using Hash = std::pair<uint64_t, uint64_t>;

  // `costs`: by state (FinishCosts). Both arguments must outlive the table.
  StackTable(const Automaton* automaton, const std::vector<int64_t>* costs);

  // Returns the set with `state` on top of each stack of `below`.
  StackSet Single(uint32_t state, StackSet below);
  // Returns the set before the first byte of the text.
  StackSet Begin();
  // Returns the set after one more byte; kNoStacks if the byte must not come next. Each stack in
  // the set is done, or its top state can read a byte.
  StackSet Step(StackSet set, uint8_t byte) {
    const uint32_t row = rows_[set];
    if (row != kNoRow) {
      const StackSet known = steps_[row + automaton_->byte_class(byte)];
      if (known != kUnknown) return known;
    }
    return ComputeStep(set, byte);
  }
  // Returns the set after the rule whose state is on top of `below` has ended. As after Step, each
  // stack in it is done, or its top state can read a byte.
  StackSet Return(StackSet below);

  // Returns the states that are on top, ascending, each with the stacks below it. The span is valid
  // until the table gets another set.
  std::span<const Frame> frames(StackSet set) const {
    return std::span(frames_).subspan(sets_[set].first, sets_[set].count);
  }
  // Returns whether a stack of the set is done: it has nothing left to read, so the text may end.
  bool done(StackSet set) const {
    const auto f = frames(set);
    return !f.empty() && f.front().state == Automaton::kBottom;
  }
  int64_t cost(StackSet set) const { return sets_[set].cost; }    // the least cost of finishing
  int32_t depth(StackSet set) const { return sets_[set].depth; }  // of its highest stack
  const Hash& hash(StackSet set) const { return sets_[set].hash; }
  size_t size() const { return sets_.size(); }  // the number of sets
  bool overrun() const { return overrun_; }
  // Returns whether the table is half full. Trim makes room.
  bool full() const { return Weight() > kMaxWeight / 2; }

  // Forgets the sets from id `size` on. The others keep their ids.
  void Trim(size_t size);
  // Copies a set from another table of the same automaton. Returns its id here.
  StackSet Copy(const StackTable& from, StackSet set);

 private:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  static constexpr StackSet kUnknown = UINT32_MAX;

  // A weight is memory in units of about ten bytes. Sets and unions take memory besides frames.
  static constexpr size_t kMaxWeight = size_t{1} << 22;
  size_t Weight() const { return frames_.size() + 2 * unions_.size() + 8 * sets_.size(); }
  static constexpr int32_t kMaxDepth = 4096;  // bounds the recursion of Union

  struct Set {
    uint32_t first;
    uint32_t count;
    int32_t depth;
    int64_t cost;
    Hash hash;
  };

  StackSet Intern(std::span<const Frame> frames);  // ascending by state, without duplicates
  StackSet Union(StackSet a, StackSet b);
  StackSet UnionOfBelow();
  void Reach(uint32_t state, StackSet below) { arrived_.push_back({state, below}); }
  void FollowReturns();
  void FollowCalls();
  StackSet Close();
  StackSet ComputeStep(StackSet set, uint8_t byte);

  const Automaton* automaton_;
  const std::vector<int64_t>* costs_;
  std::vector<Set> sets_;
  std::vector<Frame> frames_;
  std::vector<uint32_t> rows_;   // by set: the index of the set's row in steps_
  std::vector<StackSet> steps_;  // rows with one entry for each byte class
  absl::flat_hash_map<Hash, StackSet> by_hash_;
  absl::flat_hash_map<std::pair<StackSet, StackSet>, StackSet> unions_;
  bool overrun_ = false;
  // Working memory while a set is being made.
  std::vector<Frame> arrived_;  // stacks that were reached, some of them more than once
  absl::flat_hash_set<StackSet> returned_;
  std::vector<StackSet> below_;
  std::vector<Frame> closed_;
};

}  // namespace trine::constraint
