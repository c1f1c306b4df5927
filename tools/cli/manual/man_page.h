// Makes manual pages, section 1, as roff text with the man macros.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tools/cli/manual/option_tree.h"

namespace trine {

// Returns the title of a command's page, such as "trine-plugin-check". The page's file is
// this name followed by ".1".
std::string ManPageName(const CommandInfo& command);

// Returns the page of one command. The page's footer shows `version`.
std::string ManPage(const CommandInfo& command, const std::string& version);

// Escapes `text`, so that no character of the text acts as a roff escape or request. Keeps the
// dashes of words that begin with a dash, such as "--top-k" and "-1", so that readers can search
// for these words and copy them.
std::string Roff(absl::string_view text);

// Return `text` escaped by Roff, in bold or in italics. Both end in roman type, so they can't be
// nested.
std::string RoffBold(absl::string_view text);
std::string RoffItalic(absl::string_view text);

}  // namespace trine
