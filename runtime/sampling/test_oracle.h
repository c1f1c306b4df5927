// The sampler exactly as docs/numerics.md defines it: keeps all candidates in one list and sorts it
// again whenever the order matters. Slow and short; the fast sampler must choose the same tokens.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/quant/test_util.h"
#include "kernels/reference/math.h"
#include "runtime/sampling/exact_log.h"
#include "runtime/sampling/philox.h"
#include "runtime/sampling/sampler_options.h"

namespace trine {

class OracleSampler {
 public:
  struct Entry {
    float logit;
    int32_t token;
    bool operator==(const Entry&) const = default;
  };

  explicit OracleSampler(const SamplerOptions& options)
      : o_(options), mu_(2.0 * double{options.mirostat_tau}) {}

  void Accept(int32_t token) { history_.push_back(token); }
  double mu() const { return mu_; }
  const std::vector<Entry>& list() const { return list_; }

  int32_t Sample(std::span<const float> logits, std::span<const uint32_t> allowed = {}) {
    const uint64_t random = RandomDraw(o_.seed, draws_++);
    Load(logits, allowed);
    bool greedy = false;
    for (const SamplerStage stage : o_.stages) {
      const bool truncates =
          stage != SamplerStage::kPenalties && stage != SamplerStage::kTemperature;
      if (o_.mirostat == 2 && truncates) continue;
      greedy |= stage == SamplerStage::kTemperature && o_.temp < 0x1p-20f;
      Apply(stage);
    }
    if (list_.empty()) return -1;
    if (greedy) return list_.front().token;
    if (o_.mirostat != 2) return Draw(random).token;
    const double log_sum = ExactLog(static_cast<double>(Total()) * 0x1p-40);
    KeepWithin(static_cast<float>(mu_ * kLn2 - log_sum), 1);
    const double log_kept = ExactLog(static_cast<double>(Total()) * 0x1p-40);
    const Entry drawn = Draw(random);
    const float gap = list_.front().logit - drawn.logit;
    const double surprise = (log_kept + static_cast<double>(gap)) / kLn2;
    mu_ = mu_ -
          static_cast<double>(o_.mirostat_eta) * (surprise - static_cast<double>(o_.mirostat_tau));
    return drawn.token;
  }

  void Load(std::span<const float> logits, std::span<const uint32_t> allowed) {
    list_.clear();
    for (size_t i = 0; i < logits.size(); ++i) {
      const float x = logits[i];
      if (!allowed.empty() && !(allowed[i / 32] >> (i % 32) & 1u)) continue;
      list_.push_back({x != x ? -reference::kHuge : reference::Canon(x), static_cast<int32_t>(i)});
    }
    for (const LogitBias& bias : o_.logit_bias) {
      const bool ban = bias.bias == -std::numeric_limits<float>::infinity();
      if (ban) std::erase_if(list_, [&](const Entry& e) { return e.token == bias.token; });
      for (Entry& e : list_) {
        if (e.token == bias.token)
          e.logit = reference::Canon(e.logit + reference::Canon(bias.bias));
      }
    }
    Sort();
  }

  void Apply(SamplerStage stage) {
    const int64_t min_keep = std::max(o_.min_keep, 1);
    switch (stage) {
      case SamplerStage::kPenalties:
        return Penalise();
      case SamplerStage::kTopK:
        if (o_.top_k > 0) Cut(std::max<int64_t>(o_.top_k, min_keep));
        return;
      case SamplerStage::kTypicalP:
        if (o_.typical_p < 1.0f) KeepTypical(min_keep);
        return;
      case SamplerStage::kTopP:
        if (o_.top_p < 1.0f) KeepShare(o_.top_p, min_keep);
        return;
      case SamplerStage::kMinP:
        if (o_.min_p >= reference::kTiny) {
          KeepWithin(static_cast<float>(-ExactLog(static_cast<double>(o_.min_p))), min_keep);
        }
        return;
      case SamplerStage::kTemperature:
        if (o_.temp < 0x1p-20f) return Cut(1);
        for (Entry& e : list_) e.logit = reference::Canon(e.logit * reference::Recip(o_.temp));
        return Sort();
    }
  }

 private:
  void Sort() {
    std::sort(list_.begin(), list_.end(), [](const Entry& a, const Entry& b) {
      return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
    });
  }

  void Cut(int64_t n) {
    if (n < static_cast<int64_t>(list_.size())) list_.resize(static_cast<size_t>(n));
  }

  uint64_t Weight(float logit, float max) const {
    return static_cast<uint64_t>(reference::Exp(logit - max) * 0x1p+40f);
  }

  uint64_t Total() const {
    uint64_t total = 0;
    for (const Entry& e : list_) total += Weight(e.logit, list_.front().logit);
    return total;
  }

  void Penalise() {
    if (o_.repeat_last_n == 0) return;
    std::map<int32_t, int32_t> counts;
    const size_t n = o_.repeat_last_n < 0 ? history_.size() : static_cast<size_t>(o_.repeat_last_n);
    for (size_t i = history_.size() - std::min(n, history_.size()); i < history_.size(); ++i) {
      ++counts[history_[i]];
    }
    for (Entry& e : list_) {
      const auto it = counts.find(e.token);
      if (it == counts.end()) continue;
      const float y =
          reference::Canon(e.logit > 0.0f ? e.logit * reference::Recip(o_.repeat_penalty)
                                          : e.logit * o_.repeat_penalty);
      const float cost =
          static_cast<float>(it->second) * o_.frequency_penalty + o_.presence_penalty;
      e.logit = reference::Canon(y - cost);
    }
    Sort();
  }

  // Cuts list_, in its present order, after the entry at which the running sum reaches the share.
  void CutAtShare(float p, float max, int64_t min_keep) {
    uint64_t total = 0, sum = 0;
    for (const Entry& e : list_) total += Weight(e.logit, max);
    const auto need = static_cast<uint64_t>(static_cast<double>(p) * static_cast<double>(total));
    for (size_t i = 0; i < list_.size(); ++i) {
      sum += Weight(list_[i].logit, max);
      if (sum >= need && static_cast<int64_t>(i) + 1 >= min_keep) {
        return Cut(static_cast<int64_t>(i) + 1);
      }
    }
  }

  void KeepShare(float p, int64_t min_keep) {
    if (!list_.empty()) CutAtShare(p, list_.front().logit, min_keep);
  }

  void KeepTypical(int64_t min_keep) {
    if (list_.empty()) return;
    const float max = list_.front().logit;
    uint64_t with_gap = 0;
    for (const Entry& e : list_) {
      const float w = reference::Exp(e.logit - max);
      if (w > 0.0f) with_gap += static_cast<uint64_t>((w * (max - e.logit)) * 0x1p+40f);
    }
    const auto mean =
        static_cast<float>(static_cast<double>(with_gap) / static_cast<double>(Total()));
    std::stable_sort(list_.begin(), list_.end(), [&](const Entry& a, const Entry& b) {
      return reference::Abs((max - a.logit) - mean) < reference::Abs((max - b.logit) - mean);
    });
    CutAtShare(o_.typical_p, max, min_keep);
    Sort();
  }

  void KeepWithin(float gap, int64_t min_keep) {
    size_t n = 0;
    while (n < list_.size() && list_.front().logit - list_[n].logit <= gap) ++n;
    Cut(std::max(static_cast<int64_t>(n), min_keep));
  }

  Entry Draw(uint64_t random) const {
    const uint64_t target = ScaleRandom(random, Total());
    uint64_t sum = 0;
    for (const Entry& e : list_) {
      sum += Weight(e.logit, list_.front().logit);
      if (sum > target) return e;
    }
    return {0.0f, -1};
  }

  SamplerOptions o_;
  double mu_;
  uint64_t draws_ = 0;
  std::vector<int32_t> history_;
  std::vector<Entry> list_;
};

// Kinds of logit rows that a sampler gets, and kinds that it must survive.
enum class RowShape { kModel, kFlat, kTied, kPeaked, kWide, kCanonEnds };
inline constexpr RowShape kRowShapes[] = {RowShape::kModel,  RowShape::kFlat, RowShape::kTied,
                                          RowShape::kPeaked, RowShape::kWide, RowShape::kCanonEnds};

inline std::vector<float> RandomRow(RowShape shape, int32_t n, quant::Random* random) {
  std::vector<float> row(static_cast<size_t>(n));
  const float base = 8.0f * random->Uniform();
  for (float& x : row) {
    // The sum of three uniform numbers is bell-shaped with deviation 1.
    float sum = random->Uniform();
    sum += random->Uniform();
    sum += random->Uniform();
    switch (shape) {
      case RowShape::kModel:
        x = 1.5f * sum + base;
        break;
      case RowShape::kFlat:
        x = base;
        break;
      case RowShape::kTied:
        x = static_cast<float>(random->Below(6)) - 2.0f;
        break;
      case RowShape::kPeaked:
        x = random->Below(n) < 2 ? 40.0f + sum : sum;
        break;
      case RowShape::kWide:
        x = reference::Canon(random->Wide(-50, 49));
        break;
      case RowShape::kCanonEnds:
        x = random->Below(3) == 0 ? reference::kHuge : -reference::kHuge;
        break;
    }
  }
  return row;
}

}  // namespace trine
