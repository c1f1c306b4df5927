#include "runtime/make_model/presets.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/quoted.h"

namespace trine {

absl::StatusOr<ModelShape> FindPreset(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& presets : {PublishedPresets(), TinyPresets()}) {
    for (const ModelShape& shape : presets) {
      if (name == shape.name) return shape;
      names.emplace_back(shape.name);
    }
  }
  return absl::NotFoundError(absl::StrCat("there is no model ", gguf::Quoted(name),
                                          " to make; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace trine
