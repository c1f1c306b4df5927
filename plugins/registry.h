// Lists all plugins of this machine and all devices they see, each with the reason why it is used
// or not. Discovery loads nothing into this process; opening a backend does.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "plugins/plugin_option.h"
#include "plugins/probe.h"
#include "plugins/search_path.h"
#include "trine/backend.h"

namespace trine {

// A file that may be a plugin, and whether the host uses it.
struct PluginFinding {
  std::string path;
  std::string found_by;
  bool accepted = false;
  std::string reason;   // a sentence, also when accepted
  std::string options;  // what its open is given
  bool own = false;     // one of Trine's own plugins
  ProbeResult probe;
};

// A device of an accepted plugin, and whether the host uses it.
struct DeviceFinding {
  size_t plugin = 0;   // index into Registry::plugins
  uint32_t index = 0;  // the device's index in the plugin
  trine_device_info info{};
  // Why the device is not taken for exact, though its plugin says so; "": nothing speaks against
  // it. If there is a reason, `info` says FAST.
  std::string failed_test;
  bool used = false;
  bool on_request = false;  // not used, except where the user names the device
  bool too_fast = false;    // not used, because its results are fast and the user wants exact ones
  std::string reason;       // a sentence, also when used
};

struct RegistryOptions {
  SearchOptions search;
  // The longest time without a report from a probe. Long, because a GPU compiles its shaders when
  // it is tested for the first time. TRINE_PROBE_TIMEOUT_MS overrides it.
  std::chrono::milliseconds probe_timeout{30000};
  // Plugin names, preferred first, for chips that several plugins see. TRINE_BACKEND_ORDER
  // overrides it. Plugins not named follow in the order of DefaultRank.
  std::vector<std::string> backend_order;
  // FAST: devices whose results are not exact may be used (--numerics fast). EXACT: they are listed
  // with that reason, and not used.
  uint32_t numerics = TRINE_NUMERICS_EXACT;
  std::vector<PluginOption> plugin_options;
  // True if the user asked for no device but the CPU. Then plugins are not probed if their files
  // say that their hardware is not here (TRINE_PLUGIN_HARDWARE), except for files that the user
  // named.
  bool hardware_alone = false;
  // Probes a plugin; set by tests. Null: ProbePlugin in a child process.
  std::function<ProbeResult(const std::string& path)> probe;
};

struct Registry {
  std::vector<PluginFinding> plugins;   // in search order
  std::vector<DeviceFinding> devices;   // the devices of accepted plugins, in the same order
  std::vector<SearchedFolder> folders;  // the folders that were searched
  std::vector<std::string> notes;       // other sentences for a person
  // Says which of the user's options for plugins had no effect, and why: "": all had one.
  std::string unused_options;
};

// Finds and probes all plugins, in parallel. Never fails: a failure is a finding.
Registry DiscoverPlugins(const RegistryOptions& options);

// Returns the rank of a plugin for a chip of the tier; the lowest rank owns the chip. HIP comes
// before Vulkan on a discrete GPU, Vulkan before HIP on an integrated one. Other plugins come after
// both, in the order in which they were found.
int DefaultRank(const std::string& plugin_name, uint32_t tier);

// Gives every chip one owner. Devices of two plugins with the same PCI id or UUID are one chip. A
// device that is not as exact as `numerics` asks owns none. Sets `used`, `on_request` and `reason`
// of each device, and changes nothing else.
void AssignOwners(const std::vector<std::string>& backend_order, uint32_t numerics,
                  Registry* registry);

}  // namespace trine
