#include "plugins/probe.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "plugins/child_process.h"
#include "plugins/device_text.h"
#include "plugins/host_services.h"
#include "plugins/library.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPatience = 10;

// Everything that the child has reported so far.
struct Progress {
  std::string stage = "being loaded";
  bool done = false;
  bool garbled = false;
};

void TakeLine(std::string_view line, Progress* progress, ProbeResult* result) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("event") || !json["event"].is_string()) {
    progress->garbled = true;
    return;
  }
  const std::string event = json["event"];
  if (event == "stage") {
    progress->stage = json.value("stage", "");
  } else if (event == "table") {
    result->name = json.value("name", "");
    result->version = json.value("version", "");
    result->abi_version = json.value("abi_version", 0u);
    result->numerics_version = json.value("numerics_version", 0u);
  } else if (event == "device") {
    trine_device_info info;
    if (json.contains("info") && DeviceInfoFromJson(json["info"], &info)) {
      result->devices.push_back(info);
    } else {
      progress->garbled = true;
    }
  } else if (event == "log") {
    if (result->log.size() < 32) result->log.push_back(json.value("message", ""));
  } else if (event == "note") {
    if (result->notes.size() < 32) result->notes.push_back(json.value("message", ""));
  } else if (event == "error") {
    result->status = absl::Status(static_cast<absl::StatusCode>(json.value("code", 2)),
                                  json.value("message", "it failed without a message"));
  } else if (event == "done") {
    progress->done = true;
  }
}

// The rest of this file runs in the child. A bad plugin may crash or hang this process. So each
// step is reported before it is taken, and the parent concludes from the last report which step
// failed.

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
        // One bad device must not hide the plugin's other devices.
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

absl::Status Probe(const std::string& path, const std::string& options) {
  auto library = PluginLibrary::Load(path);
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
    return table.open(host.table(), options.c_str(), &backend, err);
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

ProbeResult ProbePlugin(const std::string& path, const ProbeOptions& options) {
  ProbeResult result;
  // Checks the file first, because that costs no process.
  result.status = PluginLibrary::CheckFile(path);
  if (!result.status.ok()) return result;

  Progress progress;
  ChildOptions child;
  child.argv = {options.program, "probe", path, options.plugin_options};
  // A GPU compiles and tests its kernels the first time. A child that reports may take longer.
  child.timeout = options.timeout * kPatience;
  child.idle_timeout = options.timeout;
  child.on_line = [&](std::string_view line) {
    // A value of an unexpected kind makes nlohmann-json throw.
    try {
      TakeLine(line, &progress, &result);
    } catch (const Json::exception&) {
      progress.garbled = true;
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  const ChildResult end = RunChild(child);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!result.status.ok()) return result;
  if (end.end == ChildResult::End::kNotStarted) {
    result.status =
        absl::UnavailableError(absl::StrCat("it could not be probed: ", DescribeEnd(end, child)));
  } else if (!progress.done || !end.Ok()) {
    const absl::string_view hint =
        end.end == ChildResult::End::kTimedOut ? " (TRINE_PROBE_TIMEOUT_MS raises the limit)" : "";
    result.status = absl::UnavailableError(
        progress.done ? absl::StrCat("the plugin or its driver ", DescribeEnd(end, child),
                                     " after it was probed", hint)
                      : absl::StrCat("the plugin or its driver ", DescribeEnd(end, child),
                                     " while ", progress.stage, hint));
  } else if (progress.garbled) {
    result.status = absl::InternalError("its probe gave a report that can't be read");
  }
  return result;
}

int ProbeMain(const std::string& path, const std::string& options) {
  FollowParent();
  const absl::Status status = Probe(path, options);
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
