#include "runtime/constraint/mask/stack_table.h"

#include <algorithm>
#include <tuple>

namespace trine::constraint {
namespace {

uint64_t Mix(uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

StackTable::StackTable(const Automaton* automaton, const std::vector<int64_t>* costs)
    : automaton_(automaton), costs_(costs) {
  Intern({});
  const Frame bottom = {Automaton::kBottom, kNoStacks};
  Intern(std::span(&bottom, 1));
}

StackSet StackTable::Intern(std::span<const Frame> frames) {
  Set set = {static_cast<uint32_t>(frames_.size()),
             static_cast<uint32_t>(frames.size()),
             0,
             kNeverFinishes,
             {0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u}};
  for (const Frame& f : frames) {
    const Set& below = sets_.empty() ? set : sets_[f.below];
    const Hash under = sets_.empty() ? Hash{} : below.hash;
    set.hash.first = Mix(set.hash.first ^ Mix(under.first + f.state));
    set.hash.second = Mix(set.hash.second + Mix(under.second ^ (uint64_t{f.state} << 17)));
    if (f.state == Automaton::kBottom) {
      set.cost = 0;
    } else {
      set.cost = std::min(set.cost, AddCosts((*costs_)[f.state], below.cost));
      set.depth = std::max(set.depth, below.depth + 1);
    }
  }
  const auto [it, added] = by_hash_.try_emplace(set.hash, static_cast<StackSet>(sets_.size()));
  if (added) {
    frames_.insert(frames_.end(), frames.begin(), frames.end());
    sets_.push_back(set);
    rows_.push_back(kNoRow);
    overrun_ = overrun_ || Weight() > kMaxWeight || set.depth > kMaxDepth;
  }
  return it->second;
}

StackSet StackTable::Single(uint32_t state, StackSet below) {
  const Frame frame = {state, below};
  return Intern(std::span(&frame, 1));
}

StackSet StackTable::Union(StackSet a, StackSet b) {
  if (a == b || b == kNoStacks) return a;
  if (a == kNoStacks) return b;
  if (a > b) std::swap(a, b);
  if (const auto it = unions_.find({a, b}); it != unions_.end()) return it->second;
  if (overrun_) return a;
  std::vector<Frame> merged;
  size_t i = 0, j = 0;
  while (i < frames(a).size() || j < frames(b).size()) {
    // Copies the frames, because the recursion may move them.
    const bool has_a = i < frames(a).size(), has_b = j < frames(b).size();
    const Frame fa = has_a ? frames(a)[i] : Frame{UINT32_MAX, kNoStacks};
    const Frame fb = has_b ? frames(b)[j] : Frame{UINT32_MAX, kNoStacks};
    if (fa.state == fb.state) {
      merged.push_back({fa.state, Union(fa.below, fb.below)});
      ++i, ++j;
    } else if (fa.state < fb.state) {
      merged.push_back(fa);
      ++i;
    } else {
      merged.push_back(fb);
      ++j;
    }
  }
  const StackSet result = Intern(merged);
  unions_[{a, b}] = result;
  return result;
}

// Merges in pairs, so that many small sets are not copied into an ever larger one.
StackSet StackTable::UnionOfBelow() {
  while (below_.size() > 1) {
    size_t kept = 0;
    for (size_t i = 0; i < below_.size(); i += 2) {
      below_[kept++] = i + 1 < below_.size() ? Union(below_[i], below_[i + 1]) : below_[i];
    }
    below_.resize(kept);
  }
  return below_.front();
}

// Goes on with the callers of each rule that may end. Visits what several stacks share below once.
void StackTable::FollowReturns() {
  for (size_t i = 0; i < arrived_.size(); ++i) {
    const Frame top = arrived_[i];
    if (!automaton_->accepts(top.state) || !returned_.insert(top.below).second) continue;
    for (const Frame& f : frames(top.below)) Reach(f.state, f.below);
  }
  returned_.clear();
}

// Goes from the highest level down: when a state's turn comes, all its callers have had theirs, so
// it makes its calls once for all stacks that it is on top of. No called rule ends here, because
// calls never read the empty text.
void StackTable::FollowCalls() {
  const auto later = [this](const Frame& a, const Frame& b) {
    return std::tuple(automaton_->level(a.state), a.state, a.below) <
           std::tuple(automaton_->level(b.state), b.state, b.below);
  };
  std::make_heap(arrived_.begin(), arrived_.end(), later);
  while (!arrived_.empty() && !overrun_) {
    const uint32_t state = arrived_.front().state;
    below_.clear();
    while (!arrived_.empty() && arrived_.front().state == state) {
      if (below_.empty() || below_.back() != arrived_.front().below) {
        below_.push_back(arrived_.front().below);
      }
      std::pop_heap(arrived_.begin(), arrived_.end(), later);
      arrived_.pop_back();
    }
    const StackSet below = UnionOfBelow();
    if (state == Automaton::kBottom || !automaton_->bytes(state).empty()) {
      closed_.push_back({state, below});
    }
    for (const Automaton::CallEdge& call : automaton_->calls(state)) {
      Reach(call.start, automaton_->only_accepts(call.to) ? below : Single(call.to, below));
      std::push_heap(arrived_.begin(), arrived_.end(), later);
    }
  }
  arrived_.clear();
}

// Follows returns and calls from the states arrived at to the states that read a byte.
StackSet StackTable::Close() {
  FollowReturns();
  FollowCalls();
  std::sort(closed_.begin(), closed_.end(),
            [](const Frame& a, const Frame& b) { return a.state < b.state; });
  const StackSet closed = overrun_ ? kNoStacks : Intern(closed_);
  closed_.clear();
  return closed;
}

StackSet StackTable::Begin() {
  Reach(automaton_->root(), kDone);
  return Close();
}

StackSet StackTable::Return(StackSet below) {
  for (const Frame& f : frames(below)) Reach(f.state, f.below);
  return Close();
}

StackSet StackTable::ComputeStep(StackSet set, uint8_t byte) {
  if (overrun_) return kNoStacks;
  for (const Frame& f : frames(set)) {
    for (const Automaton::ByteEdge& edge : automaton_->bytes(f.state)) {
      if (edge.low <= byte && byte <= edge.high) Reach(edge.to, f.below);
    }
  }
  const StackSet next = arrived_.empty() ? kNoStacks : Close();
  if (overrun_) return next;
  if (rows_[set] == kNoRow) {
    rows_[set] = static_cast<uint32_t>(steps_.size());
    steps_.resize(steps_.size() + automaton_->byte_classes(), kUnknown);
  }
  steps_[rows_[set] + automaton_->byte_class(byte)] = next;
  return next;
}

void StackTable::Trim(size_t size) {
  if (size >= sets_.size()) return;
  for (size_t s = size; s < sets_.size(); ++s) by_hash_.erase(sets_[s].hash);
  frames_.resize(sets_[size].first);
  sets_.resize(size);
  rows_.assign(size, kNoRow);
  steps_.clear();
  unions_.clear();
}

StackSet StackTable::Copy(const StackTable& from, StackSet set) {
  // The sets below a set have smaller ids.
  std::vector<bool> wanted(set + size_t{1}, false);
  wanted[set] = true;
  for (StackSet s = set; s > 0; --s) {
    if (!wanted[s]) continue;
    for (const Frame& f : from.frames(s)) wanted[f.below] = true;
  }
  std::vector<StackSet> here(set + size_t{1}, kNoStacks);
  std::vector<Frame> frames;
  for (StackSet s = 1; s <= set; ++s) {
    if (!wanted[s]) continue;
    frames.clear();
    for (const Frame& f : from.frames(s)) frames.push_back({f.state, here[f.below]});
    here[s] = Intern(frames);
  }
  return here[set];
}

}  // namespace trine::constraint
