#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "plugins/child_process.h"
#include "plugins/conformance/check.h"
#include "plugins/conformance/kit.h"
#include "plugins/conformance/session.h"
#include "plugins/conformance/trial.h"
#include "plugins/library.h"

// Sets a sanitizer's options. The kit asks for impossible allocations, over which a sanitizer must
// not end the process. The cycles measure leaks; a search for leaks at exit takes seconds and would
// look like a hang.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=0";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace trine::conformance {
namespace {

// Writes lines to the report's descriptor, without a buffer: the next call may crash the process.
class ReportSink : public Sink {
 public:
  void Begin(const std::string& check) override { Send({{"event", "begin"}, {"check", check}}); }
  void End(const Finding& f) override {
    Send({{"event", "end"},
          {"check", f.check},
          {"outcome", OutcomeName(f.outcome)},
          {"detail", f.detail},
          {"seconds", f.seconds}});
  }
  // Callable from any thread.
  void Alive() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - last_alive_ < std::chrono::milliseconds(200)) return;
    last_alive_ = now;
    Send({{"event", "alive"}});
  }
  void Send(const nlohmann::json& message) {
    // Names and messages come from the plugin and may not be UTF-8.
    const std::string line =
        message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t n = write(kReportFd, line.data() + sent, line.size() - sent);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_alive_{};
};

bool ParseFlags(int argc, char** argv, KitOptions* options) {
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--long") {
      options->long_run = true;
      continue;
    }
    if (flag == "--allow-no-device") {
      options->allow_no_device = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const char* value = argv[++i];
    if (flag == "--cycles") {
      options->create_destroy_cycles = std::atoi(value);
    } else if (flag == "--workers") {
      options->workers = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    } else if (flag == "--seed") {
      options->seed = std::strtoull(value, nullptr, 10);
    } else if (flag == "--filter") {
      options->filter = value;
    } else if (flag == "--options") {
      options->options = value;
    } else if (flag == "--resume-after") {
      options->resume_after = value;
    } else {
      return false;
    }
  }
  return true;
}

// Returns null if it fails, and notes the failure in the trial.
trine_plugin_query_fn LoadQuery(Trial& trial, const std::string& path) {
  const auto query = PluginLibrary::LoadQuery(path);
  return trial.Expect(query.ok(), std::string(query.status().message())) ? *query : nullptr;
}

void SendIdentity(ReportSink& sink, trine_plugin_query_fn query) {
  const trine_plugin* table = query(TRINE_ABI_VERSION);
  if (table == nullptr || table->struct_size < TRINE_PLUGIN_REQUIRED_SIZE) return;
  sink.Send({{"event", "plugin"},
             {"name", table->name != nullptr ? table->name : ""},
             {"version", table->version != nullptr ? table->version : ""},
             {"abi", absl::StrCat(table->abi_version >> 16, ".", table->abi_version & 0xffff)}});
}

}  // namespace

int CheckMain(int argc, char** argv) {
  KitOptions options;
  if (argc < 2 || !ParseFlags(argc, argv, &options)) return 2;
  const std::string path = argv[1];
  FollowParent();

  ReportSink sink;
  OnSignOfLife([&] { sink.Alive(); });
  trine_plugin_query_fn query = nullptr;
  if (options.resume_after.empty()) {
    Runner runner(options, sink);
    runner.RunUnfiltered("load/library", [&](Trial& trial) { query = LoadQuery(trial, path); });
  } else {
    QuietSink quiet;
    Trial trial(&quiet);
    query = LoadQuery(trial, path);
  }
  if (query != nullptr) {
    RunKit(query, options, sink);
    SendIdentity(sink, query);
  }
  sink.Send({{"event", "done"}});
  return 0;
}

std::vector<std::string> KitFlags(const KitOptions& options) {
  std::vector<std::string> flags = {"--cycles",  std::to_string(options.create_destroy_cycles),
                                    "--workers", std::to_string(options.workers),
                                    "--seed",    std::to_string(options.seed)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) flags.insert(flags.end(), {flag, value});
  };
  add("--filter", options.filter);
  add("--options", options.options);
  add("--resume-after", options.resume_after);
  if (options.long_run) flags.push_back("--long");
  if (options.allow_no_device) flags.push_back("--allow-no-device");
  return flags;
}

}  // namespace trine::conformance
