// Shapes by name: published models at their real sizes, and tiny ones that have every special case
// of their family in a file of a megabyte.
#ifndef TRINE_RUNTIME_MAKE_MODEL_PRESETS_H_
#define TRINE_RUNTIME_MAKE_MODEL_PRESETS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

absl::Span<const ModelShape> PublishedPresets();
absl::Span<const ModelShape> TinyPresets();  // named tiny-ARCHITECTURE or tiny-ARCHITECTURE-WHAT

// Shorter names that go with a family.
struct PresetAlias {
  std::string_view alias;
  std::string_view name;  // of a published preset
};
absl::Span<const PresetAlias> PresetAliases();

// By name or alias. NOT_FOUND lists what there is.
absl::StatusOr<ModelShape> FindPreset(std::string_view name);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_PRESETS_H_
