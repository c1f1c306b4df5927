// Writes manual pages, section 1, in the man macros of roff.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tools/cli/manual/option_tree.h"

namespace trine {

// Returns the title of a command's page, such as "trine-plugin-check". The page's file has this
// name with ".1".
std::string ManPageName(const CommandInfo& command);

// Returns the page of one command. `version` goes into its foot.
std::string ManPage(const CommandInfo& command, const std::string& version);

// Escapes `text` so that it is printed as it is: nothing in it is an escape or a request, and the
// dashes of options and negative numbers stay dashes that can be searched for and copied.
std::string Roff(absl::string_view text);

// Return `text` in bold or in italics, escaped as Roff does.
std::string RoffBold(absl::string_view text);
std::string RoffItalic(absl::string_view text);

}  // namespace trine
