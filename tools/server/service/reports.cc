#include "tools/server/service/reports.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

using Clock = std::chrono::steady_clock;

// The length of the timeline on the page.
constexpr std::chrono::seconds kTimeline(3);

double Milliseconds(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

double SecondsSince(Clock::time_point time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

int64_t Microseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

// A segment of the model as it is placed at present.
struct Tier {
  PlacedSegment placed;
  SegmentCounters counters;
  std::string state;  // "degraded" where it may do the work of a lost device, else "ok"
  std::string reason;
};

std::vector<Tier> TiersOf(const Engine& engine) {
  std::vector<Tier> tiers;
  const std::vector<SegmentCounters> counters = engine.segments();
  const std::string lost =
      absl::StrJoin(engine.lost_devices(), ", ",
                    [](std::string* out, const LostDevice& device) { out->append(device.name); });
  const PlacedModel placed = engine.placed();
  for (size_t i = 0; i < placed.segments.size(); ++i) {
    tiers.push_back({placed.segments[i], i < counters.size() ? counters[i] : SegmentCounters(),
                     lost.empty() ? "ok" : "degraded",
                     lost.empty() ? "" : absl::StrCat("does without ", lost)});
  }
  return tiers;
}

Json TiersJson(const Engine& engine) {
  Json json = Json::array();
  for (const Tier& tier : TiersOf(engine)) {
    const SegmentCounters& c = tier.counters;
    const PlacedSegment& p = tier.placed;
    json.push_back({{"device", p.device},
                    {"name", p.chip},
                    {"state", tier.state},
                    {"reason", tier.reason},
                    {"first_layer", p.span.begin},
                    {"end_layer", p.span.end},
                    {"embedding", p.span.embedding},
                    {"head", p.span.head},
                    {"weights_bytes", p.weight_bytes},
                    {"kv_bytes", p.kv_bytes},
                    {"scratch_bytes", p.scratch_bytes},
                    {"busy_ms", Milliseconds(c.stage.busy_ns)},
                    {"blocked_ms", Milliseconds(c.stage.blocked_ns)},
                    {"waiting_ms", Milliseconds(c.stage.waiting_ns)},
                    {"passes", c.stage.jobs},
                    {"tokens", c.tokens},
                    {"bytes_in", c.bytes_in},
                    {"bytes_out", c.bytes_out}});
  }
  for (const LostDevice& lost : engine.lost_devices()) {
    json.push_back({{"device", lost.name},
                    {"name", ""},
                    {"state", "lost"},
                    {"reason", lost.reason},
                    {"first_layer", 0},
                    {"end_layer", 0}});
  }
  return json;
}

Json FaultsJson(const Engine& engine) {
  Json faults = Json::array();
  for (const LostDevice& lost : engine.lost_devices()) {
    faults.push_back({{"device", lost.name},
                      {"reason", lost.reason},
                      {"seconds_ago", SecondsSince(lost.since)}});
  }
  return faults;
}

Json TimelineJson(const Engine& engine) {
  const Clock::time_point now = Clock::now();
  Json events = Json::array();
  if (engine.trace() != nullptr) {
    const std::vector<SegmentCounters> segments = engine.segments();
    for (const Trace::Shown& e : engine.trace()->trace()->Since(now - kTimeline)) {
      const std::string_view name = e.name;
      if (name != "pass" && name != "failed pass") continue;
      for (size_t i = 0; i < segments.size(); ++i) {
        if (segments[i].track != e.track) continue;
        events.push_back({{"tier", i},
                          {"kind", "pass"},
                          {"begin_us", Microseconds(e.begin)},
                          {"end_us", Microseconds(e.end)},
                          {"tokens", e.arg("tokens")},
                          {"sequences", e.arg("sequences")}});
      }
    }
  }
  return {{"now_us", Microseconds(now)}, {"events", events}};
}

Json RequestsJson(const ReportSource& source) {
  const Metrics::Totals totals = source.metrics->totals();
  return {{"running", source.queue.running}, {"queued", source.queue.waiting},
          {"slots", source.queue.places},    {"slots_taken", source.queue.taken},
          {"completed", totals.completed},   {"failed", totals.failed},
          {"cancelled", totals.cancelled}};
}

}  // namespace

std::string StateOf(const ReportSource& source) {
  if (source.state == ServerState::kStopping) return "stopping";
  if (source.model == nullptr) return "loading";
  const Engine& engine = source.model->engine();
  if (!engine.ended().ok()) return "lost";
  if (!engine.lost_devices().empty() || engine.placed().segments.empty()) return "degraded";
  return "ok";
}

std::string HealthJson(const ReportSource& source, int* http_status) {
  const std::string state = StateOf(source);
  *http_status = state == "ok" || state == "degraded" ? 200 : 503;
  Json json = {{"status", state}, {"uptime_s", SecondsSince(source.started)}};
  if (source.model == nullptr) {
    json["load_progress"] = source.load_progress;
    return Dump(json);
  }
  const Engine& engine = source.model->engine();
  json["model"] = source.model->card().id;
  if (const absl::Status s = engine.ended(); !s.ok()) json["reason"] = std::string(s.message());
  json["tiers"] = Json::array();
  for (const Tier& tier : TiersOf(engine)) {
    json["tiers"].push_back({{"device", tier.placed.device},
                             {"state", tier.state},
                             {"reason", tier.reason},
                             {"layers", tier.placed.span.end - tier.placed.span.begin}});
  }
  for (const LostDevice& lost : engine.lost_devices()) {
    json["tiers"].push_back({{"device", lost.name},
                             {"state", "lost"},
                             {"reason", lost.reason},
                             {"seconds_ago", SecondsSince(lost.since)}});
  }
  if (json["tiers"].empty()) json["reason"] = "the model is being placed anew";
  json["requests"] = RequestsJson(source);
  return Dump(json);
}

std::string StatusJson(const ReportSource& source) {
  const Metrics::Totals totals = source.metrics->totals();
  Json json = {{"state", StateOf(source)},
               {"model", source.model == nullptr ? "" : source.model->card().id},
               {"uptime_s", SecondsSince(source.started)},
               {"load_progress", source.load_progress},
               {"tiers", Json::array()},
               {"requests", RequestsJson(source)},
               {"tokens",
                {{"prompt", totals.prompt_tokens},
                 {"generated", totals.generated_tokens},
                 {"cached", totals.cached_tokens}}},
               {"kv", {{"blocks", 0}, {"free", 0}, {"shared", 0}}},
               {"faults", Json::array()},
               {"timeline", {{"now_us", Microseconds(Clock::now())}, {"events", Json::array()}}}};
  if (source.model == nullptr) return Dump(json);
  const Engine& engine = source.model->engine();
  const PrefixCacheCounters cache = engine.prefix_counters();
  json["tiers"] = TiersJson(engine);
  json["kv"] = {
      {"blocks", cache.total_blocks}, {"free", cache.free_blocks}, {"shared", cache.held_blocks}};
  json["faults"] = FaultsJson(engine);
  json["timeline"] = TimelineJson(engine);
  return Dump(json);
}

std::string PlanJson(const ServedModel& model) {
  const Engine& engine = model.engine();
  Json json = {{"now", TiersJson(engine)}};
  if (engine.plan()) {
    json["planned"] = Json::parse(FormatPlanJson(PlanReportOf(model)), nullptr,
                                  /*allow_exceptions=*/false);
  }
  return Dump(json);
}

PlanReport PlanReportOf(const ServedModel& model) {
  PlanReport report;
  report.model = model.card().id;
  report.context = model.engine().context();
  report.report = *model.engine().plan();
  return report;
}

}  // namespace trine::server
