#include "plugins/registry.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plugins/device_text.h"
#include "plugins/elf_file.h"

namespace trine {
namespace {

// Reads the settings in the environment. Adds a note for each value that is not valid.
void ReadEnvironment(RegistryOptions* options, std::vector<std::string>* notes) {
  if (const char* text = std::getenv("TRINE_PROBE_TIMEOUT_MS"); text != nullptr) {
    int64_t ms = 0;
    if (absl::SimpleAtoi(text, &ms) && ms > 0 && ms <= 3'600'000) {
      options->probe_timeout = std::chrono::milliseconds(ms);
    } else {
      notes->push_back(absl::StrCat("TRINE_PROBE_TIMEOUT_MS=", text,
                                    " is no number of milliseconds from 1 to 3600000: ",
                                    options->probe_timeout.count(), " is used"));
    }
  }
  if (const char* text = std::getenv("TRINE_BACKEND_ORDER"); text != nullptr) {
    options->backend_order.clear();
    for (absl::string_view name : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
      options->backend_order.emplace_back(absl::StripAsciiWhitespace(name));
    }
  }
  if (const char* text = std::getenv("TRINE_PLUGIN_PATH"); text != nullptr) {
    for (absl::string_view part : absl::StrSplit(text, ':')) {
      if (part.empty() || part[0] == '/') continue;
      notes->push_back(
          absl::StrCat("TRINE_PLUGIN_PATH: '", part, "' is not an absolute path: ignored"));
    }
  }
}

bool IsThere(const std::string& what) {
  return what[0] == '$' ? std::getenv(what.c_str() + 1) != nullptr
                        : access(what.c_str(), F_OK) == 0;
}

// Returns why this machine has no hardware for the plugin. Returns "" if it has, or if the file
// does not say.
std::string HardwareMissing(const std::string& path) {
  const auto facts = InspectElf(path);
  if (!facts.ok() || !facts->hardware) return "";
  const std::vector<std::string> wanted = absl::StrSplit(*facts->hardware, ':', absl::SkipEmpty());
  if (std::any_of(wanted.begin(), wanted.end(), IsThere)) return "";
  return wanted.empty() ? "it has software devices alone"
                        : absl::StrCat("there is no hardware for it (none of ",
                                       absl::StrJoin(wanted, ", "), ")");
}

// Returns the function that probes a plugin.
std::function<ProbeResult(const PluginFinding&)> Prober(const RegistryOptions& options) {
  if (options.probe) {
    return [&options](const PluginFinding& plugin) { return options.probe(plugin.path); };
  }
  std::vector<std::string> looked_at;
  const std::string program = FindProbeProgram(&looked_at);
  if (program.empty()) {
    return [where = absl::StrJoin(looked_at, ", ")](const PluginFinding&) {
      ProbeResult result;
      result.status = absl::UnavailableError(
          absl::StrCat("it can't be probed: trine-probe was not found (looked at ", where, ")"));
      return result;
    };
  }
  return [program, timeout = options.probe_timeout](const PluginFinding& plugin) {
    return ProbePlugin(plugin.path, {program, timeout, plugin.options, plugin.own});
  };
}

void ProbeAll(const RegistryOptions& options, Registry* registry) {
  const auto probe = Prober(options);
  std::vector<std::thread> threads;
  for (PluginFinding& plugin : registry->plugins) {
    if (!plugin.probe.status.ok()) continue;  // rejected without a probe
    const auto run = [&plugin, &probe] { plugin.probe = probe(plugin); };
    try {
      threads.emplace_back(run);
    } catch (const std::system_error&) {
      run();
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// Accepts or rejects each plugin. Of several plugins of one name, accepts the first.
void Judge(Registry* registry) {
  for (size_t i = 0; i < registry->plugins.size(); ++i) {
    PluginFinding& plugin = registry->plugins[i];
    if (!plugin.probe.status.ok()) {
      plugin.reason = std::string(plugin.probe.status.message());
      continue;
    }
    const auto same = std::find_if(registry->plugins.begin(),
                                   registry->plugins.begin() + static_cast<ptrdiff_t>(i),
                                   [&](const PluginFinding& other) {
                                     return other.accepted && other.probe.name == plugin.probe.name;
                                   });
    if (same != registry->plugins.begin() + static_cast<ptrdiff_t>(i)) {
      plugin.reason = absl::StrCat("shadowed: a plugin of the same name comes first, ", same->path);
      continue;
    }
    plugin.accepted = true;
    const size_t n = plugin.probe.devices.size();
    plugin.reason = n == 0 ? "loaded, but it sees no device"
                           : absl::StrCat("sees ", n, n == 1 ? " device" : " devices");
    if (n == 0 && !plugin.probe.notes.empty()) {
      absl::StrAppend(&plugin.reason, ": ", plugin.probe.notes.front());
    }
  }
}

// Returns the options of the plugin that is used under this plugin's name.
std::string OptionsOfName(const Registry& registry, const PluginFinding& plugin) {
  for (const PluginFinding& other : registry.plugins) {
    if (other.accepted && other.probe.name == plugin.probe.name) return other.options;
  }
  return "";
}

// Returns why no device of an accepted plugin is used; "" if one is, or may be by its name.
std::string WhyNoDevice(const Registry& registry, size_t plugin) {
  std::string why = registry.plugins[plugin].reason;
  for (const DeviceFinding& device : registry.devices) {
    if (device.plugin != plugin) continue;
    if (device.used || device.on_request) return "";
    why = device.reason;
  }
  return why;
}

// Returns why options have no effect: no plugin is found that they are for, or neither the plugin
// nor another one of its name has a device that is used.
std::string UnusedOptions(const std::vector<PluginOption>& options,
                          const std::vector<Candidate>& candidates, const Registry& registry) {
  std::vector<std::string> sentences;
  for (const PluginOption& option : options) {
    const auto is_for = [&](const Candidate& c) { return IsFor(option, c); };
    if (std::none_of(candidates.begin(), candidates.end(), is_for)) {
      const char* why = "it names no plugin, and --plugin names no file";
      sentences.push_back(absl::StrCat(
          "the plugin option '", option.setting, "' has no effect: ",
          option.plugin.empty() ? why : absl::StrCat("there is no plugin '", option.plugin, "'")));
    }
  }
  for (size_t i = 0; i < registry.plugins.size(); ++i) {
    const PluginFinding& plugin = registry.plugins[i];
    const bool shadowed = !plugin.accepted && plugin.probe.status.ok();
    if (plugin.options.empty() || (shadowed && plugin.options == OptionsOfName(registry, plugin))) {
      continue;
    }
    const std::string why = plugin.accepted ? WhyNoDevice(registry, i) : plugin.reason;
    if (why.empty()) continue;
    sentences.push_back(absl::StrCat("the plugin option '", plugin.options,
                                     "' has no effect: ", plugin.path, ": ", why));
  }
  return absl::StrJoin(sentences, "; ");
}

std::string FastText(const DeviceFinding& device) {
  const std::string why = FieldText(device.info.reason);
  return why.empty() ? "fast numerics only" : absl::StrCat("fast numerics only (", why, ")");
}

std::string NotExactText(const DeviceFinding& device) {
  return absl::StrCat("the plugin calls it exact, but ", device.failed_test);
}

bool SameChip(const trine_device_info& a, const trine_device_info& b) {
  static constexpr uint8_t kNone[16] = {};
  if (a.pci_id[0] != '\0' && b.pci_id[0] != '\0') {
    return FieldText(a.pci_id, sizeof(a.pci_id)) == FieldText(b.pci_id, sizeof(b.pci_id));
  }
  return std::memcmp(a.uuid, kNone, 16) != 0 && std::memcmp(a.uuid, b.uuid, 16) == 0;
}

}  // namespace

int DefaultRank(const std::string& plugin_name, uint32_t tier) {
  const bool discrete = tier == TRINE_TIER_DGPU;
  if (plugin_name == "hip") return discrete ? 0 : 1;
  if (plugin_name == "vulkan") return discrete ? 1 : 0;
  if (plugin_name == "cpu") return 0;
  return 2;
}

void AssignOwners(const std::vector<std::string>& backend_order, uint32_t numerics,
                  Registry* registry) {
  const auto rank = [&](const DeviceFinding& device) {
    const std::string& name = registry->plugins[device.plugin].probe.name;
    const auto at = std::find(backend_order.begin(), backend_order.end(), name);
    if (at != backend_order.end()) return static_cast<int>(at - backend_order.begin());
    return static_cast<int>(backend_order.size()) + DefaultRank(name, device.info.tier);
  };
  // Best rank first, so that a chip's owner is decided before its other devices are judged.
  std::vector<DeviceFinding*> order;
  for (DeviceFinding& device : registry->devices) order.push_back(&device);
  std::stable_sort(order.begin(), order.end(), [&](const DeviceFinding* a, const DeviceFinding* b) {
    return rank(*a) < rank(*b);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    DeviceFinding& device = *order[i];
    device.used = device.on_request = device.too_fast = false;
    if ((device.info.flags & TRINE_DEVICE_UNUSABLE) != 0) {
      device.reason = FieldText(device.info.reason);
      if (device.reason.empty()) device.reason = "the plugin calls it unusable and gives no reason";
      continue;
    }
    const bool fast = device.info.numerics != TRINE_NUMERICS_EXACT;
    if (fast && numerics == TRINE_NUMERICS_EXACT) {
      device.too_fast = true;
      device.reason =
          absl::StrCat(device.failed_test.empty() ? FastText(device) : NotExactText(device),
                       ": not used without --numerics fast");
      continue;
    }
    const auto owner = std::find_if(order.begin(), order.begin() + static_cast<ptrdiff_t>(i),
                                    [&](const DeviceFinding* other) {
                                      // Devices of one plugin are never the same chip: a
                                      // partitioned GPU has several with one PCI id.
                                      return other->used && other->plugin != device.plugin &&
                                             SameChip(other->info, device.info);
                                    });
    if (owner != order.begin() + static_cast<ptrdiff_t>(i)) {
      device.reason = absl::StrCat("the same chip is used through ",
                                   registry->plugins[(*owner)->plugin].probe.name,
                                   ", which comes first for it (TRINE_BACKEND_ORDER changes that)");
      continue;
    }
    if ((device.info.flags & TRINE_DEVICE_SOFTWARE) != 0 && device.info.tier != TRINE_TIER_CPU) {
      device.on_request = true;
      device.reason = "a software device: used only where it is asked for by name";
      continue;
    }
    device.used = true;
    device.reason = absl::StrCat("serves the ", TierName(device.info.tier), " tier");
    if (fast) absl::StrAppend(&device.reason, ", with fast numerics");
    if (!device.failed_test.empty()) absl::StrAppend(&device.reason, ": ", NotExactText(device));
  }
}

// Returns a sentence for each folder of the user's that has no plugin.
std::vector<std::string> EmptyFolders(const std::vector<SearchedFolder>& folders,
                                      const std::vector<std::string>& named) {
  std::vector<std::string> sentences;
  for (const SearchedFolder& folder : folders) {
    const bool by_user = std::count(named.begin(), named.end(), folder.path) > 0;
    if (!by_user || !folder.error.empty() || folder.plugins > 0) continue;
    sentences.push_back(absl::StrCat(folder.path, " (", folder.found_by,
                                     ") has no plugin: no file libtrine-backend-*.so"));
  }
  return sentences;
}

// Returns a sentence for each name of the order that no plugin has.
std::vector<std::string> UnknownNames(const std::vector<std::string>& order,
                                      const Registry& registry) {
  std::vector<std::string> sentences;
  for (const std::string& name : order) {
    const auto has_name = [&](const PluginFinding& p) { return p.probe.name == name; };
    if (std::any_of(registry.plugins.begin(), registry.plugins.end(), has_name)) continue;
    sentences.push_back(
        absl::StrCat("TRINE_BACKEND_ORDER: no plugin that answers is called '", name, "'"));
  }
  return sentences;
}

Registry DiscoverPlugins(const RegistryOptions& given) {
  RegistryOptions options = given;
  Registry registry;
  if (options.search.use_environment) ReadEnvironment(&options, &registry.notes);
  SearchResult found = FindPlugins(options.search);
  registry.folders = std::move(found.folders);
  for (const SearchedFolder& folder : registry.folders) {
    if (folder.error.empty()) continue;
    registry.notes.push_back(
        absl::StrCat(folder.path, " (", folder.found_by, ") can't be looked into: ", folder.error));
  }
  for (std::string& note : EmptyFolders(registry.folders, options.search.explicit_paths)) {
    registry.notes.push_back(std::move(note));
  }
  const std::vector<Candidate> candidates = found.candidates;
  for (Candidate& candidate : found.candidates) {
    ProbeResult probe;
    const std::string given = OptionsFor(options.plugin_options, candidate);
    if (options.hardware_alone && !candidate.named && given.empty()) {
      const std::string missing = HardwareMissing(candidate.path);
      if (!missing.empty()) {
        probe.status = absl::UnavailableError(
            absl::StrCat("not probed: ", missing, ", and no device but the CPU was asked for"));
      }
    }
    registry.plugins.push_back({std::move(candidate.path), std::move(candidate.found_by), false, "",
                                given, candidate.own, std::move(probe)});
  }
  ProbeAll(options, &registry);
  Judge(&registry);
  for (std::string& note : UnknownNames(options.backend_order, registry)) {
    registry.notes.push_back(std::move(note));
  }
  for (size_t p = 0; p < registry.plugins.size(); ++p) {
    if (!registry.plugins[p].accepted) continue;
    const std::vector<trine_device_info>& infos = registry.plugins[p].probe.devices;
    for (uint32_t i = 0; i < infos.size(); ++i) {
      DeviceFinding device;
      device.plugin = p;
      device.index = i;
      device.info = infos[i];
      const ProbeResult& probe = registry.plugins[p].probe;
      if (const auto failed = probe.failed_tests.find(i); failed != probe.failed_tests.end()) {
        device.failed_test = failed->second;
      }
      // A plugin may follow another version of the contract. Then its EXACT is only FAST here.
      if (!device.failed_test.empty() || probe.numerics_version != TRINE_NUMERICS_VERSION) {
        device.info.numerics = TRINE_NUMERICS_FAST;
      }
      registry.devices.push_back(device);
    }
  }
  AssignOwners(options.backend_order, options.numerics, &registry);
  registry.unused_options = UnusedOptions(options.plugin_options, candidates, registry);
  for (size_t p = 0; p < registry.plugins.size(); ++p) {
    PluginFinding& plugin = registry.plugins[p];
    const bool any = std::any_of(registry.devices.begin(), registry.devices.end(),
                                 [p](const DeviceFinding& d) { return d.plugin == p && d.used; });
    if (plugin.accepted && !plugin.probe.devices.empty() && !any) plugin.reason += ", none in use";
  }
  return registry;
}

}  // namespace trine
