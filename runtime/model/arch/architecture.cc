#include "runtime/model/arch/architecture.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trine {
namespace {

constexpr const Architecture* kKnown[] = {
    &kLlama, &kQwen2, &kQwen3,   &kQwen2Moe,   &kQwen3Moe, &kGemma2,     &kGemma3,
    &kPhi3,  &kOlmo2, &kGranite, &kGraniteMoe, &kSmolLm3,  &kStarcoder2, &kGptOss,
};

}  // namespace

absl::StatusOr<const Architecture*> FindArchitecture(const std::string& name) {
  std::vector<std::string> names;
  for (const Architecture* known : kKnown) {
    if (name == known->name) return known;
    names.push_back(known->name);
  }
  return absl::UnimplementedError(
      absl::StrCat("unknown architecture \"", name,
                   "\" (general.architecture); known are: ", absl::StrJoin(names, ", ")));
}

void RequireDense(ConfigKeys& keys, ModelConfig* config) {
  if (config->experts.count == 0) return;
  keys.Fail(absl::UnimplementedError(
      absl::StrCat("the file is a mixture of experts (", keys.Name("expert_count"),
                   "); this version knows ", config->architecture, " without experts only")));
}

void RequireExperts(ConfigKeys& keys, ModelConfig* config) {
  keys.Require(config->experts.count > 0,
               absl::StrCat(config->architecture, " is a mixture of experts, but ",
                            keys.Name("expert_count"), " is 0 or missing"));
}

void ReadWindow(ConfigKeys& keys, int64_t period, ModelConfig* config) {
  constexpr char kPattern[] = "attention.sliding_window_pattern";
  config->window = keys.IntegerOr("attention.sliding_window", 0, int64_t{1} << 30, config->window);
  if (config->window == 0) return;
  if (keys.IsArray(kPattern)) {
    config->windowed = keys.Flags(kPattern, config->n_layers);
    return;
  }
  period = keys.IntegerOr(kPattern, 0, 4096, period);
  for (int64_t i = 0; i < config->n_layers; ++i) {
    config->windowed.push_back(period == 0 || i % period < period - 1);  // 0: every layer
  }
}

}  // namespace trine
