// Tests what the server tells of itself: health, metrics, reports, names of threads, the log.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "tests/server/server_fixture.h"

namespace trine::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using ServerReportsTest = ServerTest;

TEST_F(ServerReportsTest, ALostDeviceCostsNobodyATokenAndIsReported) {
  std::vector<std::string> calm, disturbed(6);
  const auto request = [](size_t i) -> Json {
    return {{"prompt", absl::StrCat("story ", i)}, {"max_tokens", 40}, {"ignore_eos", true}};
  };
  Start({.places = 4});
  for (size_t i = 0; i < disturbed.size(); ++i) calm.push_back(Completion(request(i)));
  EXPECT_EQ(Body(Get("/health"))["status"], "ok");
  server_.reset();
  Start({.places = 4, .split = "cpu:1,several0:2", .faults = "several0:lost@token=60"});
  std::vector<std::thread> threads;
  for (size_t i = 0; i < disturbed.size(); ++i) {
    threads.emplace_back([&, i] { disturbed[i] = Completion(request(i)); });
  }
  EXPECT_TRUE(Becomes([&] { return Body(Get("/health"))["status"] == "degraded"; }));
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(disturbed, calm);
  const Json health = Body(Get("/health"));
  EXPECT_EQ(health["status"], "degraded") << health;
  const auto& tiers = health["tiers"];
  const bool told = std::any_of(tiers.begin(), tiers.end(), [](const Json& tier) {
    return tier["device"] == "several0" && tier["state"] == "lost" && !tier["reason"].empty();
  });
  EXPECT_TRUE(told) << health;
  EXPECT_THAT(Get("/metrics").body, HasSubstr("trine_devices_lost 1\n"));
}

TEST_F(ServerReportsTest, MetricsCountChoicesOfExperts) {
  const TempFile moe(*MakeModelBytes(*FindPreset("tiny-mixtral")));
  const std::string stats = moe.path() + ".stats";
  const auto value = [](const std::string& metrics, const std::string& name) {
    const size_t at = metrics.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::atof(metrics.c_str() + at + name.size() + 2);
  };
  Start({.split = "several0:100%", .model = moe.path(), .expert_stats = stats, .hot_experts = 2});
  Completion({{"prompt", "a text"}, {"max_tokens", 8}});
  const std::string metrics = Get("/metrics").body;
  const double choices = value(metrics, "trine_expert_choices_total");
  EXPECT_GT(choices, 8);
  EXPECT_GT(value(metrics, "trine_expert_choices_in_slots_total"), 0);
  EXPECT_LT(value(metrics, "trine_expert_choices_in_slots_total"), choices);
  EXPECT_GE(value(metrics, "trine_experts_moved_total"), 0);
  EXPECT_GE(value(metrics, "trine_experts_moved_bytes_total"), 0);
  EXPECT_THAT(metrics, HasSubstr("# TYPE trine_expert_choices_total counter\n"));
  server_.reset();
  EXPECT_TRUE(std::filesystem::remove(stats)) << "written when the server ended";
  Start({});
  EXPECT_THAT(Get("/metrics").body, Not(HasSubstr("trine_expert")));
}

TEST_F(ServerReportsTest, ReportsTellOfTheTiers) {
  Start({.split = "cpu:1,several0:2"});
  Completion({{"prompt", "a text"}, {"max_tokens", 8}});
  const std::string metrics = Get("/metrics").body;
  for (const char* name :
       {"trine_generated_tokens_total 8\n", "trine_tier_busy_seconds_total{tier=\"cpu\"",
        "trine_tier_busy_seconds_total{tier=\"several0\"", "trine_kv_blocks ", "trine_up 1\n",
        "trine_host_wait_seconds_total{for=\"sequences\"}",
        "trine_host_seconds_total{what=\"prepare\"}",
        "trine_requests_total{endpoint=\"/v1/completions\",status=\"200\"} 1\n"}) {
    EXPECT_THAT(metrics, HasSubstr(name));
  }
  const Json plan = Body(Get("/v1/plan"));
  EXPECT_EQ(plan["now"].size(), 2u);
  EXPECT_TRUE(plan["planned"].is_object());
  EXPECT_THAT(Get("/v1/plan?format=svg").body, HasSubstr("<svg"));
  EXPECT_EQ(Get("/v1/plan?format=png").status, 400);
  const Json trace = Body(Get("/v1/trace?seconds=60"));
  EXPECT_GT(trace["traceEvents"].size(), 10u);
  EXPECT_EQ(Get("/v1/trace?seconds=0").status, 400);
  const Json status = Status();
  EXPECT_EQ(status["tiers"].size(), 2u);
  EXPECT_GT(status["timeline"]["events"].size(), 0u);
  EXPECT_EQ(Body(Get("/v1/models"))["data"][0]["id"], "tiny");
  const Json tokens = Body(Post("/tokenize", {{"content", "a text"}}))["tokens"];
  EXPECT_EQ(Body(Post("/detokenize", {{"tokens", tokens}}))["content"], "a text");
}

TEST_F(ServerReportsTest, ThreadsAreNamedForWhatTheyDo) {
  Start({.split = "cpu:1,several0:2", .threads = 3});
  Completion({{"prompt", "a text"}, {"max_tokens", 4}});
  Get("/v1/plan");  // an errand
  const auto names = [] {
    std::multiset<std::string> found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      found.insert(name.substr(0, name.find_last_not_of("0123456789") + 1));
    }
    return found;
  };
  // Counts the threads of connections. Joined threads of an earlier server may be listed a moment
  // longer.
  EXPECT_TRUE(Becomes([&] { return names().count("trine-http-") == 2; }));
  for (const char* name :
       {"trine-job-", "trine-errand-", "trine-time", "trine-cpu-", "trine-stage-"}) {
    EXPECT_GE(names().count(name), 1u) << name;
  }
}

TEST_F(ServerReportsTest, TheLogHasALineForEachRequestAndNoSecrets) {
  Start({.keys = {"hunter2"}});
  Post("/v1/completions", {{"prompt", "classified"}, {"max_tokens", 3}},
       "Authorization: Bearer hunter2\r\n");
  // The error may quote the request to its sender.
  const RawAnswer wrong = RawClient(server_->port())
                              .Ask(Text("POST", "/v1/completions", "{\"prompt\": \"classified\" o",
                                        "Authorization: Bearer hunter2\r\n"));
  EXPECT_EQ(wrong.status, 400);
  server_.reset();
  std::lock_guard lock(log_mutex_);
  EXPECT_THAT(logged_, HasSubstr("\"path\":\"/v1/completions\""));
  EXPECT_THAT(logged_, HasSubstr("\"tokens\":3"));
  EXPECT_FALSE(absl::StrContains(logged_, "hunter2"));
  EXPECT_FALSE(absl::StrContains(logged_, "classified")) << logged_;
}

}  // namespace
}  // namespace trine::server
