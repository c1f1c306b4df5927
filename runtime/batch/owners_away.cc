#include "runtime/batch/owners_away.h"

#include <algorithm>

namespace trine {
namespace {

// An owner that has been away for longer than this may never come back.
constexpr std::chrono::seconds kForgotten(2);
// An owner that received logits within this time is about to come back with a token.
constexpr std::chrono::milliseconds kDecodes(100);

}  // namespace

void OwnersAway::Add(const Sequence* sequence, Clock::time_point since) {
  Remove(sequence);
  away_.push_back({sequence, since});
}

std::optional<OwnersAway::Clock::time_point> OwnersAway::Remove(const Sequence* sequence) {
  const auto found = std::find_if(away_.begin(), away_.end(),
                                  [&](const Away& away) { return away.sequence == sequence; });
  if (found == away_.end()) return std::nullopt;
  const Clock::time_point since = found->since;
  away_.erase(found);
  return since;
}

std::optional<OwnersAway::Clock::time_point> OwnersAway::ExpectedBack(Clock::duration patience) {
  const Clock::time_point now = Clock::now();
  std::erase_if(away_, [&](const Away& away) { return now - away.since > kForgotten; });
  std::optional<Clock::time_point> last;
  for (const Away& away : away_) {
    const Clock::time_point late = away.since + patience;
    if (late > now) last = std::max(late, last.value_or(late));
  }
  return last;
}

void OwnersAway::AppendExpected(Clock::duration patience,
                                std::vector<const Sequence*>* sequences) const {
  const Clock::time_point not_late = Clock::now() - patience;
  for (const Away& away : away_) {
    if (away.since > not_late) sequences->push_back(away.sequence);
  }
}

bool OwnersAway::AnyDecodes() const {
  const Clock::time_point lately = Clock::now() - kDecodes;
  return std::any_of(away_.begin(), away_.end(),
                     [&](const Away& away) { return away.since > lately; });
}

}  // namespace trine
