// Probes plugins: loads and opens a plugin and asks for its devices. Does so in a child process
// with a time limit, because a plugin or a driver may crash or hang. Then the result says so, and
// this process continues.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trine/backend.h"

namespace trine {

struct ProbeOptions {
  std::string program;  // the path of trine-probe
  // The longest time without a report from the child. A whole probe may take ten times that.
  std::chrono::milliseconds timeout{30000};
  std::string plugin_options;  // what the plugin's open is given
  // The plugin is one of Trine's own. The host does not test its devices, because the plugin does.
  bool own = false;
};

// The descriptions of a plugin and its devices, or why the plugin can't be used.
struct ProbeResult {
  absl::Status status;  // why the plugin can't be used
  std::string name;
  std::string version;
  uint32_t abi_version = 0;
  uint32_t numerics_version = 0;
  std::vector<trine_device_info> devices;
  // By index in `devices`: why a device that calls itself exact is not taken for it.
  std::map<size_t, std::string> failed_tests;
  std::vector<std::string> log;    // the plugin's warnings and errors
  std::vector<std::string> notes;  // its messages of level INFO, such as why it sees no device
  double seconds = 0;
};

// Probes a plugin; blocks within the time limits. May be called from several threads at once.
ProbeResult ProbePlugin(const std::string& path, const ProbeOptions& options);

// Implements `trine-probe probe PATH OPTIONS` and, for a plugin of Trine's own, `probe-own` in the
// child. Reports on kReportFd. Returns the exit code, or -1 if the arguments ask for something
// else. Defined in probe_child.cc, which is part of trine-probe alone.
int ProbeMain(int argc, char** argv);

}  // namespace trine
