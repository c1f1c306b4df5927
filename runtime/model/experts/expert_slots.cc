#include "runtime/model/experts/expert_slots.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trine {
namespace {

// Hits count half as much after so many tokens.
constexpr double kHalfLife = 1024;
// An exchange is worth the copy if the expert that comes has this many times the hits of the one
// that goes, and this many hits more.
constexpr double kTimes = 1.5;
constexpr double kMore = 8;

}  // namespace

ExpertSlots::ExpertSlots(int64_t experts, int64_t slots)
    : slot_of_(static_cast<size_t>(experts), kNone),
      in_slot_(static_cast<size_t>(slots), kNone),
      awaited_(static_cast<size_t>(slots), kNone),
      recent_(static_cast<size_t>(experts), 0) {
  for (int32_t i = 0; i < slots; ++i) Fill(i, i);
}

void ExpertSlots::Divide(std::span<const int32_t> ids, bool home, int32_t* out) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t slot = slot_of_[static_cast<size_t>(ids[i])];
    out[i] = home ? slot : slot == kNone ? ids[i] : kNone;
  }
}

void ExpertSlots::Notice(std::span<const int32_t> ids, int64_t tokens) {
  const double left = std::exp2(-static_cast<double>(tokens) / kHalfLife);
  for (double& hits : recent_) hits *= left;
  for (const int32_t id : ids) recent_[static_cast<size_t>(id)] += 1;
}

void ExpertSlots::Expect(const std::vector<uint64_t>& hits) {
  const auto sum = static_cast<double>(std::accumulate(hits.begin(), hits.end(), uint64_t{0}));
  if (sum == 0) return;
  // As many hits as a half-life of tokens gives a model whose tokens choose a few experts.
  const double scale = std::min(1.0, 4 * kHalfLife / sum);
  for (size_t e = 0; e < recent_.size(); ++e) recent_[e] = scale * static_cast<double>(hits[e]);
}

std::optional<ExpertSlots::Exchange> ExpertSlots::Best() const {
  const auto hits_in = [&](size_t slot) {
    const int32_t expert = in_slot_[slot];
    return expert == kNone ? -1.0 : recent_[static_cast<size_t>(expert)];
  };
  std::optional<size_t> coldest;
  for (size_t slot = 0; slot < in_slot_.size(); ++slot) {
    if (awaited_[slot] != kNone) continue;
    if (!coldest || hits_in(slot) < hits_in(*coldest)) coldest = slot;
  }
  std::optional<size_t> hottest;
  for (size_t expert = 0; expert < slot_of_.size(); ++expert) {
    const auto id = static_cast<int32_t>(expert);
    if (slot_of_[expert] != kNone || std::count(awaited_.begin(), awaited_.end(), id) > 0) continue;
    if (!hottest || recent_[expert] > recent_[*hottest]) hottest = expert;
  }
  if (!coldest || !hottest) return std::nullopt;
  const double before = hits_in(*coldest), after = recent_[*hottest];
  const bool empty = before < 0;
  if (!empty && (after < kTimes * before || after < before + kMore)) return std::nullopt;
  return Exchange{static_cast<int64_t>(*coldest), static_cast<int32_t>(*hottest),
                  after - std::max(before, 0.0)};
}

std::vector<ExpertSlots::Exchange> ExpertSlots::ToTheMostChosen() const {
  std::vector<int32_t> order(slot_of_.size());
  std::iota(order.begin(), order.end(), 0);
  // Of experts with equal hits those stay that are there.
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const double more = recent_[static_cast<size_t>(a)] - recent_[static_cast<size_t>(b)];
    if (more != 0) return more > 0;
    return slot_of_[static_cast<size_t>(a)] != kNone && slot_of_[static_cast<size_t>(b)] == kNone;
  });
  std::vector<bool> wanted(slot_of_.size(), false);
  for (size_t i = 0; i < in_slot_.size(); ++i) wanted[static_cast<size_t>(order[i])] = true;
  std::vector<Exchange> exchanges;
  size_t next = 0;
  for (size_t slot = 0; slot < in_slot_.size(); ++slot) {
    const int32_t expert = in_slot_[slot];
    if (expert != kNone && wanted[static_cast<size_t>(expert)]) continue;
    while (slot_of_[static_cast<size_t>(order[next])] != kNone) ++next;
    const int32_t comes = order[next++];
    exchanges.push_back({static_cast<int64_t>(slot), comes, recent_[static_cast<size_t>(comes)]});
  }
  return exchanges;
}

void ExpertSlots::Empty(int64_t slot) {
  int32_t& expert = in_slot_[static_cast<size_t>(slot)];
  if (expert != kNone) slot_of_[static_cast<size_t>(expert)] = kNone;
  expert = kNone;
}

void ExpertSlots::Await(int64_t slot, int32_t expert) {
  Empty(slot);
  awaited_[static_cast<size_t>(slot)] = expert;
}

void ExpertSlots::Fill(int64_t slot, int32_t expert) {
  Empty(slot);
  awaited_[static_cast<size_t>(slot)] = kNone;
  in_slot_[static_cast<size_t>(slot)] = expert;
  slot_of_[static_cast<size_t>(expert)] = static_cast<int32_t>(slot);
}

}  // namespace trine
