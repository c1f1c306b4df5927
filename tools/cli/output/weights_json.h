// Describes where a model's weights are, for `--json`.
#pragma once

#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/model/run/model.h"

namespace trine {

// Returns a list with an object for each device.
nlohmann::ordered_json WeightsJson(const std::vector<DeviceWeights>& weights);

}  // namespace trine
