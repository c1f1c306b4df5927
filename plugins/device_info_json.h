// trine_device_info as JSON, for the probe's report and for `trine detect --json`.
#ifndef TRINE_PLUGINS_DEVICE_INFO_JSON_H_
#define TRINE_PLUGINS_DEVICE_INFO_JSON_H_

#include "nlohmann/json_fwd.hpp"
#include "trine/backend.h"

namespace trine {

nlohmann::ordered_json DeviceInfoToJson(const trine_device_info& info);

// False when a member is missing or of the wrong kind.
bool DeviceInfoFromJson(const nlohmann::ordered_json& json, trine_device_info* info);

}  // namespace trine

#endif  // TRINE_PLUGINS_DEVICE_INFO_JSON_H_
