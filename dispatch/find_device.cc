#include "dispatch/find_device.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace trine {
namespace {

// A folder may hold any number of plugins, and this is for one line.
constexpr size_t kMostPlugins = 3;

// A file that could not be loaded has no name but its own: libtrine-backend-NAME.so.
std::string PluginName(const PluginFinding& plugin) {
  if (!plugin.probe.name.empty()) return plugin.probe.name;
  absl::string_view file = plugin.path;
  file.remove_prefix(file.rfind('/') + 1);
  absl::string_view name = file;
  const bool usual =
      absl::ConsumePrefix(&name, "libtrine-backend-") && absl::ConsumeSuffix(&name, ".so");
  return std::string(usual ? name : file);
}

// Why a plugin has nothing to offer; "" where it has something, or where another of its name
// stands for it.
std::string WhyIdle(const Registry& registry, size_t plugin) {
  const PluginFinding& found = registry.plugins[plugin];
  if (!found.accepted) return found.probe.status.ok() ? "" : found.reason;
  std::vector<std::string> reasons;
  for (const DeviceFinding& device : registry.devices) {
    if (device.plugin != plugin) continue;
    if (device.used || device.on_request) return "";
    reasons.push_back(device.reason);
  }
  return reasons.empty() ? found.reason : absl::StrJoin(reasons, ", ");
}

// "igpu" of "igpu0".
std::string TierOf(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

std::string Describe(const InventoryDevice& d) {
  return d.backend_name.empty() ? d.tier_name : absl::StrCat(d.tier_name, " (", OwnName(d), ")");
}

}  // namespace

std::string OwnName(const InventoryDevice& device) {
  const bool by_itself = device.used || !device.on_request;
  return absl::StrCat(device.backend_name, by_itself ? "" : ", only where it is named");
}

std::string IdlePlugins(const Inventory& inventory) {
  const Registry& registry = inventory.registry;
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i < registry.plugins.size(); ++i) {
    const std::string why = WhyIdle(registry, i);
    if (why.empty() || ++count > kMostPlugins) continue;
    absl::StrAppend(&text, "; ", PluginName(registry.plugins[i]), ": ", why);
  }
  if (count > kMostPlugins) {
    absl::StrAppend(&text, "; `trine detect` has ", count - kMostPlugins, " more");
  }
  return text;
}

std::string OnRequestOnly(const Inventory& inventory) {
  std::string text;
  for (const InventoryDevice& d : inventory.devices) {
    if (d.used || !d.on_request) continue;
    absl::StrAppend(&text, "; ", d.tier_name, " is used only where -ts or -dev names it");
  }
  return text;
}

std::string UsableDevices(const Inventory& inventory) {
  std::vector<std::string> there;
  for (const InventoryDevice& d : inventory.devices) {
    if (d.used || d.on_request) there.push_back(Describe(d));
  }
  return absl::StrJoin(there, ", ");
}

absl::StatusOr<const InventoryDevice*> FindDevice(const Inventory& inventory,
                                                  const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  const InventoryDevice* unused = nullptr;
  for (const InventoryDevice& d : inventory.devices) {
    // "igpu" is the first one of its kind.
    const bool named =
        lower == d.tier_name || name == d.backend_name || absl::StrCat(lower, "0") == d.tier_name;
    if (d.used || d.on_request) {
      if (named) return &d;
    } else if (unused == nullptr && (name == d.backend_name || TierOf(lower) == d.tier)) {
      unused = &d;
    }
  }
  if (unused != nullptr) {
    return absl::NotFoundError(absl::StrCat("device '", name, "' is not used: ", unused->reason));
  }
  const std::string there = UsableDevices(inventory);
  if (there.empty() && !inventory.problems.empty()) {
    return absl::NotFoundError(inventory.problems.front());
  }
  return absl::NotFoundError(
      absl::StrCat("no device is called '", name, "'; there are: ", there, IdlePlugins(inventory)));
}

}  // namespace trine
