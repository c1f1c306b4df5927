// The half of the probe that runs in the child. A bad plugin may crash or hang this process. So
// each step is reported before it is taken, and the parent concludes from the last report which
// step failed.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "nlohmann/json.hpp"
#include "plugins/child_process.h"
#include "plugins/device_text.h"
#include "plugins/host_services.h"
#include "plugins/library.h"
#include "plugins/probe.h"
#include "plugins/self_test/passed_devices.h"
#include "plugins/self_test/self_test.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

// No graph of a device's self-test begins later than this, so that a slow device does not delay a
// start for long.
constexpr std::chrono::milliseconds kSelfTestTime{300};

constexpr uint32_t kMaxDevices = 64;

void Report(Json line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(kReportFd, text.data() + done, text.size() - done);
    if (n <= 0) return;  // the parent is gone
    done += static_cast<size_t>(n);
  }
}

void Stage(const std::string& stage) { Report({{"event", "stage"}, {"stage", stage}}); }

// The plugin to probe, and what is remembered of its devices.
struct Subject {
  explicit Subject(const std::string& plugin_path, const std::string& plugin_options, bool is_own)
      : path(plugin_path), options(plugin_options), own(is_own) {
    if (!own) passed.emplace(path, options);
  }

  std::string path;
  std::string options;
  bool own;
  std::optional<PassedDevices> passed;
};

// Runs the host's self-test on a device that calls itself exact. Goes on where earlier processes
// stopped. Returns "", or why the device is not taken for exact.
std::string WhyNotExact(const Subject& subject, const trine_plugin& table, trine_device* device,
                        uint32_t index, const trine_device_info& info) {
  // Trine's own plugins test their devices themselves.
  if (subject.own || info.numerics != TRINE_NUMERICS_EXACT ||
      table.numerics_version != TRINE_NUMERICS_VERSION) {
    return "";
  }
  const PassedDevices::Progress before = subject.passed->Recall(index, info);
  if (before.complete) return "";
  self_test::Options options;
  options.numerics = TRINE_NUMERICS_EXACT;
  options.first = before.next;
  options.deadline = std::chrono::steady_clock::now() + kSelfTestTime;
  const self_test::Result result =
      self_test::Run(table, device, options, [&](const std::string& name) {
        Stage("testing " + name + " on device " + std::to_string(index));
      });
  if (result.failure.empty()) {
    subject.passed->Remember(index, info, {result.next, result.complete});
    return "";
  }
  return (result.could_run ? "it fails the self-test (" : "the self-test could not be run (") +
         result.failure + ")";
}

void SetReason(const std::string& why, trine_device_info* info) {
  why.copy(info->reason, sizeof(info->reason) - 1);
  info->reason[std::min(why.size(), sizeof(info->reason) - 1)] = '\0';
}

absl::Status ProbeDevices(const Subject& subject, const trine_plugin& table,
                          trine_backend* backend) {
  Stage("counting its devices");
  const uint32_t count = table.device_count(backend);
  if (count > kMaxDevices) {
    return absl::InternalError("it reports " + std::to_string(count) + " devices");
  }
  for (uint32_t i = 0; i < count; ++i) {
    const std::string device = "device " + std::to_string(i);
    Stage("describing " + device);
    trine_device_info info{};
    info.struct_size = sizeof(info);
    absl::Status status = CallPlugin("device_info of " + device, [&](trine_error* err) {
      return table.device_info(backend, i, &info, err);
    });
    if (!status.ok()) return status;
    std::string failed_test;
    if ((info.flags & TRINE_DEVICE_UNUSABLE) == 0) {
      Stage("opening " + device);
      trine_device* opened = nullptr;
      status = CallPlugin("it could not be opened", [&](trine_error* err) {
        return table.device_open(backend, i, &opened, err);
      });
      if (status.ok() && opened != nullptr) {
        failed_test = WhyNotExact(subject, table, opened, i, info);
        Stage("closing " + device);
        table.device_close(opened);
      } else {
        // One bad device must not hide the plugin's other devices.
        info.flags |= TRINE_DEVICE_UNUSABLE;
        SetReason(status.ok() ? "device_open gave no device" : std::string(status.message()),
                  &info);
      }
    }
    Report({{"event", "device"}, {"info", DeviceInfoToJson(info)}, {"failed_test", failed_test}});
  }
  return absl::OkStatus();
}

absl::Status Probe(const Subject& subject) {
  auto library = PluginLibrary::Load(subject.path);
  if (!library.ok()) return library.status();
  const trine_plugin& table = (*library)->table();
  Report({{"event", "table"},
          {"name", table.name},
          {"version", table.version},
          {"abi_version", table.abi_version},
          {"numerics_version", table.numerics_version}});

  // Reports every message, because any report shows the parent that the plugin does not hang.
  HostServices host({}, [](uint32_t level, const std::string& message) {
    const char* event = level >= TRINE_LOG_WARNING ? "log"
                        : level == TRINE_LOG_INFO  ? "note"
                                                   : "alive";
    Report({{"event", event}, {"message", message}});
  });
  Stage("being opened");
  trine_backend* backend = nullptr;
  absl::Status status = CallPlugin("it could not be opened", [&](trine_error* err) {
    return table.open(host.table(), subject.options.c_str(), &backend, err);
  });
  if (!status.ok()) return status;
  if (backend == nullptr) return absl::InternalError("open succeeded but gave no backend");
  status = ProbeDevices(subject, table, backend);
  Stage("being closed");
  table.close(backend);
  Stage("being unloaded");
  return status;
}

}  // namespace

int ProbeMain(int argc, char** argv) {
  const std::string call = argc == 4 ? argv[1] : "";
  if (call != "probe" && call != "probe-own") return -1;
  FollowParent();
  const absl::Status status = Probe(Subject(argv[2], argv[3], call == "probe-own"));
  if (!status.ok()) {
    Report({{"event", "error"},
            {"code", static_cast<int>(status.code())},
            {"message", std::string(status.message())}});
    return 0;  // a finding about the plugin, not a failure of the probe
  }
  Report({{"event", "done"}});
  return 0;
}

}  // namespace trine
