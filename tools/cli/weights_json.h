// Where a model's weights lie, as `--json` tells it.
#ifndef TRINE_TOOLS_CLI_WEIGHTS_JSON_H_
#define TRINE_TOOLS_CLI_WEIGHTS_JSON_H_

#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/model/model.h"

namespace trine {

// A list with an object for each device.
nlohmann::ordered_json WeightsJson(const std::vector<DeviceWeights>& weights);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_WEIGHTS_JSON_H_
