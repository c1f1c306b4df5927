// Makes small problems for tests: all layers are alike, and the ends of the model are small.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/planner/placement.h"
#include "dispatch/planner/problem.h"

namespace trine {

inline constexpr uint64_t kTestLayerBytes = 100 << 20;
inline constexpr uint64_t kTestEndBytes = 10 << 20;

// Makes a device where a layer takes `layer_ns` in a decode pass, all of it waiting for memory, and
// ten times that in a prefill pass, none of it waiting for memory.
inline PlanDevice TestDevice(const std::string& name, int layers, int64_t layer_ns, size_t pool) {
  PlanDevice device;
  device.name = name;
  device.tier = name.substr(0, name.find_first_of("0123456789"));
  device.pool = device.domain = pool;
  for (int unit = 0; unit < layers + 2; ++unit) {
    const bool end = unit == 0 || unit == layers + 1;
    device.weight_bytes.push_back(end ? kTestEndBytes : kTestLayerBytes);
    device.decode.unit_ns.push_back(end ? layer_ns / 10 : layer_ns);
    device.prefill.unit_ns.push_back(end ? layer_ns : layer_ns * 10);
  }
  device.decode.domain_ns = device.decode.unit_ns;
  device.decode.run_ns = 10;
  device.prefill.run_ns = 10;
  return device;
}

// Makes a problem from names of devices and times of a layer. Puts "cpu" and "igpu0" in pool 0, and
// each discrete GPU in its own pool.
inline PlanProblem TestProblem(int layers, const std::vector<std::pair<std::string, int64_t>>& what,
                               int64_t transfer_ns = 100) {
  PlanProblem problem;
  problem.layers = layers;
  problem.prefill_tokens = 512;
  problem.pools = {{"ram", kNoLimit}};
  for (const auto& [name, layer_ns] : what) {
    size_t pool = 0;
    if (name.starts_with("dgpu")) {
      pool = problem.pools.size();
      problem.pools.push_back({absl::StrCat(name, " memory"), kNoLimit});
    }
    problem.devices.push_back(TestDevice(name, layers, layer_ns, pool));
  }
  const std::vector<std::vector<int64_t>> transfers(what.size(),
                                                    std::vector<int64_t>(what.size(), transfer_ns));
  problem.decode_transfer_ns = problem.prefill_transfer_ns = transfers;
  return problem;
}

// Returns "E dgpu0[0,12) | cpu[12,16) H".
inline std::string Text(const PlanProblem& problem, const Placement& placement) {
  std::string text;
  for (const PlacementSegment& s : placement.segments) {
    absl::StrAppend(&text, text.empty() ? "" : " | ", s.range.embedding ? "E " : "",
                    problem.devices[s.range.device].name, "[", s.range.begin, ",", s.range.end, ")",
                    s.range.head ? " H" : "");
  }
  return text;
}

}  // namespace trine
