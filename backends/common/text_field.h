// Texts in the fields of fixed size that the ABI's structs have.
#ifndef TRINE_BACKENDS_COMMON_TEXT_FIELD_H_
#define TRINE_BACKENDS_COMMON_TEXT_FIELD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace trine::backends {

// As much of it as there is room for, in whole UTF-8 characters.
template <size_t N>
void SetText(char (&field)[N], const std::string& text) {
  size_t n = std::min(text.size(), N - 1);
  const auto goes_on = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; };
  if (n < text.size()) {
    while (n > 0 && goes_on(text[n])) --n;
  }
  std::memcpy(field, text.data(), n);
  field[n] = 0;
}

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_TEXT_FIELD_H_
