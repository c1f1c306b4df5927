// Finds shapes by name: published models with their real sizes, and tiny models that cover every
// special case of their family in a file of a megabyte.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

absl::Span<const ModelShape> PublishedPresets();
absl::Span<const ModelShape> TinyPresets();  // named tiny-ARCHITECTURE or tiny-ARCHITECTURE-WHAT

// A shorter name of a published preset.
struct PresetAlias {
  std::string_view alias;
  std::string_view name;  // the preset's name
};
absl::Span<const PresetAlias> PresetAliases();

// Finds a shape by its name or alias. Returns NOT_FOUND, which lists the names, if there is none.
absl::StatusOr<ModelShape> FindPreset(std::string_view name);

}  // namespace trine
