// GET /metrics: what was counted, and how things stand.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/server/service/reports.h"

namespace trine::server {
namespace {

void AppendTierMetrics(const Engine& engine, std::string* out) {
  struct Column {
    const char* name;
    const char* type;
    const char* help;
    double (*value)(const SegmentCounters&);
  };
  const Column columns[] = {
      {"trine_tier_busy_seconds_total", "counter", "Time in which a tier computed.",
       [](const SegmentCounters& c) { return static_cast<double>(c.stage.busy_ns) / 1e9; }},
      {"trine_tier_bubble_seconds_total", "counter",
       "Time in which a tier had nothing to do while others had.",
       [](const SegmentCounters& c) { return static_cast<double>(c.stage.waiting_ns) / 1e9; }},
      {"trine_tier_blocked_seconds_total", "counter",
       "Time in which a tier could not hand on what it had done.",
       [](const SegmentCounters& c) { return static_cast<double>(c.stage.blocked_ns) / 1e9; }},
      {"trine_tier_busy_ratio", "gauge",
       "Of the time in which there was work, the share a tier had.",
       [](const SegmentCounters& c) { return c.busy_ratio(); }},
      {"trine_tier_passes_total", "counter", "Passes through a tier.",
       [](const SegmentCounters& c) { return static_cast<double>(c.stage.jobs); }},
      {"trine_tier_tokens_total", "counter", "Tokens through a tier.",
       [](const SegmentCounters& c) { return static_cast<double>(c.tokens); }},
      {"trine_tier_bytes_in_total", "counter", "Bytes copied to a tier's device.",
       [](const SegmentCounters& c) { return static_cast<double>(c.bytes_in); }},
      {"trine_tier_bytes_out_total", "counter", "Bytes copied from a tier's device.",
       [](const SegmentCounters& c) { return static_cast<double>(c.bytes_out); }},
      {"trine_tier_layers", "gauge", "Layers of a tier.",
       [](const SegmentCounters& c) { return static_cast<double>(c.end - c.begin); }},
  };
  const std::vector<SegmentCounters> segments = engine.segments();
  for (const Column& column : columns) {
    std::vector<LabelledValue> values;
    for (size_t i = 0; i < segments.size(); ++i) {
      values.push_back(
          {absl::StrCat("tier=", LabelValue(segments[i].device_name), ",segment=\"", i, "\""),
           column.value(segments[i])});
    }
    AppendMetric(column.name, column.type, column.help, values, out);
  }
  AppendMetric("trine_devices_lost", "gauge", "Devices that are lost now.",
               static_cast<double>(engine.lost_devices().size()), out);
  AppendMetric("trine_faults_total", "counter", "Devices that were lost, each time.",
               static_cast<double>(engine.losses()), out);
  AppendMetric("trine_placements_total", "counter", "Times the model was placed on devices.",
               static_cast<double>(engine.placements()), out);
}

void AppendCacheMetrics(const Engine& engine, std::string* out) {
  const PrefixCacheCounters c = engine.prefix_counters();
  AppendMetric("trine_kv_blocks", "gauge", "Blocks of the KV cache.",
               static_cast<double>(c.total_blocks), out);
  AppendMetric("trine_kv_blocks_free", "gauge", "Of those, free ones.",
               static_cast<double>(c.free_blocks), out);
  AppendMetric("trine_prefix_blocks", "gauge", "Blocks that are kept for prompts to come.",
               static_cast<double>(c.held_blocks), out);
  AppendMetric("trine_prefix_lookups_total", "counter", "Prompts that were looked for there.",
               static_cast<double>(c.lookups), out);
  AppendMetric("trine_prefix_hit_tokens_total", "counter", "Tokens that were found there.",
               static_cast<double>(c.hit_tokens), out);
  AppendMetric("trine_prefix_evictions_total", "counter", "Blocks that made room for others.",
               static_cast<double>(c.evictions), out);
}

}  // namespace

std::string MetricsText(const ReportSource& source) {
  std::string out = source.metrics->Text();
  const auto gauge = [&](const char* name, const char* help, double value) {
    AppendMetric(name, "gauge", help, value, &out);
  };
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    AppendMetric(name, "counter", help, static_cast<double>(value), &out);
  };
  gauge("trine_requests_running", "Requests that are being answered.",
        static_cast<double>(source.queue.running));
  gauge("trine_requests_waiting", "Requests that wait for a place.",
        static_cast<double>(source.queue.waiting));
  gauge("trine_places", "Sequences that can be generated at once.",
        static_cast<double>(source.queue.places));
  gauge("trine_places_taken", "Of those, taken ones.", static_cast<double>(source.queue.taken));
  gauge("trine_connections", "Connections that are open.", static_cast<double>(source.http.open));
  counter("trine_connections_total", "Connections so far.", source.http.accepted);
  counter("trine_connections_refused_total", "Connections that were one too many.",
          source.http.refused);
  counter("trine_http_timeouts_total", "Clients that sent or read too slowly.",
          source.http.timeouts);
  gauge("trine_up", "1: requests are served.",
        StateOf(source) == "ok" || StateOf(source) == "degraded" ? 1 : 0);
  if (source.model == nullptr) return out;
  AppendTierMetrics(source.model->engine(), &out);
  AppendCacheMetrics(source.model->engine(), &out);
  return out;
}

}  // namespace trine::server
