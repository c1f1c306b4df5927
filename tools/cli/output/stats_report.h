// Implements trine generate --stats: reports where the time went and what the host waited for.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "runtime/engine/engine.h"
#include "runtime/engine/generate.h"

namespace trine {

// Reports what an engine did since this object was made. `engine` must outlive it.
class StatsReport {
 public:
  explicit StatsReport(const Engine& engine) : engine_(engine), before_(engine.host_times()) {}

  // Report the times. `generation` is that of any of the sequences, which all ran at the same time.
  // Time that no counter explains is a separate part.
  nlohmann::ordered_json Json(const Generation& generation) const;
  std::string Text(const Generation& generation) const;

 private:
  struct Part {
    std::string what;
    double ms;
  };
  std::vector<Part> Parts(const Generation& generation) const;
  // Says how many choices of experts those in slots had, and how unevenly experts were chosen. "":
  // no choice was counted; JSON: null.
  std::string ExpertsText() const;
  nlohmann::ordered_json ExpertsJson() const;

  const Engine& engine_;
  const HostTimes before_;
};

}  // namespace trine
