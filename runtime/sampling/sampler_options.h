// SamplerOptions: the user's options of the sampler, with llama.cpp's names and defaults.
//
// Plain values. docs/sampling.md explains each option, docs/numerics.md defines its arithmetic.

#pragma once

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
  uint64_t seed = 0;            // 0 is a seed like any other: a random seed is the caller's job
  float temp = 0.8f;            // 0: greedy
  int32_t top_k = 40;           // 0: off
  float top_p = 0.95f;          // 1: off
  float min_p = 0.05f;          // 0: off
  float typical_p = 1.0f;       // 1: off
  int32_t repeat_last_n = 64;   // penalties count this many last tokens; 0: none, -1: all
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

// The most tokens that a vocabulary may have, so that no sum of weights overflows.
inline constexpr int32_t kMaxVocabSize = 1 << 22;

// Returns INVALID_ARGUMENT, naming the option, its value and what is expected, if an option is out
// of range.
absl::Status Validate(const SamplerOptions& options, int32_t vocab_size);

// Parses names separated by ';', as in "penalties;top_k;temperature". "" means no stages.
absl::StatusOr<std::vector<SamplerStage>> ParseStageOrder(std::string_view text);

// Returns the text that ParseStageOrder reads.
std::string StageOrderText(const std::vector<SamplerStage>& stages);

}  // namespace trine
