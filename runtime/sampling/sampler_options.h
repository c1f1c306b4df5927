// SamplerOptions: what a user may ask of the sampler, with llama.cpp's names and defaults.
//
// A plain value. docs/sampling.md explains each option, docs/numerics.md defines its arithmetic.

#ifndef TRINE_RUNTIME_SAMPLING_SAMPLER_OPTIONS_H_
#define TRINE_RUNTIME_SAMPLING_SAMPLER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

enum class SamplerStage { kPenalties, kTopK, kTypicalP, kTopP, kMinP, kTemperature };

struct LogitBias {
  int32_t token = 0;
  float bias = 0.0f;  // added to the logit; -infinity bans the token, +infinity forces it
};

struct SamplerOptions {
  uint64_t seed = 0;            // taken as it is; who wants a random one draws it
  float temp = 0.8f;            // 0: greedy
  int32_t top_k = 40;           // 0: off
  float top_p = 0.95f;          // 1: off
  float min_p = 0.05f;          // 0: off
  float typical_p = 1.0f;       // 1: off
  int32_t repeat_last_n = 64;   // 0: no penalties, -1: over the whole sequence
  float repeat_penalty = 1.0f;  // 1: off
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  int32_t mirostat = 0;  // 0: off, 2: mirostat 2.0 in place of the truncating stages
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;
  int32_t min_keep = 0;  // no truncating stage leaves fewer candidates
  std::vector<LogitBias> logit_bias;
  std::vector<SamplerStage> stages = {SamplerStage::kPenalties, SamplerStage::kTopK,
                                      SamplerStage::kTypicalP,  SamplerStage::kTopP,
                                      SamplerStage::kMinP,      SamplerStage::kTemperature};
};

// The most tokens a vocabulary may have: up to here no sum of weights overflows.
inline constexpr int32_t kMaxVocabSize = 1 << 22;

// INVALID_ARGUMENT with a sentence that names the option, its value and what is expected.
absl::Status Validate(const SamplerOptions& options, int32_t vocab_size);

// From names separated by ';', as in "penalties;top_k;temperature". "" is no stage at all.
absl::StatusOr<std::vector<SamplerStage>> ParseStageOrder(std::string_view text);

// The inverse.
std::string StageOrderText(const std::vector<SamplerStage>& stages);

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_SAMPLER_OPTIONS_H_
