// Converts values to text, as a template prints them or as JSON, and converts JSON to values.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/text.h"
#include "runtime/template/values/value.h"

namespace trine::jinja {

struct JsonStyle {
  int indent = 0;  // 0: all on one line
  bool ascii = false;
  bool sort_keys = false;
  bool custom_separators = false;
  Text item_separator;
  Text key_separator;
};

// Appends the value as JSON. Strings keep their marks. Fails with INVALID_ARGUMENT for functions.
absl::Status AppendJson(const Value& value, const JsonStyle& style, Budget& budget, Text* out);

// Appends the text that {{ value }} writes: nothing for none and undefined, JSON for lists and
// dicts.
absl::Status AppendPrinted(const Value& value, Budget& budget, Text* out);
absl::StatusOr<Text> Printed(const Value& value, Budget& budget);

// Returns the fewest digits that read back as the same number, with at least one after the point.
std::string FloatText(double value);

// Parses JSON. Marks strings and keys as foreign. Fails with INVALID_ARGUMENT, with `what` and the
// place, if the text is not JSON, and with RESOURCE_EXHAUSTED if lists are nested too deep.
absl::StatusOr<Value> ParseJson(std::string_view json, std::string_view what);

}  // namespace trine::jinja
