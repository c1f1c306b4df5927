// The side of probing that runs in the child process. Nothing here needs to survive a bad plugin:
// every step is announced first, and the parent draws its conclusions.
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "plugins/child_process.h"
#include "plugins/device_info_json.h"
#include "plugins/host_services.h"
#include "plugins/library.h"
#include "plugins/plugin_table.h"
#include "plugins/probe.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

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

absl::Status ProbeDevices(const trine_plugin& table, trine_backend* backend) {
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
    if ((info.flags & TRINE_DEVICE_UNUSABLE) == 0) {
      Stage("opening " + device);
      trine_device* opened = nullptr;
      status = CallPlugin("it could not be opened", [&](trine_error* err) {
        return table.device_open(backend, i, &opened, err);
      });
      if (status.ok() && opened != nullptr) {
        Stage("closing " + device);
        table.device_close(opened);
      } else {
        // One bad device must not take the plugin's others away.
        info.flags |= TRINE_DEVICE_UNUSABLE;
        const std::string why =
            status.ok() ? "device_open gave no device" : std::string(status.message());
        why.copy(info.reason, sizeof(info.reason) - 1);
        info.reason[std::min(why.size(), sizeof(info.reason) - 1)] = '\0';
      }
    }
    Report({{"event", "device"}, {"info", DeviceInfoToJson(info)}});
  }
  return absl::OkStatus();
}

absl::Status Probe(const std::string& path) {
  auto library = PluginLibrary::Load(path);
  if (!library.ok()) return library.status();
  const trine_plugin& table = (*library)->table();
  Report({{"event", "table"},
          {"name", table.name},
          {"version", table.version},
          {"abi_version", table.abi_version},
          {"numerics_version", table.numerics_version}});

  // Whatever it says is a sign of life.
  HostServices host({}, [](uint32_t level, const std::string& message) {
    const char* event = level >= TRINE_LOG_WARNING ? "log"
                        : level == TRINE_LOG_INFO  ? "note"
                                                   : "alive";
    Report({{"event", event}, {"message", message}});
  });
  Stage("being opened");
  trine_backend* backend = nullptr;
  absl::Status status = CallPlugin("it could not be opened", [&](trine_error* err) {
    return table.open(host.table(), "", &backend, err);
  });
  if (!status.ok()) return status;
  if (backend == nullptr) return absl::InternalError("open succeeded but gave no backend");
  status = ProbeDevices(table, backend);
  Stage("being closed");
  table.close(backend);
  Stage("being unloaded");
  return status;
}

}  // namespace

int ProbeMain(const std::string& path) {
  FollowParent();
  const absl::Status status = Probe(path);
  if (!status.ok()) {
    Report({{"event", "error"},
            {"code", static_cast<int>(status.code())},
            {"message", std::string(status.message())}});
    return 0;  // a finding, not a failure of the probe
  }
  Report({{"event", "done"}});
  return 0;
}

}  // namespace trine
