#include "plugins/probe.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "plugins/child_process.h"
#include "plugins/device_text.h"
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
      const std::string failed = json.value("failed_test", "");
      if (!failed.empty()) result->failed_tests[result->devices.size()] = failed;
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

}  // namespace

ProbeResult ProbePlugin(const std::string& path, const ProbeOptions& options) {
  ProbeResult result;
  // Checks the file first, because that costs no process.
  result.status = PluginLibrary::CheckFile(path);
  if (!result.status.ok()) return result;

  Progress progress;
  ChildOptions child;
  child.argv = {options.program, options.own ? "probe-own" : "probe", path, options.plugin_options};
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

}  // namespace trine
