#include "tools/cli/output/weights_json.h"

namespace trine {

nlohmann::ordered_json WeightsJson(const std::vector<DeviceWeights>& weights) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const DeviceWeights& w : weights) {
    nlohmann::ordered_json one = {{"device", w.device_name},
                                  {"file_bytes", w.plain.file},
                                  {"arena_bytes", w.plain.arena},
                                  {"copied_bytes", w.plain.copied},
                                  {"converted_bytes", w.plain.converted},
                                  {"packed_bytes", w.packed_bytes}};
    if (!w.plain.refusal.empty()) one["refusal"] = w.plain.refusal;
    json.push_back(one);
  }
  return json;
}

}  // namespace trine
