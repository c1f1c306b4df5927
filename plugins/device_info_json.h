// trine_device_info as JSON, for the probe's report and for `trine detect --json`.
#ifndef TRINE_PLUGINS_DEVICE_INFO_JSON_H_
#define TRINE_PLUGINS_DEVICE_INFO_JSON_H_

#include <string>

#include "nlohmann/json.hpp"
#include "trine/backend.h"

namespace trine {

// Text fields end at their first NUL, or at the field's end when a plugin forgot it; bytes that are
// no UTF-8 become "?".
nlohmann::ordered_json DeviceInfoToJson(const trine_device_info& info);

// False when a member is missing or of the wrong kind.
bool DeviceInfoFromJson(const nlohmann::ordered_json& json, trine_device_info* info);

// "cpu", "igpu", "dgpu", "other".
const char* TierName(uint32_t tier);

std::string FieldText(const char* field, size_t capacity);

}  // namespace trine

#endif  // TRINE_PLUGINS_DEVICE_INFO_JSON_H_
