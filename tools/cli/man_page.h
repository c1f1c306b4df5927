// Manual pages, section 1, in the man macros of roff.
#ifndef TRINE_TOOLS_CLI_MAN_PAGE_H_
#define TRINE_TOOLS_CLI_MAN_PAGE_H_

#include <string>

#include "tools/cli/option_tree.h"

namespace trine {

// "trine-plugin-check", which is also the page's file without ".1".
std::string ManPageName(const CommandInfo& command);

// The page of one command. `version` goes into its foot.
std::string ManPage(const CommandInfo& command, const std::string& version);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_MAN_PAGE_H_
