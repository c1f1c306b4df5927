// Sampler: chooses the next token of one sequence from a row of logits.
//
// Chooses the same token on every machine: the choice depends only on the arguments of Sample, the
// options and the state, and docs/numerics.md ("Sampling") defines the arithmetic. A copy of a
// sampler starts in the same state and shares nothing with the original. Only SamplerState changes
// from token to token, so storing it and restoring it later rolls a sequence back.
//
// Allocates nothing after Create, with two exceptions: a penalty window over the whole sequence
// (repeat_last_n = -1) doubles when it is full, and SampleResult::top grows to its size once.
//
// Not thread-safe: one thread at a time per sampler. Different samplers share nothing.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/token.h"
#include "runtime/sampling/candidates.h"
#include "runtime/sampling/sampler_options.h"
#include "runtime/sampling/token_window.h"

namespace trine {

// A token and its log-probability in the model's own distribution: the softmax of the whole row of
// logits, before bias, penalties and temperature.
struct TokenLogprob {
  int32_t token = 0;
  double logprob = 0.0;
};

// Computes log-probabilities. The constructor computes the values that all tokens of a row share;
// Of returns the log-probability of a token from its logit. Any thread may use it.
struct LogSoftmax {
  float max = 0.0f;
  double log_sum = 0.0;  // log of the sum of e^(x - max)

  explicit LogSoftmax(std::span<const float> logits);
  double Of(float logit) const;
};

// Sets *top to the `n` most probable tokens, the highest logit first. Among equal logits the lowest
// id comes first.
void TopLogprobs(std::span<const float> logits, const LogSoftmax& softmax, int32_t n,
                 std::vector<TokenLogprob>* top);

struct SamplerState {
  uint64_t draws = 0;        // tokens sampled so far; also the index of the next random number
  double mirostat_mu = 0.0;  // mirostat drops tokens with more bits of surprise than this
  TokenWindow window;        // the last accepted tokens, which penalties count
};

struct SampleResult {
  int32_t token = kNoToken;
  double logprob = 0.0;           // the log-probability of `token`; 0 if there is no token
  std::vector<TokenLogprob> top;  // the most probable tokens, as TopLogprobs orders them
};

class Sampler {
 public:
  static absl::StatusOr<Sampler> Create(const SamplerOptions& options, int32_t vocab_size);

  // Draws a token, or returns kNoToken if every token is forbidden or banned. The caller calls
  // Accept for the token that it takes, which may be another one. `logits` is a row of vocab_size
  // values. Bit i % 32 of allowed[i / 32] allows token i; an empty span allows all.
  int32_t Sample(std::span<const float> logits, std::span<const uint32_t> allowed = {});

  // Draws a token as Sample does. Sets *result to the token, its log-probability, and the `n_top`
  // most probable tokens. Reuses the memory of result->top.
  void SampleWithLogprobs(std::span<const float> logits, std::span<const uint32_t> allowed,
                          int32_t n_top, SampleResult* result);

  // Sets result->logprob and result->top for the token that result already has. That token may have
  // been drawn from another row, such as one that a head has changed (runtime/engine/rerank.h).
  void AddLogprobs(std::span<const float> logits, int32_t n_top, SampleResult* result) const;

  // Counts `token`, which comes from the prompt or from Sample, as the next one of the sequence, so
  // that penalties apply to it.
  void Accept(int32_t token);

  // Returns to the state after Create.
  void Reset();

  // Replaces the seed, so that a fork draws other tokens than its origin. Keeps the count of draws.
  void Reseed(uint64_t seed) { options_.seed = seed; }

  const SamplerState& state() const { return state_; }
  void Restore(SamplerState state) { state_ = std::move(state); }
  const SamplerOptions& options() const { return options_; }
  int32_t vocab_size() const { return vocab_size_; }

 private:
  Sampler(const SamplerOptions& options, int32_t vocab_size);

  void ApplyBias();
  void ApplyStage(SamplerStage stage);
  void ApplyPenalties();
  int32_t DrawMirostat(uint64_t random);

  SamplerOptions options_;            // canonical
  std::vector<SamplerStage> stages_;  // the stages of options_ that have an effect
  int32_t vocab_size_;
  SamplerState state_;
  Candidates candidates_;
};

}  // namespace trine
