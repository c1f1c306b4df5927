// Sampler: chooses the next token of one sequence from a row of logits.
//
// The choice is a function of the options, the tokens accepted and the number of tokens sampled so
// far, in defined arithmetic (docs/numerics.md, "Sampling"): the same on every machine. Copying a
// sampler forks it; SamplerState is all that changes from token to token, so storing and restoring
// it rolls a sequence back. After Create nothing is allocated, but for a penalty window over the
// whole sequence (repeat_last_n = -1), which doubles when it is full, and logprobs in a result
// whose vector has no room yet.
//
// Not thread-safe: one thread at a time per sampler. Different samplers share nothing.

#ifndef TRINE_RUNTIME_SAMPLING_SAMPLER_H_
#define TRINE_RUNTIME_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/sampling/candidates.h"
#include "runtime/sampling/logprobs.h"
#include "runtime/sampling/sampler_options.h"
#include "runtime/sampling/token_window.h"
#include "runtime/token.h"

namespace trine {

struct SamplerState {
  uint64_t draws = 0;  // tokens sampled: the number of the next draw
  double mirostat_mu = 0.0;
  TokenWindow window;
};

struct SampleResult {
  int32_t token = kNoToken;
  double logprob = 0.0;           // of the token in the model's own distribution, before any stage
  std::vector<TokenLogprob> top;  // the model's best, in order
};

class Sampler {
 public:
  static absl::StatusOr<Sampler> Create(const SamplerOptions& options, int32_t vocab_size);

  // `logits` is a row of vocab_size values. Bit i % 32 of allowed[i / 32] allows token i; an empty
  // span allows all. The token is not accepted: a caller may want another one. kNoToken when no
  // token is allowed.
  int32_t Sample(std::span<const float> logits, std::span<const uint32_t> allowed = {});

  // The same token, and the log-probabilities of it and of the `n_top` best. Reuses result->top.
  void SampleWithLogprobs(std::span<const float> logits, std::span<const uint32_t> allowed,
                          int32_t n_top, SampleResult* result);

  // The log-probabilities alone, of result->token, which was chosen from whatever row.
  void AddLogprobs(std::span<const float> logits, int32_t n_top, SampleResult* result) const;

  // The token is part of the sequence now: prompt tokens and sampled ones alike.
  void Accept(int32_t token);

  // As after Create.
  void Reset();

  // For a fork that shall go another way than its origin. The count of draws goes on.
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
  std::vector<SamplerStage> stages_;  // those of options_ that have an effect
  int32_t vocab_size_;
  SamplerState state_;
  Candidates candidates_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_SAMPLER_H_
