#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cstddef>

#include "kernels/reference/math.h"
#include "runtime/sampling/exact_log.h"
#include "runtime/sampling/philox.h"
#include "runtime/sampling/row_passes.h"

namespace trine {
namespace {

// Lower temperatures count as 0: they would carry ordinary logits past the canonical range.
constexpr float kLeastTemperature = 0x1p-20f;

bool HasPenalties(const SamplerOptions& o) {
  return o.repeat_last_n != 0 &&
         (o.repeat_penalty != 1.0f || o.frequency_penalty != 0.0f || o.presence_penalty != 0.0f);
}

SamplerState FirstState(const SamplerOptions& options) {
  SamplerState state;
  state.mirostat_mu = 2.0 * static_cast<double>(options.mirostat_tau);
  state.window = TokenWindow(HasPenalties(options) ? options.repeat_last_n : 0);
  return state;
}

// Makes scalar parameters canonical, as all arithmetic requires.
SamplerOptions Canonical(SamplerOptions options) {
  for (float* value : {&options.temp, &options.top_p, &options.min_p, &options.typical_p,
                       &options.repeat_penalty, &options.frequency_penalty,
                       &options.presence_penalty, &options.mirostat_tau, &options.mirostat_eta}) {
    *value = reference::Canon(*value);
  }
  for (LogitBias& entry : options.logit_bias) {
    if (entry.bias != kRemoved) entry.bias = reference::Canon(entry.bias);
  }
  return options;
}

bool IsActive(SamplerStage stage, const SamplerOptions& o) {
  switch (stage) {
    case SamplerStage::kPenalties:
      return HasPenalties(o);
    case SamplerStage::kTopK:
      return o.top_k > 0 && o.mirostat == 0;
    case SamplerStage::kTypicalP:
      return o.typical_p < 1.0f && o.mirostat == 0;
    case SamplerStage::kTopP:
      return o.top_p < 1.0f && o.mirostat == 0;
    case SamplerStage::kMinP:
      return o.min_p > 0.0f && o.mirostat == 0;
    case SamplerStage::kTemperature:
      return o.temp != 1.0f;
  }
  return false;
}

// Returns the stages that can change the outcome. A temperature of 0 takes the first candidate:
// nothing after it matters, nor truncations right before it that can't drop the first (all but
// typical_p).
std::vector<SamplerStage> EffectiveStages(const SamplerOptions& options) {
  std::vector<SamplerStage> stages;
  for (const SamplerStage stage : options.stages) {
    if (!IsActive(stage, options)) continue;
    if (stage == SamplerStage::kTemperature && options.temp < kLeastTemperature) {
      while (!stages.empty() && stages.back() != SamplerStage::kPenalties &&
             stages.back() != SamplerStage::kTypicalP) {
        stages.pop_back();
      }
      stages.push_back(stage);
      break;
    }
    stages.push_back(stage);
  }
  return stages;
}

// Returns the logarithm of a sum of weights.
double LogOfWeight(uint64_t weight) { return ExactLog(static_cast<double>(weight) * 0x1p-40); }

}  // namespace

LogSoftmax::LogSoftmax(std::span<const float> logits) {
  if (logits.empty()) return;
  max = kRemoved;
  for (const float x : logits) max = std::max(max, Sanitised(x));
  uint64_t total = 0;
  for (const float x : logits) total += WeightOfGap(max - Sanitised(x));
  log_sum = LogOfWeight(total);
}

double LogSoftmax::Of(float logit) const {
  return (static_cast<double>(Sanitised(logit)) - static_cast<double>(max)) - log_sum;
}

void TopLogprobs(std::span<const float> logits, const LogSoftmax& softmax, int32_t n,
                 std::vector<TokenLogprob>* top) {
  top->clear();
  if (n <= 0) return;
  const size_t keep = std::min(static_cast<size_t>(n), logits.size());
  // A heap whose front is the last in order. It compares logits, because different logits may have
  // equal log-probabilities.
  const auto before = [&](const TokenLogprob& a, const TokenLogprob& b) {
    return RanksBefore({Sanitised(logits[static_cast<size_t>(a.token)]), a.token},
                       {Sanitised(logits[static_cast<size_t>(b.token)]), b.token});
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    const TokenLogprob entry = {static_cast<int32_t>(i), softmax.Of(logits[i])};
    if (top->size() == keep) {
      if (!before(entry, top->front())) continue;
      std::pop_heap(top->begin(), top->end(), before);
      top->back() = entry;
    } else {
      top->push_back(entry);
    }
    std::push_heap(top->begin(), top->end(), before);
  }
  std::sort_heap(top->begin(), top->end(), before);
}

absl::StatusOr<Sampler> Sampler::Create(const SamplerOptions& options, int32_t vocab_size) {
  if (absl::Status status = Validate(options, vocab_size); !status.ok()) return status;
  return Sampler(Canonical(options), vocab_size);
}

Sampler::Sampler(const SamplerOptions& options, int32_t vocab_size)
    : options_(options),
      stages_(EffectiveStages(options)),
      vocab_size_(vocab_size),
      state_(FirstState(options)),
      candidates_(vocab_size) {}

void Sampler::Reset() { state_ = FirstState(options_); }

void Sampler::Accept(int32_t token) {
  if (token >= 0 && token < vocab_size_) state_.window.Add(token);
}

int32_t Sampler::Sample(std::span<const float> logits, std::span<const uint32_t> allowed) {
  const uint64_t random = RandomDraw(options_.seed, state_.draws++);
  candidates_.Load(logits, allowed);
  ApplyBias();
  for (const SamplerStage stage : stages_) {
    if (stage == SamplerStage::kTemperature && options_.temp < kLeastTemperature) {
      return candidates_.First();
    }
    ApplyStage(stage);
  }
  return options_.mirostat == 2 ? DrawMirostat(random) : candidates_.Draw(random).token;
}

void Sampler::SampleWithLogprobs(std::span<const float> logits, std::span<const uint32_t> allowed,
                                 int32_t n_top, SampleResult* result) {
  result->token = Sample(logits, allowed);
  AddLogprobs(logits, n_top, result);
}

void Sampler::AddLogprobs(std::span<const float> logits, int32_t n_top,
                          SampleResult* result) const {
  const std::span<const float> row =
      logits.first(std::min(logits.size(), static_cast<size_t>(vocab_size_)));
  const LogSoftmax softmax(row);
  result->logprob =
      result->token == kNoToken ? 0.0 : softmax.Of(row[static_cast<size_t>(result->token)]);
  TopLogprobs(row, softmax, n_top, &result->top);
}

void Sampler::ApplyBias() {
  for (const LogitBias& entry : options_.logit_bias) {
    if (entry.bias == kRemoved) {
      candidates_.RemoveFromRow(entry.token);
    } else if (float* const logit = candidates_.RowLogit(entry.token)) {
      *logit = reference::Canon(*logit + entry.bias);
    }
  }
}

void Sampler::ApplyStage(SamplerStage stage) {
  const int64_t min_keep = std::max(options_.min_keep, 1);
  switch (stage) {
    case SamplerStage::kPenalties:
      return ApplyPenalties();
    case SamplerStage::kTopK:
      return candidates_.KeepFirst(std::max<int64_t>(options_.top_k, min_keep));
    case SamplerStage::kTypicalP:
      return candidates_.KeepTypical(options_.typical_p, min_keep);
    case SamplerStage::kTopP:
      return candidates_.KeepTopP(options_.top_p, min_keep);
    case SamplerStage::kMinP:
      return candidates_.KeepWithin(
          static_cast<float>(-ExactLog(static_cast<double>(options_.min_p))), min_keep);
    case SamplerStage::kTemperature:
      return candidates_.Scale(reference::Recip(options_.temp));
  }
}

void Sampler::ApplyPenalties() {
  const float repeat = options_.repeat_penalty, inverse_repeat = reference::Recip(repeat);
  const auto penalised = [&](float x, int32_t count) {
    const float y = reference::Canon(x > 0.0f ? x * inverse_repeat : x * repeat);
    const float cost =
        static_cast<float>(count) * options_.frequency_penalty + options_.presence_penalty;
    return reference::Canon(y - cost);
  };
  if (candidates_.is_row()) {
    state_.window.ForEach([&](int32_t token, int32_t count) {
      if (float* const logit = candidates_.RowLogit(token)) *logit = penalised(*logit, count);
    });
    return;
  }
  candidates_.ChangeList([&](int32_t token, float logit) {
    const int32_t count = state_.window.Count(token);
    return count == 0 ? logit : penalised(logit, count);
  });
}

// Keeps the candidates whose surprise is at most mu, draws one, and moves mu so that the mean
// surprise approaches tau.
int32_t Sampler::DrawMirostat(uint64_t random) {
  if (candidates_.Max() == kRemoved) return kNoToken;
  const double log_sum = LogOfWeight(candidates_.TotalWeight());
  candidates_.KeepWithin(static_cast<float>(state_.mirostat_mu * kLn2 - log_sum), 1);
  const Candidates::Drawn drawn = candidates_.Draw(random);
  const double surprise = (LogOfWeight(drawn.weight) + static_cast<double>(drawn.gap)) / kLn2;
  state_.mirostat_mu =
      state_.mirostat_mu - static_cast<double>(options_.mirostat_eta) *
                               (surprise - static_cast<double>(options_.mirostat_tau));
  return drawn.token;
}

}  // namespace trine
