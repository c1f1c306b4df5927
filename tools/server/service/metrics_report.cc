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

// Why the host had nothing to do, or what it did beside passes.
void AppendHostMetrics(const HostTimes& times, std::string* out) {
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  AppendMetric("trine_host_seconds_total", "counter", "What the host did beside passes.",
               {{"what=\"prepare\"", seconds(times.prepare_ns)},
                {"what=\"prepare ahead\"", seconds(times.ahead_ns)},
                {"what=\"deliver\"", seconds(times.deliver_ns)}},
               out);
  AppendMetric("trine_passes_total", "counter", "Passes that were formed.",
               static_cast<double>(times.passes), out);
  AppendMetric("trine_passes_ahead_total", "counter",
               "Of those, such as were made but for their tokens while others were under way.",
               static_cast<double>(times.passes_ahead), out);
  std::vector<LabelledValue> waits = {{"for=\"sequences\"", seconds(times.owners_ns)},
                                      {"for=\"kept blocks\"", seconds(times.blocks_ns)}};
  for (const auto& [device, ns] : times.device_ns) {
    waits.push_back({absl::StrCat("for=", LabelValue(device)), seconds(ns)});
  }
  AppendMetric("trine_host_wait_seconds_total", "counter",
               "Time in which the host waited: for a tier at a pass, for sequences expected back, "
               "for kept blocks.",
               waits, out);
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

void AppendSessionMetrics(const SessionCounters& c, std::string* out) {
  AppendMetric("trine_sessions", "gauge", "Sessions that are open.", static_cast<double>(c.open),
               out);
  AppendMetric("trine_sessions_busy", "gauge", "Of those, with a request under way.",
               static_cast<double>(c.busy), out);
  AppendMetric("trine_sessions_opened_total", "counter", "Sessions so far, forks among them.",
               static_cast<double>(c.opened), out);
  AppendMetric("trine_sessions_expired_total", "counter", "Sessions that were idle for too long.",
               static_cast<double>(c.expired), out);
  AppendMetric("trine_session_forks_total", "counter", "Forks of sessions.",
               static_cast<double>(c.forked), out);
  AppendMetric("trine_session_checkpoints_total", "counter", "Checkpoints of sessions.",
               static_cast<double>(c.checkpoints), out);
}

}  // namespace

void AppendKeeperMetrics(const BlockKeeperCounters& counters, std::string* out) {
  struct Column {
    const char* name;
    const char* type;
    const char* help;
    uint64_t KvStoreCounters::*value;
  };
  constexpr Column kColumns[] = {
      {"trine_kv_store_blocks", "gauge", "KV blocks in a store.", &KvStoreCounters::blocks},
      {"trine_kv_store_bytes", "gauge", "Bytes of them.", &KvStoreCounters::bytes},
      {"trine_kv_store_hits_total", "counter", "Blocks that a store had.", &KvStoreCounters::hits},
      {"trine_kv_store_misses_total", "counter", "Blocks that it had not.",
       &KvStoreCounters::misses},
      {"trine_kv_store_writes_total", "counter", "Blocks that were added.",
       &KvStoreCounters::writes},
      {"trine_kv_store_evictions_total", "counter", "Blocks that made room for others.",
       &KvStoreCounters::evictions},
      {"trine_kv_store_declined_total", "counter", "Blocks that there was no room for.",
       &KvStoreCounters::declined},
      {"trine_kv_store_damaged_total", "counter", "Blocks that held something else.",
       &KvStoreCounters::damaged},
      {"trine_kv_store_errors_total", "counter", "Errors of the disk.", &KvStoreCounters::errors},
  };
  for (const Column& column : kColumns) {
    AppendMetric(column.name, column.type, column.help,
                 {{"store=\"host\"", static_cast<double>(counters.host.*column.value)},
                  {"store=\"disk\"", static_cast<double>(counters.disk.*column.value)}},
                 out);
  }
  AppendMetric("trine_kv_store_found_blocks_total", "counter",
               "Blocks that need not be read again, as a store had them.",
               static_cast<double>(counters.found_blocks), out);
  AppendMetric("trine_kv_store_found_bytes_total", "counter", "Bytes of them.",
               static_cast<double>(counters.found_bytes), out);
  AppendMetric("trine_kv_store_dropped_blocks_total", "counter",
               "Blocks that were not kept, as too many waited.",
               static_cast<double>(counters.dropped_blocks), out);
  AppendMetric("trine_kv_store_fetch_seconds_total", "counter",
               "Time spent with looking for blocks.", static_cast<double>(counters.fetch_ns) / 1e9,
               out);
  const BlockPrefetchCounters& early = counters.prefetch;
  AppendMetric("trine_kv_prefetch_total", "counter",
               "Prompts of requests that waited, looked for on the disk meanwhile.",
               static_cast<double>(early.begun), out);
  AppendMetric("trine_kv_prefetch_done_total", "counter",
               "Of those, the ones that came to their end: all was brought that could be.",
               static_cast<double>(early.done), out);
  AppendMetric("trine_kv_prefetch_cut_total", "counter",
               "Of those, the ones whose turn or end came before all was there.",
               static_cast<double>(early.cut), out);
  AppendMetric("trine_kv_prefetch_blocks_total", "counter",
               "Blocks that were brought from the disk for them.",
               static_cast<double>(early.blocks), out);
  AppendMetric("trine_kv_prefetch_used_blocks_total", "counter",
               "Blocks that were there when they were asked for.", static_cast<double>(early.used),
               out);
  AppendMetric("trine_kv_prefetch_bytes", "gauge", "Bytes of blocks that are there now.",
               static_cast<double>(early.bytes), out);
  AppendMetric("trine_kv_prefetch_seconds_total", "counter", "Time spent with bringing them.",
               static_cast<double>(early.ns) / 1e9, out);
}

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
  AppendSessionMetrics(source.sessions, &out);
  gauge("trine_up", "1: requests are served.",
        StateOf(source) == "ok" || StateOf(source) == "degraded" ? 1 : 0);
  if (source.model == nullptr) return out;
  AppendTierMetrics(source.model->engine(), &out);
  AppendHostMetrics(source.model->engine().host_times(), &out);
  AppendCacheMetrics(source.model->engine(), &out);
  if (const auto kept = source.model->engine().keeper_counters()) AppendKeeperMetrics(*kept, &out);
  return out;
}

}  // namespace trine::server
