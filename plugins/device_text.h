// A device's facts as text for people and reports.
#ifndef TRINE_PLUGINS_DEVICE_TEXT_H_
#define TRINE_PLUGINS_DEVICE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace trine {

// "cpu", "igpu", "dgpu", "other".
const char* TierName(uint32_t tier);

// A text field of a plugin's struct: up to its first NUL, or its end when a plugin forgot it; what
// is not printable ASCII becomes "?".
std::string FieldText(const char* field, size_t capacity);

template <size_t N>
std::string FieldText(const char (&field)[N]) {
  return FieldText(field, N);
}

}  // namespace trine

#endif  // TRINE_PLUGINS_DEVICE_TEXT_H_
