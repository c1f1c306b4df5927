// Lists the made-up machines that detection is tested on, each with its expected tier.
#pragma once

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

// Returns the scenario of that name, or null if there is none.
const Scenario* FindScenario(std::string_view name);

}  // namespace trine::detect::testing
