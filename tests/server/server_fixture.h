// Helpers of tests of the whole server: a server in the test's process, with a tiny model behind
// real sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/model/engine_test_util.h"
#include "tools/server/http/raw_client.h"
#include "tools/server/service/server.h"

namespace trine::server {

using Json = nlohmann::json;
using std::chrono::milliseconds;

inline constexpr const char* kTemplate =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}";

struct Served {
  int64_t places = 4;
  int64_t context = 256;
  std::vector<std::string> keys = {};
  std::string split = "cpu:100%";
  std::string faults = {};
  std::shared_future<void> hold = {};  // loading waits until it is ready
  JobQueueOptions queue = {};
  std::chrono::seconds request_time{600};
  std::string alias = "tiny";
  bool embeddings = true, trace = true;
  int threads = 1;
  SessionLimits sessions = {};
  uint64_t kv_host_bytes = 0;
  std::string kv_store = {};
  uint64_t kv_prefetch_bytes = 0;
  std::string model = {};  // its path; "": a tiny llama
  std::string expert_stats = {};
  int64_t hot_experts = 0;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() : file_(MakeTinyModel(*TinyModelByName("llama-q8")).ToBytes()) {}

  EngineOptions Options(const Served& setup) const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.context = setup.context;
    options.max_sequences = setup.places;
    options.placement.split = SplitOf(setup.split);
    options.faults = setup.faults;
    options.threads = setup.threads;
    options.hidden_rows = setup.embeddings;
    options.mixed_tokens = 32;
    options.trace_events = setup.trace ? 4096 : 0;
    options.explain = true;
    options.kv_host_bytes = setup.kv_host_bytes;
    options.kv_store = setup.kv_store;
    options.kv_prefetch_bytes = setup.kv_prefetch_bytes;
    if (!setup.model.empty()) options.model_path = setup.model;
    options.expert_stats = setup.expert_stats;
    options.placement.hot_experts = setup.hot_experts;
    return options;
  }

  void Start(const Served& setup) {
    ServerOptions options;
    options.access.keys = setup.keys;
    options.queue = setup.queue;
    options.queue.places = setup.places;
    options.request_time = setup.request_time;
    options.sessions = setup.sessions;
    options.load = [this, setup](const std::function<bool(double)>& progress)
        -> absl::StatusOr<std::unique_ptr<ServedModel>> {
      if (setup.hold.valid()) setup.hold.wait();
      EngineOptions engine_options = Options(setup);
      engine_options.progress = progress;
      auto engine = Engine::Load(engine_options);
      if (!engine.ok()) return engine.status();
      ServedModelOptions model;
      model.alias = setup.alias;
      model.chat_template = kTemplate;
      model.sampler.temp = 0;
      return ServedModel::Create(*std::move(engine), std::move(model));
    };
    auto server = Server::Start(std::move(options), &log_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    while (!setup.hold.valid() && !server_->loaded()) {
      ASSERT_TRUE(server_->load_status().ok()) << server_->load_status();
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  static std::string Text(std::string_view method, std::string_view path, std::string_view body,
                          std::string_view more = "") {
    return absl::StrCat(std::string(method), " ", std::string(path),
                        " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", std::string(more),
                        "Content-Length: ", body.size(), "\r\n\r\n", std::string(body));
  }
  RawAnswer Post(std::string_view path, const Json& body, std::string_view more = "") const {
    return RawClient(server_->port()).Ask(Text("POST", path, body.dump(), more));
  }
  RawAnswer Delete(std::string_view path, std::string_view more = "") const {
    return RawClient(server_->port()).Ask(Text("DELETE", path, "", more));
  }
  RawAnswer Get(std::string_view path, std::string_view more = "") const {
    return RawClient(server_->port()).Ask(Text("GET", path, "", more));
  }
  static Json Body(const RawAnswer& answer) { return Json::parse(answer.body, nullptr, false); }

  std::string Completion(const Json& request) const {
    const RawAnswer answer = Post("/v1/completions", request);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Json json = Body(answer);
    return json.is_object() && json.contains("choices") ? json["choices"][0]["text"] : "?";
  }

  bool Becomes(const std::function<bool()>& done, milliseconds limit = milliseconds(20'000)) const {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < until) {
      if (done()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  Json Status() const { return Body(Get("/v1/status")); }
  // Returns a value of /metrics, named without labels or with all of them; -1: there is none.
  double Metric(const std::string& name) const {
    const std::string text = Get("/metrics").body;
    const size_t at = text.find(absl::StrCat("\n", name, " "));
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  const TempFile file_;
  std::mutex log_mutex_;
  std::string logged_;
  ServerLog log_{LogLevel::kInfo, true, [this](const std::string& line) {
                   std::lock_guard lock(log_mutex_);
                   logged_ += line;
                 }};
  std::unique_ptr<Server> server_;
};

// Returns the data frames of a stream, without the one that ends it.
inline std::vector<Json> Frames(const std::string& body) {
  std::vector<Json> frames;
  for (const auto& line : absl::StrSplit(body, "\n\n")) {
    std::string text(line);
    const size_t at = text.find("data: ");
    if (at == std::string::npos || absl::StrContains(text, "[DONE]")) continue;
    frames.push_back(Json::parse(text.substr(at + 6), nullptr, false));
  }
  return frames;
}

}  // namespace trine::server
