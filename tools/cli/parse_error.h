// What the parser has against a command line, in words of ours where its own say little.
#ifndef TRINE_TOOLS_CLI_PARSE_ERROR_H_
#define TRINE_TOOLS_CLI_PARSE_ERROR_H_

#include <string>

#include "CLI/CLI.hpp"

namespace trine {

// `app` is as the parse that failed has left it.
std::string DescribeParseError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_PARSE_ERROR_H_
