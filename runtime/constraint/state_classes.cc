#include "runtime/constraint/state_classes.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "runtime/constraint/finish_costs.h"

namespace trine::constraint {
namespace {

// Numbers looked at; beyond it every state is its own class, which is always right.
constexpr uint64_t kMaxWork = uint64_t{1} << 26;

// What a state does in one step, with the classes of what follows.
using Signature = std::vector<int64_t>;

// Partition refinement, one byte further with each round. Only states before one that changed its
// class in the round before are looked at again.
class Refinement {
 public:
  Refinement(const Automaton& automaton, const std::vector<int64_t>& costs)
      : automaton_(automaton),
        costs_(costs),
        classes_(automaton.size(), 0),
        members_{automaton.size()},
        signatures_(1),
        before_(automaton.size()) {
    for (uint32_t s = 0; s < automaton.size(); ++s) {
      for (const Automaton::ByteEdge& e : automaton.bytes(s)) before_[e.to].push_back(s);
      for (const Automaton::CallEdge& e : automaton.calls(s)) before_[e.to].push_back(s);
      doubtful_.push_back(s);
    }
  }

  // False when it takes too long.
  bool Run(int32_t rounds) {
    for (int32_t round = 0; round < rounds && !doubtful_.empty(); ++round) {
      if (!Refine()) return false;
    }
    return true;
  }

  std::vector<uint32_t> Names() const {
    std::vector<uint32_t> least(members_.size(), UINT32_MAX), names(classes_.size());
    for (uint32_t s = 0; s < names.size(); ++s) {
      uint32_t& name = least[classes_[s]];
      name = std::min(name, s);
      names[s] = name;
    }
    return names;
  }

 private:
  Signature Describe(uint32_t state) const {
    Signature out = {automaton_.accepts(state) ? 1 : 0};
    for (const Automaton::ByteEdge& e : automaton_.bytes(state)) {
      out.insert(out.end(),
                 {int64_t{e.low} << 8 | e.high, classes_[e.to], costs_[e.to] - costs_[state]});
    }
    out.push_back(-1);
    for (const Automaton::CallEdge& e : automaton_.calls(state)) {
      // A place nobody need come back to is not put on the stack.
      out.insert(out.end(), {e.start, classes_[e.to], automaton_.only_accepts(e.to) ? 1 : 0,
                             AddCosts(costs_[e.to], costs_[e.start]) - costs_[state]});
    }
    return out;
  }

  bool Refine() {
    std::vector<std::pair<uint32_t, Signature>> described;
    absl::flat_hash_map<uint32_t, uint32_t> doubtful_members;
    for (const uint32_t s : doubtful_) {
      described.emplace_back(s, Describe(s));
      work_ += described.back().second.size();
      ++doubtful_members[classes_[s]];
    }
    if (work_ > kMaxWork) return false;
    // A class keeps its number for those of its members that are not in doubt; where all are, for
    // those like the first.
    for (const auto& [s, signature] : described) {
      uint32_t& count = doubtful_members[classes_[s]];
      if (count == members_[classes_[s]]) signatures_[classes_[s]] = signature;
      count = 0;
    }
    absl::flat_hash_map<std::pair<uint32_t, Signature>, uint32_t> parted;
    std::vector<std::pair<uint32_t, uint32_t>> moves;
    for (auto& [s, signature] : described) {
      const uint32_t old = classes_[s];
      if (signature == signatures_[old]) continue;
      const auto [it, added] =
          parted.try_emplace({old, std::move(signature)}, static_cast<uint32_t>(members_.size()));
      if (added) {
        members_.push_back(0);
        signatures_.push_back(it->first.second);
      }
      moves.emplace_back(s, it->second);
    }
    doubtful_.clear();
    for (const auto& [s, to] : moves) {
      --members_[classes_[s]];
      ++members_[to];
      classes_[s] = to;
      doubtful_.insert(doubtful_.end(), before_[s].begin(), before_[s].end());
    }
    std::sort(doubtful_.begin(), doubtful_.end());
    doubtful_.erase(std::unique(doubtful_.begin(), doubtful_.end()), doubtful_.end());
    return true;
  }

  const Automaton& automaton_;
  const std::vector<int64_t>& costs_;
  std::vector<uint32_t> classes_;
  std::vector<uint32_t> members_;      // how many, by class
  std::vector<Signature> signatures_;  // of the members, by class
  std::vector<std::vector<uint32_t>> before_;
  std::vector<uint32_t> doubtful_;
  uint64_t work_ = 0;
};

}  // namespace

std::vector<uint32_t> StateClasses(const Automaton& automaton, const std::vector<int64_t>& costs,
                                   int32_t max_bytes) {
  Refinement refinement(automaton, costs);
  // One round more than bytes: whether the rule may end behind the last of them.
  if (refinement.Run(max_bytes + 1)) return refinement.Names();
  std::vector<uint32_t> each(automaton.size());
  for (uint32_t s = 0; s < each.size(); ++s) each[s] = s;
  return each;
}

}  // namespace trine::constraint
