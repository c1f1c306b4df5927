// GET /metrics: counters, and gauges of the present state.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/server/service/reports.h"

namespace trine::server {
namespace {

double Real(auto number) { return static_cast<double>(number); }

// Returns a function that appends a metric.
auto Adder(std::string* out) {
  return [out](const char* name, const char* help, auto value) {
    AppendMetric(name, help, Real(value), out);
  };
}

void AppendTierMetrics(const Engine& engine, std::string* out) {
  struct Column {
    const char* name;
    const char* help;
    double (*value)(const SegmentCounters&);
  };
  const Column columns[] = {
      {"trine_tier_busy_seconds_total", "Time in which a tier computed.",
       [](const SegmentCounters& c) { return Real(c.stage.busy_ns) / 1e9; }},
      {"trine_tier_bubble_seconds_total",
       "Time in which a tier had nothing to do while others had.",
       [](const SegmentCounters& c) { return Real(c.stage.waiting_ns) / 1e9; }},
      {"trine_tier_blocked_seconds_total",
       "Time in which a tier could not hand on what it had done.",
       [](const SegmentCounters& c) { return Real(c.stage.blocked_ns) / 1e9; }},
      {"trine_tier_busy_ratio", "Of the time in which there was work, the share a tier had.",
       [](const SegmentCounters& c) { return c.busy_ratio(); }},
      {"trine_tier_passes_total", "Passes through a tier.",
       [](const SegmentCounters& c) { return Real(c.stage.jobs); }},
      {"trine_tier_tokens_total", "Tokens through a tier.",
       [](const SegmentCounters& c) { return Real(c.tokens); }},
      {"trine_tier_bytes_in_total", "Bytes copied to a tier's device.",
       [](const SegmentCounters& c) { return Real(c.bytes_in); }},
      {"trine_tier_bytes_out_total", "Bytes copied from a tier's device.",
       [](const SegmentCounters& c) { return Real(c.bytes_out); }},
      {"trine_tier_layers", "Layers of a tier.",
       [](const SegmentCounters& c) { return Real(c.end - c.begin); }},
  };
  const std::vector<SegmentCounters> segments = engine.segments();
  for (const Column& column : columns) {
    std::vector<LabelledValue> values;
    for (size_t i = 0; i < segments.size(); ++i) {
      values.push_back(
          {absl::StrCat("tier=", LabelValue(segments[i].device_name), ",segment=\"", i, "\""),
           column.value(segments[i])});
    }
    AppendMetric(column.name, column.help, values, out);
  }
  const auto add = Adder(out);
  add("trine_devices_lost", "Devices that are lost now.", engine.lost_devices().size());
  add("trine_faults_total", "Devices that were lost, each time.", engine.losses());
  add("trine_placements_total", "Times the model was placed on devices.", engine.placements());
}

// Appends what the host did beside passes, and why it had nothing to do.
void AppendHostMetrics(const HostTimes& times, std::string* out) {
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  AppendMetric("trine_host_seconds_total", "What the host did beside passes.",
               {{"what=\"prepare\"", seconds(times.prepare_ns)},
                {"what=\"prepare ahead\"", seconds(times.ahead_ns)},
                {"what=\"deliver\"", seconds(times.deliver_ns)}},
               out);
  const auto add = Adder(out);
  add("trine_passes_total", "Passes that were formed.", times.passes);
  add("trine_passes_ahead_total",
      "Of those, such as were made but for their tokens while others were under way.",
      times.passes_ahead);
  std::vector<LabelledValue> waits = {{"for=\"sequences\"", seconds(times.owners_ns)},
                                      {"for=\"kept blocks\"", seconds(times.blocks_ns)}};
  for (const auto& [device, ns] : times.device_ns) {
    waits.push_back({absl::StrCat("for=", LabelValue(device)), seconds(ns)});
  }
  AppendMetric("trine_host_wait_seconds_total",
               "Time in which the host waited: for a tier at a pass, for sequences expected back, "
               "for kept blocks.",
               waits, out);
}

void AppendCacheMetrics(const PrefixCacheCounters& c, std::string* out) {
  const auto add = Adder(out);
  add("trine_kv_blocks", "Blocks of the KV cache.", c.total_blocks);
  add("trine_kv_blocks_free", "Of those, free ones.", c.free_blocks);
  add("trine_prefix_blocks", "Blocks that are kept for prompts to come.", c.held_blocks);
  add("trine_prefix_lookups_total", "Prompts that were looked for there.", c.lookups);
  add("trine_prefix_hit_tokens_total", "Tokens that were found there.", c.hit_tokens);
  add("trine_prefix_evictions_total", "Blocks that made room for others.", c.evictions);
}

// Appends the counts of a model with experts. How often each one was chosen is in the file of
// --expert-stats.
void AppendExpertMetrics(const Engine& engine, std::string* out) {
  if (engine.config().experts.count == 0) return;
  const ExpertHits& hits = engine.expert_hits();
  const auto add = Adder(out);
  add("trine_expert_choices_total", "Choices of experts that were counted.", hits.choices());
  add("trine_expert_choices_in_slots_total", "Of those, choices of experts that a GPU computed.",
      hits.in_slots());
  add("trine_experts_moved_total", "Experts that were moved to a slot.", hits.moved_experts());
  add("trine_experts_moved_bytes_total", "Bytes of them.", hits.moved_bytes());
}

void AppendSessionMetrics(const SessionCounters& c, std::string* out) {
  const auto add = Adder(out);
  add("trine_sessions", "Sessions that are open.", c.open);
  add("trine_sessions_busy", "Of those, with a request under way.", c.busy);
  add("trine_sessions_opened_total", "Sessions so far, forks among them.", c.opened);
  add("trine_sessions_expired_total", "Sessions that were idle for too long.", c.expired);
  add("trine_session_forks_total", "Forks of sessions.", c.forked);
  add("trine_session_checkpoints_total", "Checkpoints of sessions.", c.checkpoints);
}

}  // namespace

void AppendKeeperMetrics(const BlockKeeperCounters& counters, std::string* out) {
  struct Column {
    const char* name;
    const char* help;
    uint64_t KvStoreCounters::*value;
  };
  constexpr Column kColumns[] = {
      {"trine_kv_store_blocks", "KV blocks in a store.", &KvStoreCounters::blocks},
      {"trine_kv_store_bytes", "Bytes of them.", &KvStoreCounters::bytes},
      {"trine_kv_store_hits_total", "Blocks that a store had.", &KvStoreCounters::hits},
      {"trine_kv_store_misses_total", "Blocks that it had not.", &KvStoreCounters::misses},
      {"trine_kv_store_writes_total", "Blocks that were added.", &KvStoreCounters::writes},
      {"trine_kv_store_evictions_total", "Blocks that made room for others.",
       &KvStoreCounters::evictions},
      {"trine_kv_store_declined_total", "Blocks that there was no room for.",
       &KvStoreCounters::declined},
      {"trine_kv_store_damaged_total", "Blocks that held something else.",
       &KvStoreCounters::damaged},
      {"trine_kv_store_errors_total", "Errors of the disk.", &KvStoreCounters::errors},
  };
  for (const Column& column : kColumns) {
    AppendMetric(column.name, column.help,
                 {{"store=\"host\"", Real(counters.host.*column.value)},
                  {"store=\"disk\"", Real(counters.disk.*column.value)}},
                 out);
  }
  const BlockPrefetchCounters& early = counters.prefetch;
  const auto add = Adder(out);
  add("trine_kv_store_found_blocks_total",
      "Blocks that need not be read again, as a store had them.", counters.found_blocks);
  add("trine_kv_store_found_bytes_total", "Bytes of them.", counters.found_bytes);
  add("trine_kv_store_dropped_blocks_total", "Blocks that were not kept, as too many waited.",
      counters.dropped_blocks);
  add("trine_kv_store_fetch_seconds_total", "Time spent with looking for blocks.",
      Real(counters.fetch_ns) / 1e9);
  add("trine_kv_prefetch_total",
      "Prompts of requests that waited, looked for on the disk meanwhile.", early.begun);
  add("trine_kv_prefetch_done_total",
      "Of those, the ones that came to their end: all was brought that could be.", early.done);
  add("trine_kv_prefetch_cut_total",
      "Of those, the ones whose turn or end came before all was there.", early.cut);
  add("trine_kv_prefetch_blocks_total", "Blocks that were brought from the disk for them.",
      early.blocks);
  add("trine_kv_prefetch_used_blocks_total", "Blocks that were there when they were asked for.",
      early.used);
  add("trine_kv_prefetch_bytes", "Bytes of blocks that are there now.", early.bytes);
  add("trine_kv_prefetch_seconds_total", "Time spent with bringing them.", Real(early.ns) / 1e9);
}

std::string MetricsText(const ReportSource& source) {
  std::string out = source.metrics->Text();
  const auto add = Adder(&out);
  add("trine_requests_running", "Requests that are being answered.", source.queue.running);
  add("trine_requests_waiting", "Requests that wait for a place.", source.queue.waiting);
  add("trine_places", "Sequences that can be generated at once.", source.queue.places);
  add("trine_places_taken", "Of those, taken ones.", source.queue.taken);
  add("trine_connections", "Connections that are open.", source.http.open);
  add("trine_connections_total", "Connections so far.", source.http.accepted);
  add("trine_connections_refused_total", "Connections that were one too many.",
      source.http.refused);
  add("trine_http_timeouts_total", "Clients that sent or read too slowly.", source.http.timeouts);
  AppendSessionMetrics(source.sessions, &out);
  const bool up = StateOf(source) == "ok" || StateOf(source) == "degraded";
  add("trine_up", "1: requests are served.", up ? 1 : 0);
  if (source.model == nullptr) return out;
  const Engine& engine = source.model->engine();
  AppendTierMetrics(engine, &out);
  AppendHostMetrics(engine.host_times(), &out);
  AppendCacheMetrics(engine.prefix_counters(), &out);
  AppendExpertMetrics(engine, &out);
  if (const auto kept = engine.keeper_counters()) AppendKeeperMetrics(*kept, &out);
  return out;
}

}  // namespace trine::server
