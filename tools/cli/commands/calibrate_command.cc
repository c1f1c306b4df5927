// trine calibrate: measures what work costs on each device, for the planner.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "detect/file_root.h"
#include "dispatch/cost/machine_load.h"
#include "dispatch/cost/measure_device.h"
#include "dispatch/cost/rounds.h"
#include "runtime/base/machine_report.h"
#include "runtime/placement/calibration.h"
#include "runtime/placement/device_set.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"
#include "tools/report/text_table.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

struct CalibrateArguments {
  std::vector<std::string> devices;
  RegistryOptions plugins;
  std::vector<std::string> types;
  std::string file;
  int64_t threads = 0;
  bool dry_run = false;
};

// Returns several times the size of the last-level caches, so that weights come from memory.
uint64_t StreamBytes(const detect::CpuInfo& cpu) {
  uint64_t bytes = 0;
  int level = 0;
  for (const detect::CacheInfo& cache : cpu.topology.caches) {
    if (cache.type == detect::CacheType::kInstruction || cache.level < level) continue;
    if (cache.level > level) bytes = 0;
    level = cache.level;
    bytes += cache.size_bytes * static_cast<uint64_t>(std::max(cache.instances, 1));
  }
  return std::clamp<uint64_t>(4 * bytes, uint64_t{128} << 20, uint64_t{2} << 30);
}

absl::StatusOr<std::vector<uint32_t>> ParseTypes(const std::vector<std::string>& names) {
  std::vector<uint32_t> types;
  for (const std::string& name : names) {
    uint32_t found = 0;
    for (uint32_t type = 1; type < 256 && found == 0; ++type) {
      if (sdk::FindDtype(type) != nullptr && name == sdk::DtypeName(type)) found = type;
    }
    if (found == 0 || found == TRINE_DTYPE_I32 || found == TRINE_DTYPE_Q8_KV) {
      return absl::InvalidArgumentError(
          absl::StrCat("--types: '", name, "' is no type of weights, such as q4_0 or q4_K"));
    }
    types.push_back(found);
  }
  return types;
}

// Says which devices are not measured, because their results are fast.
void NameDevicesTooFast(const Inventory& inventory) {
  for (const InventoryDevice& device : DevicesTooFast(inventory)) {
    std::fprintf(stderr, "trine: %s is not measured: %s\n", Printable(device.backend_name).c_str(),
                 Printable(device.reason).c_str());
  }
}

// Returns the tier names of the given devices; by default, of all devices in use but software ones.
absl::StatusOr<std::vector<std::string>> ChooseDevices(const CalibrateArguments& a,
                                                       const DeviceSet& devices) {
  std::vector<std::string> names;
  for (const std::string& name : a.devices) {
    auto known = devices.Resolve(name);
    if (!known.ok()) return known.status();
    names.push_back(*std::move(known));
  }
  if (!names.empty()) return names;
  const Inventory& inventory = devices.inventory();
  for (const InventoryDevice& d : inventory.devices) {
    if (!d.used) continue;
    const trine_device_info& info = inventory.registry.devices[d.registry_device].info;
    if ((info.flags & TRINE_DEVICE_SOFTWARE) == 0) names.push_back(d.tier_name);
  }
  if (names.empty()) {
    const std::string why = inventory.problems.empty()
                                ? "all devices are software: --device names one"
                                : inventory.problems.front();
    return absl::NotFoundError(absl::StrCat("there is nothing to measure: ", why));
  }
  return names;
}

// Says how far the rounds of a measurement were apart: "the middle half of all rounds lay within
// 2 %, at worst 9 % (q8_0)". Returns "" if nothing is known.
std::string SpreadText(const CostTrust& trust) {
  std::vector<double> all;
  double worst = -1;
  uint32_t worst_type = 0;
  for (const auto& [type, parts] : trust.spread) {
    for (const double part : parts) {
      all.push_back(part);
      if (part <= worst) continue;
      worst = part;
      worst_type = type;
    }
  }
  if (all.empty()) return "";
  return absl::StrFormat("the middle half of the rounds lay within %.0f %%, at worst %.0f %% (%s)",
                         100 * Summarise(std::move(all)).median, 100 * worst,
                         sdk::DtypeName(worst_type));
}

void PrintCosts(const std::string& name, const DeviceMeasurement& measurement) {
  const DeviceCosts& costs = measurement.measured.costs;
  std::printf("%s: %.1f GB/s of weights, %.1f us a run, %.2f us a product\n", name.c_str(),
              costs.bytes_per_second / 1e9, costs.run_ns / 1e3, costs.matmul_ns / 1e3);
  TextTable table({"weights", "1 token", "4", "16", "64", "256"});
  for (const auto& [type, curve] : costs.matmul) {
    std::vector<std::string> row = {sdk::DtypeName(type)};
    for (const double tokens : {1, 4, 16, 64, 256}) {
      // Billions of multiplications of a weight and a value per second.
      row.push_back(absl::StrFormat("%.1f", tokens / curve.At(tokens)));
    }
    table.Add(std::move(row));
  }
  std::printf("  billions of multiplications a second, by tokens in a pass:\n%s",
              table.Format("  ").c_str());
  if (const std::string spread = SpreadText(measurement.measured.trust); !spread.empty()) {
    std::printf("  %s\n", spread.c_str());
  }
  for (const std::string& note : measurement.notes) {
    std::printf("  %s\n", Printable(note).c_str());
  }
}

std::string CalibrationPath(const CalibrateArguments& a) {
  return !a.file.empty() ? a.file : Calibration::DefaultPath();
}

// Fails before anything is measured if the result could not be kept.
absl::Status CheckFile(const std::string& path) {
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "there is no file to keep it in (TRINE_CALIBRATION is off, or there is no cache folder): "
        "--file names one, --dry-run keeps nothing");
  }
  if (absl::Status s = Calibration::CheckWritable(path); !s.ok()) return s;
  if (const auto old = Calibration::Read(path); !old.ok()) {
    std::fprintf(stderr, "trine: %s; it will be written anew\n",
                 Printable(std::string(old.status().message())).c_str());
  }
  return absl::OkStatus();
}

CpuTimes TimesOfMachine(const detect::CpuInfo& cpu) {
  return ReadCpuTimes(detect::FileRoot("/"), cpu.usable_cpus);
}

// Looks at the machine for a moment, while this process does nothing, and names other work.
void NameOtherWork(const detect::CpuInfo& cpu) {
  constexpr std::chrono::milliseconds kMoment(300);
  const CpuTimes before = TimesOfMachine(cpu);
  std::this_thread::sleep_for(kMoment);
  const std::string busy = DescribeLoad(before, TimesOfMachine(cpu));
  if (busy.empty()) return;
  std::fprintf(stderr, "trine: the machine is busy before anything is measured: %s\n",
               busy.c_str());
}

absl::StatusOr<DeviceMeasurement> MeasureNamed(const CalibrateArguments& a,
                                               const std::vector<uint32_t>& types,
                                               const std::string& name,
                                               const InterruptFlag& interrupt, DeviceSet* devices) {
  const detect::CpuInfo& cpu = devices->inventory().machine.cpu;
  Progress progress(absl::StrCat("measuring ", name));
  MeasureOptions options;
  options.types = types;
  options.numerics = a.plugins.numerics;
  options.stream_bytes = StreamBytes(cpu);
  options.progress = [&](double fraction) {
    return progress.Update(fraction) && !interrupt.raised();
  };
  options.cpu_times = [&] { return TimesOfMachine(cpu); };
  auto device = devices->Open(name);
  if (!device.ok()) return device.status();
  return MeasureDevice(*std::move(device), options);
}

// Prints what was measured, and adds it to `all`.
void Take(const std::string& name, DeviceMeasurement measurement, DeviceSet* devices,
          Calibration* all) {
  PrintCosts(name, measurement);
  MeasuredCosts& measured = measurement.measured;
  if (!measured.trust.busy.empty()) {
    std::fprintf(stderr,
                 "trine: %s: the machine was busy: %s while it was measured; run `trine calibrate` "
                 "again when it is idle\n",
                 name.c_str(), measured.trust.busy.c_str());
  }
  const Inventory& inventory = devices->inventory();
  const auto found = std::find_if(inventory.devices.begin(), inventory.devices.end(),
                                  [&](const InventoryDevice& d) { return d.tier_name == name; });
  const uint32_t threads = devices->host().table()->worker_count;
  all->Set(CalibrationKey(inventory, *found, threads), std::move(measured.costs),
           std::move(measured.trust));
  devices->Forget(name);
}

// Measures the devices one after the other. Goes on if one fails, because the others are worth
// measuring. Returns the command's exit code.
int MeasureThem(const CalibrateArguments& a, const std::vector<uint32_t>& types,
                const std::vector<std::string>& names, DeviceSet* devices, Calibration* all) {
  const InterruptFlag interrupt;
  int failed = 0;
  NameOtherWork(devices->inventory().machine.cpu);
  for (const std::string& name : names) {
    auto measurement = MeasureNamed(a, types, name, interrupt, devices);
    if (interrupt.raised()) {
      std::fprintf(stderr, "trine: calibration was cancelled; nothing was kept\n");
      return kInterrupted;
    }
    if (measurement.ok()) {
      Take(name, *std::move(measurement), devices, all);
    } else {
      Complain(About(name, measurement.status()));
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}

int Calibrate(const CalibrateArguments& a) {
  const auto types = ParseTypes(a.types);
  if (!types.ok()) return ComplainOfArguments(types.status());
  if (const char* team = std::getenv("TRINE_TEAM");
      team != nullptr && *team != '\0' && std::string_view(team) != "own") {
    std::fprintf(stderr,
                 "trine: calibrate measures with Trine's own threads: TRINE_TEAM=%s counts "
                 "for nothing here\n",
                 Printable(team).c_str());
  }
  const std::string path = CalibrationPath(a);
  if (!a.dry_run) {
    if (absl::Status s = CheckFile(path); !s.ok()) return Complain(s);
  }
  MachineOptions machine;
  machine.registry = a.plugins;
  const OwnedDevices devices(
      new DeviceSet(DescribeMachine(machine), static_cast<uint32_t>(a.threads),
                    [](uint32_t level, const std::string& message) {
                      if (level < TRINE_LOG_WARNING) return;
                      std::fprintf(stderr, "trine: %s\n", Printable(message).c_str());
                    }));
  if (const std::string& unused = devices->inventory().registry.unused_options; !unused.empty()) {
    return Complain(absl::InvalidArgumentError(unused));
  }
  const auto names = ChooseDevices(a, *devices);
  if (!names.ok()) return Complain(names.status());
  if (a.devices.empty()) NameDevicesTooFast(devices->inventory());
  Calibration measured;
  const int code = MeasureThem(a, *types, *names, devices.get(), &measured);
  if (code == kInterrupted || a.dry_run || measured.size() == 0) return code;
  if (absl::Status s = measured.AddTo(path); !s.ok()) return Complain(s);
  std::printf("kept in %s\n", Printable(path).c_str());
  return code;
}

}  // namespace

void AddCalibrateCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<CalibrateArguments>(
      app, run, Calibrate, "calibrate",
      "Measure what work costs on each device, so that placements are planned by it; name a busy "
      "machine, and measure doubtful costs again");
  command
      .AddOption("--device", a->devices,
                 "Only these tiers or devices, separated by commas (default: all that are used); "
                 "also -dev")
      .Delimiter(',')
      .Check(NotEmpty);
  command
      .AddOption("--types", a->types,
                 "Only these types of weights, separated by commas, such as q4_0,q8_0")
      .Delimiter(',')
      .Check(NotEmpty);
  command.AddOption("-t,--threads", a->threads, "CPU threads; 0: one per core")
      .Range(0, 1024)
      .ShowDefault();
  command
      .AddOption("--file", a->file,
                 "Where it is kept (default: TRINE_CALIBRATION, or trine/calibration.json in the "
                 "user's cache folder)")
      .Check(NotEmpty);
  command.AddFlag("--dry-run", a->dry_run, "Keep nothing");
  AddPluginOptions(command, &a->plugins);
}

}  // namespace trine
