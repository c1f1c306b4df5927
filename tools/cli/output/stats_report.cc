#include "tools/cli/output/stats_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace trine {
namespace {

// Returns the number with a comma before each three digits.
std::string WithCommas(uint64_t number) {
  std::string text = absl::StrCat(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

double Milliseconds(uint64_t after, uint64_t before) {
  return static_cast<double>(after - before) / 1e6;
}

}  // namespace

// Splits the host's time from beginning to end. If the CPU is the only device, it computes passes
// on the leader's thread. Otherwise every device has a thread that the host waits for, also the
// CPU.
std::vector<StatsReport::Part> StatsReport::Parts(const Generation& g) const {
  const HostTimes now = engine_.host_times();
  std::vector<Part> parts;
  const std::vector<SegmentCounters> segments = engine_.segments();
  const bool by_itself = segments.size() == 1 && now.device_ns.empty();
  if (by_itself) {
    parts.push_back({absl::StrCat("passes on ", segments[0].device_name),
                     static_cast<double>(segments[0].stage.busy_ns) / 1e6});
  }
  for (const auto& [device, ns] : now.device_ns) {
    const auto was = before_.device_ns.find(device);
    parts.push_back({absl::StrCat("waited for ", device, ", which was at a pass"),
                     Milliseconds(ns, was == before_.device_ns.end() ? 0 : was->second)});
  }
  parts.push_back({"choosing tokens and telling of them", g.sample_ms});
  parts.push_back({"making passes", Milliseconds(now.prepare_ns, before_.prepare_ns)});
  parts.push_back({"making passes ahead, while devices were at others",
                   Milliseconds(now.ahead_ns, before_.ahead_ns)});
  parts.push_back({"handing over their results", Milliseconds(now.deliver_ns, before_.deliver_ns)});
  parts.push_back({"waited for kept blocks", Milliseconds(now.blocks_ns, before_.blocks_ns)});
  parts.push_back({"waited for other sequences", Milliseconds(now.owners_ns, before_.owners_ns)});
  double known = 0;
  for (const Part& part : parts) known += part.ms;
  parts.push_back({"not explained", std::max(0.0, g.prompt_ms + g.generate_ms - known)});
  return parts;
}

nlohmann::ordered_json StatsReport::Json(const Generation& g) const {
  nlohmann::ordered_json json = {{"total_ms", g.prompt_ms + g.generate_ms}};
  json["team"] = {{"name", engine_.team_name()}, {"threads", engine_.threads()}};
  if (g.reranked_tokens > 0) {
    json["rerank"] = {{"tokens", g.reranked_tokens},
                      {"candidates", g.rerank_candidates},
                      {"ms", g.rerank_ms},
                      {"ms_per_token", g.rerank_ms / static_cast<double>(g.reranked_tokens)}};
  }
  for (const Part& part : Parts(g)) {
    json["host"].push_back({{"what", part.what}, {"ms", part.ms}});
  }
  if (auto experts = ExpertsJson(); !experts.is_null()) json["experts"] = std::move(experts);
  return json;
}

std::string StatsReport::Text(const Generation& g) const {
  const double total = g.prompt_ms + g.generate_ms;
  std::string text = absl::StrFormat("host: %.1f ms, of which\n", total);
  for (const Part& part : Parts(g)) {
    if (part.ms < 0.0005) continue;
    absl::StrAppendFormat(&text, "  %10.2f ms %5.1f %%  %s\n", part.ms, 100 * part.ms / total,
                          part.what);
  }
  absl::StrAppendFormat(&text, "threads on the CPU: %d, %s\n", engine_.threads(),
                        engine_.team_name() == "openmp" ? "of OpenMP" : "of Trine's own");
  if (g.reranked_tokens > 0) {
    const auto tokens = static_cast<double>(g.reranked_tokens);
    absl::StrAppendFormat(
        &text,
        "reranked: %d tokens, with %.1f candidates each; reading and weighing these took "
        "%.1f ms, %.2f ms for a token\n",
        g.reranked_tokens, static_cast<double>(g.rerank_candidates) / tokens, g.rerank_ms,
        g.rerank_ms / tokens);
  }
  for (const SegmentCounters& s : engine_.segments()) {
    absl::StrAppendFormat(
        &text,
        "%s, layers %d to %d: %d passes, %d tokens; at work %.1f ms (%.0f %%), waited for work "
        "%.1f ms, for the next one %.1f ms\n",
        s.device_name, s.begin, s.end - 1, s.stage.jobs, s.tokens,
        static_cast<double>(s.stage.busy_ns) / 1e6, 100 * s.busy_ratio(),
        static_cast<double>(s.stage.waiting_ns) / 1e6,
        static_cast<double>(s.stage.blocked_ns) / 1e6);
    for (const DeviceUse& use : s.devices) {
      absl::StrAppendFormat(&text, "  of these on %s: %d passes, %.1f ms\n", use.device_name,
                            use.passes, static_cast<double>(use.busy_ns) / 1e6);
    }
  }
  return text + ExpertsText();
}

std::string StatsReport::ExpertsText() const {
  std::string text;
  const std::shared_ptr<const Model> model = engine_.model();
  for (size_t stage = 0; stage < model->stage_count(); ++stage) {
    const DividedExperts* const experts = model->experts(stage);
    if (experts == nullptr || experts->all_hits() == 0) continue;
    const auto all = static_cast<double>(experts->all_hits());
    if (experts->in_place()) {
      absl::StrAppendFormat(
          &text, "  experts that %s computed without copies: %.1f %% of what tokens chose\n",
          model->places()[stage].device_name,
          100 * static_cast<double>(experts->home_hits()) / all);
      continue;
    }
    absl::StrAppendFormat(
        &text, "  experts in slots of %s: %.1f %% of what tokens chose; %d moved there, %.0f MiB\n",
        model->places()[stage].device_name, 100 * static_cast<double>(experts->home_hits()) / all,
        experts->moved_experts(), static_cast<double>(experts->moved_bytes()) / (1 << 20));
  }
  const ExpertCounts counts = engine_.counted_experts();
  if (counts.choices() == 0) return text;
  absl::StrAppendFormat(&text, "experts: the most chosen tenth got %.0f %% of %s choices\n",
                        100 * TopTenthShare(counts), WithCommas(counts.choices()));
  return text;
}

nlohmann::ordered_json StatsReport::ExpertsJson() const {
  const ExpertCounts counts = engine_.counted_experts();
  if (counts.choices() == 0) return nullptr;
  nlohmann::ordered_json json = {{"choices", counts.choices()},
                                 {"top_tenth_share", TopTenthShare(counts)}};
  const std::shared_ptr<const Model> model = engine_.model();
  for (size_t stage = 0; stage < model->stage_count(); ++stage) {
    const DividedExperts* const experts = model->experts(stage);
    if (experts == nullptr) continue;
    json["segments"].push_back({{"device", model->places()[stage].device_name},
                                {"choices", experts->all_hits()},
                                {"in_slots", experts->home_hits()},
                                {"in_place", experts->in_place()},
                                {"moved", experts->moved_experts()},
                                {"moved_bytes", experts->moved_bytes()}});
  }
  return json;
}

}  // namespace trine
