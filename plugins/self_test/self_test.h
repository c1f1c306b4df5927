// The self-test of exact devices. It runs small graphs that use each op as plans of a device, and
// compares the results with the reference, bit for bit.
//
// A GPU's plugin runs it before a device may call itself exact. The host runs it on a device of
// another author that calls itself exact, before the device is used.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trine/backend.h"

namespace trine::self_test {

struct Options {
  // FAST: a plugin asks, to find out whether its device is exact. All graphs must run.
  // EXACT: the host asks a device that says it is exact. Graphs with an op that the device does not
  // support, and graphs in a layout that it does not offer, are left out.
  uint32_t numerics = TRINE_NUMERICS_FAST;
  // No graph begins after this time. nullopt: all graphs run.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct Result {
  bool could_run = true;  // false: a graph could not be run, which says nothing about exactness
  std::string failure;    // "" if every bit was equal, else the ops that differed or could not run
  int run = 0;            // the graphs that were run
};

// `table` must have the calls for buffers and plans and, unless only EXACT is asked for, layouts.
// Calls `begins` with each graph's name before the graph runs, because a driver that compiles may
// take long and must not seem to hang.
Result Run(const trine_plugin& table, trine_device* device, const Options& options,
           const std::function<void(const std::string& name)>& begins);

}  // namespace trine::self_test
