// Formats a device's facts as text for people and reports, and as JSON for the probe's report and
// `trine detect --json`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nlohmann/json_fwd.hpp"
#include "trine/backend.h"

namespace trine {

// Returns "cpu", "igpu", "dgpu" or "other".
const char* TierName(uint32_t tier);

// Returns a text field of a plugin's struct, up to its first NUL, or to the end of the field if the
// plugin forgot the NUL. Replaces each character that is not printable ASCII with "?".
std::string FieldText(const char* field, size_t capacity);

template <size_t N>
std::string FieldText(const char (&field)[N]) {
  return FieldText(field, N);
}

nlohmann::ordered_json DeviceInfoToJson(const trine_device_info& info);

// Sets *info from the JSON of DeviceInfoToJson. Returns false if a member is missing or of the
// wrong kind.
bool DeviceInfoFromJson(const nlohmann::ordered_json& json, trine_device_info* info);

}  // namespace trine
