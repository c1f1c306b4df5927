// Sets of stacks of the automaton, and how they change with a byte.
//
// A grammar may be read in several ways at once, each with a stack of its own: the state at its top
// and below it those to return to. A set of stacks is kept as a tree from the top, in which equal
// parts are one: at most one branch per state, so that ambiguity makes sets wide but never
// exponentially many. Equal sets have the same id.
//
// There are grammars whose sets grow beyond any use all the same. The table then is overrun: it
// leads nowhere from there on.
//
// One thread at a time.
#ifndef TRINE_RUNTIME_CONSTRAINT_STACK_TABLE_H_
#define TRINE_RUNTIME_CONSTRAINT_STACK_TABLE_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/constraint/automaton.h"

namespace trine::constraint {

using StackSet = uint32_t;

class StackTable {
 public:
  static constexpr StackSet kNoStacks = 0;  // the text can't go on
  static constexpr StackSet kDone = 1;      // the one stack with nothing left to do

  struct Frame {
    uint32_t state;
    StackSet below;
  };
  // Of the set's structure: equal in every table of the same automaton. With 128 bits two sets that
  // differ are not met with the same one.
  using Hash = std::pair<uint64_t, uint64_t>;

  // Both outlive the table.
  StackTable(const Automaton* automaton, const std::vector<int64_t>* costs);

  // The set with this one stack.
  StackSet Single(uint32_t state, StackSet below);
  // The set before the first byte of the text.
  StackSet Begin();
  // After one more byte. Every stack in it has a state that reads a byte on top, or is done.
  StackSet Step(StackSet set, uint8_t byte) {
    const uint32_t row = rows_[set];
    if (row != kNoRow) {
      const StackSet known = steps_[row + automaton_->byte_class(byte)];
      if (known != kUnknown) return known;
    }
    return ComputeStep(set, byte);
  }
  // What is left when the top of a stack is done: the stacks below it, ready to read.
  StackSet Return(StackSet below);

  std::span<const Frame> frames(StackSet set) const {
    return std::span(frames_).subspan(sets_[set].first, sets_[set].count);
  }
  // A stack of it is done.
  bool done(StackSet set) const {
    const auto f = frames(set);
    return !f.empty() && f.front().state == Automaton::kBottom;
  }
  int64_t cost(StackSet set) const { return sets_[set].cost; }  // tokens to the nearest end
  int32_t depth(StackSet set) const { return sets_[set].depth; }
  const Hash& hash(StackSet set) const { return sets_[set].hash; }
  size_t size() const { return sets_.size(); }
  bool overrun() const { return overrun_; }
  // It is near being overrun by what it remembers.
  bool full() const { return Weight() > kMaxWeight / 2; }

  // Forgets the sets after the first `size`.
  void Trim(size_t size);
  // Brings a set of another table of the same automaton here.
  StackSet Copy(const StackTable& from, StackSet set);

 private:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  static constexpr StackSet kUnknown = UINT32_MAX;

  // About ten bytes each: what a set and a union take besides the frames.
  static constexpr size_t kMaxWeight = size_t{1} << 22;
  size_t Weight() const { return frames_.size() + 2 * unions_.size() + 8 * sets_.size(); }
  static constexpr int32_t kMaxDepth = 4096;  // Union calls itself so often

  struct Set {
    uint32_t first;
    uint32_t count;
    int32_t depth;
    int64_t cost;
    Hash hash;
  };

  StackSet Intern(std::span<const Frame> frames);  // ascending by state, each once
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
  std::vector<uint32_t> rows_;   // per set: where its steps lie
  std::vector<StackSet> steps_;  // rows of one entry per byte class
  absl::flat_hash_map<Hash, StackSet> by_hash_;
  absl::flat_hash_map<std::pair<StackSet, StackSet>, StackSet> unions_;
  bool overrun_ = false;
  // While a set is being made.
  std::vector<Frame> arrived_;  // stacks, of which some may be reached twice
  absl::flat_hash_set<StackSet> returned_;
  std::vector<StackSet> below_;
  std::vector<Frame> closed_;
};

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_STACK_TABLE_H_
