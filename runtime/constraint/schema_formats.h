// JSON Schema's `format`: the formats that are known, as regular expressions.
#ifndef TRINE_RUNTIME_CONSTRAINT_SCHEMA_FORMATS_H_
#define TRINE_RUNTIME_CONSTRAINT_SCHEMA_FORMATS_H_

#include <string>
#include <string_view>

namespace trine::constraint {

// A pattern whose every text has the format, though not every text of the format has the pattern;
// "" for a format that isn't known.
std::string FormatPattern(std::string_view format);

// Names of those that are, for messages.
std::string_view FormatNames();

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_SCHEMA_FORMATS_H_
