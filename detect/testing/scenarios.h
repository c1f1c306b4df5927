// The made-up machines that detection is tested on, each with the tier it must be given.

#ifndef TRINE_DETECT_TESTING_SCENARIOS_H_
#define TRINE_DETECT_TESTING_SCENARIOS_H_

#include <string_view>
#include <vector>

#include "detect/testing/fake_root.h"

namespace trine::detect::testing {

struct Scenario {
  const char* name;
  const char* tier;  // As ComputeTierName writes it.
  void (*build)(FakeRoot*);
};

const std::vector<Scenario>& Scenarios();

// Null when there is none of that name.
const Scenario* FindScenario(std::string_view name);

}  // namespace trine::detect::testing

#endif  // TRINE_DETECT_TESTING_SCENARIOS_H_
