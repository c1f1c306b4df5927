// Adds to the parser what it lacks: options of several letters after one dash, such as -ngl, which
// people know from other engines, and clear messages for errors that the parser explains badly.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace trine {

// Returns argv[1..] with -ngl, -ub, -ctk and so on written out (--gpu-layers, ...), also as -ub=64.
// Leaves arguments after "--" alone. Returns INVALID_ARGUMENT for an unknown option of this form,
// because the parser would take each letter for an option, and for "--pack-cache=".
absl::StatusOr<std::vector<std::string>> WriteOutArguments(int argc, char** argv);

// Returns the short forms of an option that WriteOutArguments writes out: {"-ub"} for
// "--ubatch-size".
std::vector<std::string> TypedForms(const std::string& long_form);

// Returns a message for an error of the parser. REQUIRES: `app` is in the state in which the failed
// parse left it.
std::string DescribeParseError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace trine
