// Probing: a plugin is first loaded, opened and asked for its devices in a child process with a
// time limit, so that one that crashes or hangs, or whose driver does, is a finding and not an end.
#ifndef TRINE_PLUGINS_PROBE_H_
#define TRINE_PLUGINS_PROBE_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trine/backend.h"

namespace trine {

struct ProbeOptions {
  std::string program;  // trine-probe
  // Without a sign of life; ten times as long in all.
  std::chrono::milliseconds timeout{30000};
};

struct ProbeResult {
  absl::Status status;  // why the plugin can't be used
  std::string name;
  std::string version;
  uint32_t abi_version = 0;
  uint32_t numerics_version = 0;
  std::vector<trine_device_info> devices;
  std::vector<std::string> log;    // warnings and errors the plugin gave
  std::vector<std::string> notes;  // what else it wants known, such as why it sees no device
  double seconds = 0;
};

// Blocks within the time limits. May be called from several threads at once.
ProbeResult ProbePlugin(const std::string& path, const ProbeOptions& options);

// The child's side: `trine-probe probe PATH`. Reports on kReportFd; returns the exit code.
int ProbeMain(const std::string& path);

}  // namespace trine

#endif  // TRINE_PLUGINS_PROBE_H_
