// All plugins of this machine and all devices they see, each with the reason why it is or isn't
// used. Discovery loads nothing into this process; opening a backend does.
#ifndef TRINE_PLUGINS_REGISTRY_H_
#define TRINE_PLUGINS_REGISTRY_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "plugins/probe.h"
#include "plugins/search_path.h"
#include "trine/backend.h"

namespace trine {

struct PluginFinding {
  std::string path;
  std::string found_by;
  bool accepted = false;
  std::string reason;  // a sentence either way
  ProbeResult probe;
};

struct DeviceFinding {
  size_t plugin = 0;   // index into Registry::plugins
  uint32_t index = 0;  // the plugin's own number of it
  trine_device_info info{};
  bool used = false;
  bool on_request = false;  // not used by itself, but where somebody names it
  std::string reason;       // a sentence either way
};

struct RegistryOptions {
  SearchOptions search;
  // A GPU that is tested for the first time compiles its shaders meanwhile. TRINE_PROBE_TIMEOUT_MS
  // overrides it.
  std::chrono::milliseconds probe_timeout{30000};
  // Plugin names, most wanted first, for chips several plugins see. TRINE_BACKEND_ORDER overrides
  // it. Plugins not named follow in the order of DefaultRank.
  std::vector<std::string> backend_order;
  // Nobody asks for software devices: plugins that could have no others here, as their files say
  // (TRINE_PLUGIN_HARDWARE), are not probed, unless the file itself was named.
  bool hardware_alone = false;
  // How a plugin is probed; tests put their own here. Null: ProbePlugin in a child process.
  std::function<ProbeResult(const std::string& path)> probe;
};

struct Registry {
  std::vector<PluginFinding> plugins;   // in search order
  std::vector<DeviceFinding> devices;   // of accepted plugins, in that order
  std::vector<SearchedFolder> folders;  // looked into
  std::vector<std::string> notes;       // what else a person should know
};

// Never fails: what goes wrong is a finding. Plugins are probed in parallel.
Registry DiscoverPlugins(const RegistryOptions& options);

// The rank of a plugin for a chip of the tier, lower first: HIP before Vulkan on a discrete GPU,
// Vulkan before HIP on an integrated one, other plugins after ours in the order they were found.
int DefaultRank(const std::string& plugin_name, uint32_t tier);

// Gives every chip one owner: devices with the same PCI id or UUID are one chip. Pure; fills
// `used`, `on_request` and `reason` of each device.
void AssignOwners(const std::vector<std::string>& backend_order, Registry* registry);

}  // namespace trine

#endif  // TRINE_PLUGINS_REGISTRY_H_
