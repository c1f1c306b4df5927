#include "tools/cli/roff.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace trine {

std::string Roff(absl::string_view text) {
  std::string roff;
  bool in_option = false;  // in a word that begins with a dash, whatever stands before it
  bool in_word = false;
  for (const char c : text) {
    if (c == '-') in_option = in_option || !in_word;
    in_word = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
    if (!in_word) in_option = false;
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += in_option ? "\\-" : "-";
    } else if ((c == '.' || c == '\'') && (roff.empty() || roff.back() == '\n')) {
      absl::StrAppend(&roff, "\\&", absl::string_view(&c, 1));
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string RoffBold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }

std::string RoffItalic(absl::string_view text) { return absl::StrCat("\\fI", Roff(text), "\\fR"); }

}  // namespace trine
