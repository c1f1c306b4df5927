// JSON Schemas made at random from the keywords that constraints support. Every one of them can be
// satisfied, and in not too many tokens.
#ifndef TRINE_TESTS_CONSTRAINT_RANDOM_SCHEMA_H_
#define TRINE_TESTS_CONSTRAINT_RANDOM_SCHEMA_H_

#include <random>

#include "nlohmann/json.hpp"

namespace trine {

nlohmann::ordered_json RandomSchema(std::mt19937* random);

}  // namespace trine

#endif  // TRINE_TESTS_CONSTRAINT_RANDOM_SCHEMA_H_
