// The self-test of exact devices. It runs small graphs as plans of a device, and compares the
// results with the reference, bit for bit.
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
  // EXACT: the host asks a device that says it is exact. There are more graphs: one for each op and
  // for each type of weights. Graphs with an op that the device does not support are left out.
  uint32_t numerics = TRINE_NUMERICS_FAST;
  int first = 0;  // the number of the first graph to run
  // No graph but the first begins after this time. nullopt: all graphs run.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct Result {
  bool could_run = true;  // false: a graph could not be run, which says nothing about exactness
  std::string failure;    // "" if every bit was equal, else the ops that differed or could not run
  int run = 0;            // how many graphs were run
  int next = 0;           // the number of the first graph that was not reached
  bool complete = false;  // all graphs were reached, and none failed
};

// Calls the table's functions for ops, buffers, plans and layouts. Layouts may be missing if only
// EXACT graphs are asked for. Calls `begins` with each graph's name before anything is asked about
// the graph, because a driver that compiles may take long and must not seem to hang.
Result Run(const trine_plugin& table, trine_device* device, const Options& options,
           const std::function<void(const std::string& name)>& begins);

}  // namespace trine::self_test
