#include "runtime/make_model/presets.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/quoted.h"

namespace trine {
namespace {

constexpr PresetAlias kAliases[] = {
    {"qwen2-moe", "qwen1.5-moe-a2.7b"},
    {"qwen3-moe", "qwen3-30b-a3b"},
};

}  // namespace

absl::Span<const PresetAlias> PresetAliases() { return kAliases; }

absl::StatusOr<ModelShape> FindPreset(std::string_view name) {
  std::string_view wanted = name;
  for (const PresetAlias& alias : kAliases) {
    if (name == alias.alias) wanted = alias.name;
  }
  std::vector<std::string> names;
  for (const auto& presets : {PublishedPresets(), TinyPresets()}) {
    for (const ModelShape& shape : presets) {
      if (wanted == shape.name) return shape;
      names.emplace_back(shape.name);
    }
  }
  for (const PresetAlias& alias : kAliases) names.emplace_back(alias.alias);
  return absl::NotFoundError(absl::StrCat("there is no model ", gguf::Quoted(name),
                                          " to make; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace trine
