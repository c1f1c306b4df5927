// Describes where a model's weights are, for `--json`.
#pragma once

#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/model/run/model.h"

namespace trine {

// Returns a list with an object for each device.
inline nlohmann::ordered_json WeightsJson(const std::vector<DeviceWeights>& weights) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const DeviceWeights& w : weights) {
    json.push_back({{"device", w.device_name},
                    {"file_bytes", w.plain.file},
                    {"arena_bytes", w.plain.arena},
                    {"copied_bytes", w.plain.copied},
                    {"converted_bytes", w.plain.converted},
                    {"packed_bytes", w.packed_bytes}});
    if (!w.plain.refusal.empty()) json.back()["refusal"] = w.plain.refusal;
  }
  return json;
}

}  // namespace trine
