// The functions every template can call.
#ifndef TRINE_RUNTIME_TEMPLATE_GLOBALS_H_
#define TRINE_RUNTIME_TEMPLATE_GLOBALS_H_

#include <ctime>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/budget.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// range(stop), range(start, stop), range(start, stop, step).
absl::StatusOr<Value> Range(Budget& budget, const Arguments& arguments);

// raise_exception(message): a status whose message is that text alone.
absl::StatusOr<Value> RaiseException(Budget& budget, const Arguments& arguments);
// Whether a template raised it, rather than being in the wrong itself.
bool IsRaised(const absl::Status& status);

// Members from a dict or a list of pairs, then those named.
absl::StatusOr<Dict> NamespaceMembers(const Arguments& arguments, Budget& budget);

// As C's strftime in the C locale, of the letters that name parts of a date or a time of day.
absl::StatusOr<std::string> FormatTime(std::string_view format, const std::tm& time,
                                       Budget& budget);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_GLOBALS_H_
