// Makes random JSON Schemas from the keywords that constraints support. Each can be satisfied in
// not too many tokens.
#pragma once

#include <random>

#include "nlohmann/json.hpp"

namespace trine {

nlohmann::ordered_json RandomSchema(std::mt19937* random);

}  // namespace trine
