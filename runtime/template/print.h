// Values as text: as a template prints them, and as JSON.
#ifndef TRINE_RUNTIME_TEMPLATE_PRINT_H_
#define TRINE_RUNTIME_TEMPLATE_PRINT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/budget.h"
#include "runtime/template/text.h"
#include "runtime/template/value.h"

namespace trine::jinja {

struct JsonStyle {
  int indent = 0;  // 0: all on one line
  bool ascii = false;
  bool sort_keys = false;
  bool custom_separators = false;
  Text item_separator;
  Text key_separator;
};

// INVALID_ARGUMENT for functions. Strings keep their marks.
absl::Status AppendJson(const Value& value, const JsonStyle& style, Budget& budget, Text* out);

// What {{ value }} writes: none and undefined are nothing, lists and dicts are JSON.
absl::Status AppendPrinted(const Value& value, Budget& budget, Text* out);
absl::StatusOr<Text> Printed(const Value& value, Budget& budget);

// The shortest digits that give the number back, with at least one behind the point.
std::string FloatText(double value);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_PRINT_H_
