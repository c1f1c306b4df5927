// The self-test that a device must pass before it may call itself exact. It runs small graphs that
// use each of the device's kernels as plans, and compares the results with the reference.
#pragma once

#include <functional>
#include <string>

#include "trine/backend.h"

namespace trine::backends {

struct SelfTestResult {
  bool done = true;     // false: a graph could not be run, which says nothing about exactness
  std::string failure;  // "" if every bit was equal, else the ops that differed or could not run
};

// `table` must have the calls for buffers, plans and layouts. Calls `begins` with each graph's name
// before the graph runs, because a driver that compiles may take long and must not seem to hang.
SelfTestResult RunSelfTest(const trine_plugin& table, trine_device* device,
                           const std::function<void(const std::string& name)>& begins);

}  // namespace trine::backends
