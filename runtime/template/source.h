// The text of a template, and where in it something went wrong.
#ifndef TRINE_RUNTIME_TEMPLATE_SOURCE_H_
#define TRINE_RUNTIME_TEMPLATE_SOURCE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trine::jinja {

// The status with its place before it and the line it stands on behind it:
//   chat template, line 3, column 8: there is no filter "trin", in: {{ x | trin }}
absl::Status AtPlace(std::string_view source, size_t offset, const absl::Status& status);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_SOURCE_H_
