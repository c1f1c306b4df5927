// Arguments as people type them for other engines: options of several letters behind one dash.
#ifndef TRINE_TOOLS_CLI_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// argv[1..] with -ngl, -ub, -ctk and their like written out (--gpu-layers, ...), also as -ub=64;
// what follows "--" is left alone. INVALID_ARGUMENT for one that is not known: the parser would
// take its letters for options of their own. The same for "--pack-cache=".
absl::StatusOr<std::vector<std::string>> WriteOutArguments(int argc, char** argv);

// Those that stand for an option: {"-ub"} for "--ubatch-size".
std::vector<std::string> TypedForms(const std::string& long_form);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_ARGUMENTS_H_
