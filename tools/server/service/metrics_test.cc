#include "tools/server/service/metrics.h"

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tools/server/service/reports.h"
#include "tools/server/service/server_log.h"

namespace trine::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HistogramTest, BucketsAreCumulative) {
  Histogram h;
  for (const double x : {0.0004, 0.0005, 0.0006, 1.0, 1000.0}) h.Add(x);
  std::string out;
  h.Append("t", "Times.", &out);
  EXPECT_THAT(out, HasSubstr("# TYPE t histogram\n"));
  EXPECT_THAT(out, HasSubstr("t_bucket{le=\"0.0005\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("t_bucket{le=\"0.001\"} 3\n"));
  EXPECT_THAT(out, HasSubstr("t_bucket{le=\"0.512\"} 3\n"));
  EXPECT_THAT(out, HasSubstr("t_bucket{le=\"1.024\"} 4\n"));
  EXPECT_THAT(out, HasSubstr("t_bucket{le=\"+Inf\"} 5\n"));
  EXPECT_THAT(out, HasSubstr("t_count 5\n"));
  EXPECT_THAT(out, HasSubstr("t_sum 1001.0015\n"));
}

TEST(MetricsTest, WhatHappenedIsCounted) {
  Metrics metrics;
  metrics.Ended({"/v1/models", 200, 0.001});
  metrics.Ended({"/v1/models", 200, 0.001});
  metrics.Ended({"/v1/completions", 400, 0.001});
  metrics.Ended({"/health", 503, 0.001, /*work=*/false});
  metrics.Ended({"/v1/completions", 499, 0.001});
  metrics.Tokens(3);
  metrics.Prompt(10, 4);
  metrics.Generated({.queue_seconds = 0.2, .first_token_seconds = 0.3});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("trine_requests_total{endpoint=\"/v1/models\",status=\"200\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("trine_requests_total{endpoint=\"/v1/completions\",status=\"400\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("trine_generated_tokens_total 3\n"));
  EXPECT_THAT(text, HasSubstr("trine_prompt_tokens_total 10\n"));
  EXPECT_THAT(text, HasSubstr("trine_cached_tokens_total 4\n"));
  EXPECT_THAT(text, HasSubstr("trine_first_token_seconds_count 1\n"));
  EXPECT_THAT(text, HasSubstr("trine_token_seconds_count 0\n"));
  EXPECT_EQ(metrics.totals().completed, 2u);
  EXPECT_EQ(metrics.totals().failed, 1u);
  EXPECT_EQ(metrics.totals().cancelled, 1u);
}

TEST(MetricsTest, LabelsCanNotEscape) {
  EXPECT_EQ(LabelValue("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
}

TEST(MetricsTest, KeptBlocksByTheirStore) {
  BlockKeeperCounters counters;
  counters.host = {.blocks = 3, .bytes = 96, .hits = 5, .misses = 2};
  counters.disk = {.blocks = 7, .writes = 8, .evictions = 1, .damaged = 4};
  counters.found_blocks = 6;
  counters.fetch_ns = 1'500'000'000;
  counters.prefetch = {
      .begun = 9, .done = 6, .cut = 2, .blocks = 20, .used = 18, .bytes = 512, .ns = 5};
  std::string text;
  AppendKeeperMetrics(counters, &text);
  for (const char* line :
       {"# TYPE trine_kv_store_blocks gauge\n", "trine_kv_store_blocks{store=\"host\"} 3\n",
        "trine_kv_store_blocks{store=\"disk\"} 7\n", "trine_kv_store_bytes{store=\"host\"} 96\n",
        "trine_kv_store_hits_total{store=\"host\"} 5\n",
        "trine_kv_store_misses_total{store=\"host\"} 2\n",
        "trine_kv_store_writes_total{store=\"disk\"} 8\n",
        "trine_kv_store_evictions_total{store=\"disk\"} 1\n",
        "trine_kv_store_damaged_total{store=\"disk\"} 4\n", "trine_kv_store_found_blocks_total 6\n",
        "trine_kv_store_fetch_seconds_total 1.5\n", "trine_kv_prefetch_total 9\n",
        "trine_kv_prefetch_done_total 6\n", "trine_kv_prefetch_cut_total 2\n",
        "trine_kv_prefetch_blocks_total 20\n", "trine_kv_prefetch_used_blocks_total 18\n",
        "trine_kv_prefetch_bytes 512\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ServerLogTest, OneLineForEachEvent) {
  std::string out;
  ServerLog text(LogLevel::kInfo, false, [&](const std::string& line) { out += line; });
  text.Write(LogLevel::kInfo, "request",
             {{"path", "/v1/x\nstatus=200"}, {"status", int64_t{404}}, {"ms", 1.5}});
  text.Write(LogLevel::kDebug, "unheard", {});
  EXPECT_THAT(out, HasSubstr(" info request path=\"/v1/x\\nstatus=200\" status=404 ms=1.500\n"));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  EXPECT_THAT(out, Not(HasSubstr("unheard")));
  out.clear();
  ServerLog json(LogLevel::kDebug, true, [&](const std::string& line) { out += line; });
  json.Write(LogLevel::kError, "request", {{"path", "a\"b"}, {"status", int64_t{500}}});
  const auto object = nlohmann::json::parse(out);
  EXPECT_EQ(object["level"], "error");
  EXPECT_EQ(object["path"], "a\"b");
  EXPECT_EQ(object["status"], 500);
}

}  // namespace
}  // namespace trine::server
