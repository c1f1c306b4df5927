// The sampler's options on the command line, with the names and defaults people know.
#ifndef TRINE_TOOLS_CLI_SAMPLING_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_SAMPLING_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/sampling/sampler_options.h"

namespace trine {

struct SamplingArguments {
  SamplerOptions options;
  int64_t seed = -1;  // -1: another one each time
  std::string order;
  std::vector<std::string> logit_bias;  // "1234+1", "1234-0.5", "1234-inf"
};

void AddSamplingOptions(CLI::App* command, SamplingArguments* arguments);

// With the seed drawn where none was given.
absl::StatusOr<SamplerOptions> MakeSamplerOptions(const SamplingArguments& arguments);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_SAMPLING_ARGUMENTS_H_
