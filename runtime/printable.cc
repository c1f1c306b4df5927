#include "runtime/printable.h"

#include <cstdio>

#include "runtime/tokenizer/utf8.h"

namespace trine {

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (step.kind == Utf8Step::Kind::kCharacter && first >= 0x20 && first != 0x7f) {
      out.append(text.substr(0, step.bytes));
    } else {
      for (const char byte : text.substr(0, step.bytes)) {
        char escaped[5];
        std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(byte));
        out += escaped;
      }
    }
    text.remove_prefix(step.bytes);
  }
  return out;
}

}  // namespace trine
