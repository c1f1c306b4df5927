#include <utility>

#include "nlohmann/json.hpp"
#include "tools/report/plan_report.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

double Milliseconds(double ns) { return ns / 1e6; }

Json LimitJson(uint64_t bytes) { return bytes == kNoLimit ? Json(nullptr) : Json(bytes); }

Json UnitsJson(const PlanReport& r, const PlacedRange& range) {
  const PlanProblem& problem = r.report.problem.plan;
  const PlanDevice& device = problem.devices[range.device];
  Json units = Json::array();
  const int64_t begin = range.embedding ? 0 : range.begin + 1;
  const int64_t end = range.head ? problem.layers + 2 : range.end + 1;
  for (int64_t unit = begin; unit < end; ++unit) {
    const auto u = static_cast<size_t>(unit);
    Json one;
    if (unit == 0) {
      one["part"] = "embedding";
    } else if (unit == problem.layers + 1) {
      one["part"] = "head";
    } else {
      one["part"] = "layer";
      one["layer"] = unit - 1;
    }
    one["weight_bytes"] = device.weight_bytes[u];
    one["kv_bytes"] = device.kv_bytes.empty() ? 0 : device.kv_bytes[u];
    one["decode_ms"] = Milliseconds(static_cast<double>(device.decode.unit_ns[u]));
    one["prefill_ms"] = Milliseconds(static_cast<double>(device.prefill.unit_ns[u]));
    units.push_back(std::move(one));
  }
  return units;
}

Json SegmentJson(const PlanReport& r, size_t i) {
  const PlacementSegment& s = r.report.placement.segments[i];
  Json json = {{"device", r.report.problem.plan.devices[s.range.device].name},
               {"first_layer", s.range.begin},
               {"end_layer", s.range.end},
               {"embedding", s.range.embedding},
               {"head", s.range.head},
               {"weight_bytes", s.weight_bytes},
               {"kv_bytes", s.kv_bytes},
               {"decode_ms", Milliseconds(static_cast<double>(s.decode_ns))},
               {"prefill_ms", Milliseconds(static_cast<double>(s.prefill_ns))},
               {"decode_transfer_ms", Milliseconds(static_cast<double>(s.decode_transfer_ns))},
               {"prefill_transfer_ms", Milliseconds(static_cast<double>(s.prefill_transfer_ns))},
               {"prefill_helper", r.report.problem.helpers[s.range.device]},
               {"bound", s.bound},
               {"change", s.change}};
  if (r.decode && i < r.decode->segment_ns.size()) {
    json["measured_decode_ms"] = Milliseconds(r.decode->segment_ns[i]);
  }
  if (r.prefill && i < r.prefill->segment_ns.size()) {
    json["measured_prefill_ms"] = Milliseconds(r.prefill->segment_ns[i]);
  }
  json["parts"] = UnitsJson(r, s.range);
  json["elsewhere"] = Json::array();
  const PlanProblem& problem = r.report.problem.plan;
  for (size_t j = 0; j < s.elsewhere.size(); ++j) {
    const SegmentShare& share = s.elsewhere[j];
    json["elsewhere"].push_back(
        {{"what", problem.devices[s.range.device].elsewhere[j].what},
         {"device", problem.devices[share.device].name},
         {"weight_bytes", share.bytes},
         {"decode_ms", Milliseconds(static_cast<double>(share.decode_ns))},
         {"prefill_ms", Milliseconds(static_cast<double>(share.prefill_ns))}});
    if (const auto slots = SlotsOfPart(r.report, i, j)) {
      Json& elsewhere = json["elsewhere"].back();
      elsewhere["experts"] = slots->experts;
      elsewhere["slots"] = slots->slots;
      elsewhere["slot_share"] = slots->share;
      elsewhere["in_place"] = slots->in_place;
    }
  }
  return json;
}

const char* StrategyName(Strategy strategy) {
  return strategy == Strategy::kAuto     ? "auto"
         : strategy == Strategy::kMemory ? "memory"
                                         : "balanced";
}

}  // namespace

std::string FormatPlanJson(const PlanReport& r) {
  const Placement& placement = r.report.placement;
  const PlanProblem& problem = r.report.problem.plan;
  Json json = {
      {"model", r.model},
      {"layers", problem.layers},
      {"context", r.context},
      {"split", r.report.rows ? "row" : "layer"},
      {"strategy", r.report.searched ? StrategyName(r.report.options.strategy) : "asked for"},
      {"optimize", r.report.options.optimize == Optimize::kLatency ? "latency" : "throughput"},
      {"prompt_tokens", r.report.options.request.prompt_tokens},
      {"written_tokens", r.report.options.request.written_tokens},
      {"prefill_tokens", problem.prefill_tokens},
      {"decode_ms", Milliseconds(static_cast<double>(placement.decode_ns))},
      {"prefill_ms", Milliseconds(static_cast<double>(placement.prefill_ns))},
      {"request_ms", Milliseconds(static_cast<double>(placement.request_ns))},
      {"cycle_ms", Milliseconds(static_cast<double>(placement.cycle_ns))},
      {"exact", placement.exact}};
  if (r.decode) json["measured_decode_ms"] = Milliseconds(r.decode->all_ns);
  if (r.prefill) json["measured_prefill_ms"] = Milliseconds(r.prefill->all_ns);
  json["segments"] = Json::array();
  for (size_t i = 0; i < placement.segments.size(); ++i) {
    json["segments"].push_back(SegmentJson(r, i));
  }
  json["moved"] = Json::array();
  for (const MovedWeights& moved : r.report.moved) {
    json["moved"].push_back({{"segment", moved.range},
                             {"device", moved.device},
                             {"whole_matrices", moved.whole},
                             {"shared_matrices", moved.parts},
                             {"weight_bytes", moved.bytes}});
  }
  json["devices"] = Json::array();
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    const PlanDevice& device = problem.devices[i];
    if (device.mode_of.has_value()) continue;
    const MemoryUse& use = placement.devices[i];
    json["devices"].push_back({{"device", device.name},
                               {"pool", problem.pools[device.pool].name},
                               {"used_bytes", use.used_bytes},
                               {"available_bytes", LimitJson(use.available_bytes)},
                               {"scratch_bytes", use.used_bytes == 0 ? 0 : device.fixed_bytes},
                               {"calibrated", static_cast<bool>(r.report.problem.measured[i])},
                               {"guessed", r.report.problem.guessed[i]},
                               {"calibrated_while_busy", r.report.problem.busy[i]}});
  }
  json["pools"] = Json::array();
  for (const MemoryUse& use : placement.pools) {
    json["pools"].push_back({{"pool", use.name},
                             {"used_bytes", use.used_bytes},
                             {"available_bytes", LimitJson(use.available_bytes)}});
  }
  json["left_out"] = Json::array();
  for (const LeftOutDevice& out : placement.left_out) {
    json["left_out"].push_back(
        {{"device", problem.devices[out.device].name}, {"reason", out.reason}});
  }
  for (const InventoryDevice& device : r.too_fast) {
    json["left_out"].push_back({{"device", device.backend_name}, {"reason", device.reason}});
  }
  json["violations"] = placement.violations;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trine
