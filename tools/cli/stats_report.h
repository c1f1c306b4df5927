// trine generate --stats: where the time went, and what the host waited for.
#ifndef TRINE_TOOLS_CLI_STATS_REPORT_H_
#define TRINE_TOOLS_CLI_STATS_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"
#include "runtime/engine.h"
#include "runtime/generate.h"

namespace trine {

// What an engine has done between a generation's beginning and its end.
class StatsReport {
 public:
  explicit StatsReport(const Engine& engine) : engine_(engine), before_(engine.host_times()) {}

  // `generation`: of any of the sequences, which went in step. What no counter explains is in it,
  // too, as such.
  nlohmann::ordered_json Json(const Generation& generation) const;
  std::string Text(const Generation& generation) const;

 private:
  struct Part {
    std::string what;
    double ms;
  };
  std::vector<Part> Parts(const Generation& generation) const;

  const Engine& engine_;
  const HostTimes before_;
};

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_STATS_REPORT_H_
