#include "runtime/model/architecture.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trine {
namespace {

constexpr Architecture kKnown[] = {
    {"llama", TRINE_ROPE_INTERLEAVED, LlamaLayer},
    {"qwen2", TRINE_ROPE_HALVES, Qwen2Layer},
    {"qwen3", TRINE_ROPE_HALVES, Qwen3Layer},
};

}  // namespace

absl::StatusOr<const Architecture*> FindArchitecture(const std::string& name) {
  std::vector<std::string> names;
  for (const Architecture& known : kKnown) {
    if (name == known.name) return &known;
    names.push_back(known.name);
  }
  return absl::UnimplementedError(
      absl::StrCat("unknown architecture \"", name,
                   "\" (general.architecture); known are: ", absl::StrJoin(names, ", ")));
}

}  // namespace trine
