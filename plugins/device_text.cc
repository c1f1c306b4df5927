#include "plugins/device_text.h"

#include <cstring>

#include "trine/backend.h"

namespace trine {

const char* TierName(uint32_t tier) {
  switch (tier) {
    case TRINE_TIER_CPU:
      return "cpu";
    case TRINE_TIER_IGPU:
      return "igpu";
    case TRINE_TIER_DGPU:
      return "dgpu";
    default:
      return "other";
  }
}

std::string FieldText(const char* field, size_t capacity) {
  std::string text(field, strnlen(field, capacity));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return text;
}

}  // namespace trine
