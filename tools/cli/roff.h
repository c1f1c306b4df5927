// Text as roff source.
#ifndef TRINE_TOOLS_CLI_ROFF_H_
#define TRINE_TOOLS_CLI_ROFF_H_

#include <string>

#include "absl/strings/string_view.h"

namespace trine {

// `text` so that it comes out as it is: no escape or request in it counts, and the dashes of
// options and of negative numbers stay dashes, which can be searched for and copied.
std::string Roff(absl::string_view text);

std::string RoffBold(absl::string_view text);
std::string RoffItalic(absl::string_view text);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_ROFF_H_
