// Arguments of filters, methods and tests, with the kind they must have.
#ifndef TRINE_RUNTIME_TEMPLATE_ARGUMENTS_H_
#define TRINE_RUNTIME_TEMPLATE_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// The one called `name` or standing at `place`. INVALID_ARGUMENT when it is of another kind; where
// it was not given, or is none, `otherwise`.
absl::StatusOr<bool> BoolArgument(const Arguments& arguments, size_t place, std::string_view name,
                                  bool otherwise);
absl::StatusOr<int64_t> IntArgument(const Arguments& arguments, size_t place, std::string_view name,
                                    int64_t otherwise);
// Null where it was not given.
absl::StatusOr<const Text*> TextArgument(const Arguments& arguments, size_t place,
                                         std::string_view name);
// The same for what must be given.
absl::StatusOr<const Text*> NeededText(const Arguments& arguments, size_t place,
                                       std::string_view name);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_ARGUMENTS_H_
