#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/cli/plan_report.h"
#include "tools/cli/text_table.h"

namespace trine {
namespace {

std::string Limit(uint64_t bytes) { return bytes == kNoLimit ? "no limit" : FormatBytes(bytes); }

std::string MeasuredText(const std::optional<MeasuredPass>& pass, size_t segment) {
  if (!pass || segment >= pass->segment_ns.size()) return "-";
  return TimeText(static_cast<int64_t>(pass->segment_ns[segment]));
}

std::string Goal(const PlanReport& r) {
  if (!r.report.searched) return "as it was asked for";
  switch (r.report.options.strategy) {
    case Strategy::kMemory:
      return "in proportion to memory";
    case Strategy::kBalanced:
      return "for stages of equal time";
    case Strategy::kAuto:
      break;
  }
  return r.report.options.optimize == Optimize::kLatency ? "for the least time of a request"
                                                         : "for the most requests in a second";
}

std::string SegmentTable(const PlanReport& r) {
  const Placement& placement = r.report.placement;
  const PlanProblem& problem = r.report.problem.plan;
  std::vector<std::string> header = {
      "segment",  "device", "weights",
      "KV cache", "decode", absl::StrCat("prefill of ", problem.prefill_tokens)};
  if (r.decode) header.insert(header.begin() + 5, "measured");
  if (r.prefill) header.push_back("measured");
  TextTable table(header);
  for (size_t i = 0; i < placement.segments.size(); ++i) {
    const PlacementSegment& s = placement.segments[i];
    std::vector<std::string> row = {
        DescribeSegment(s.range),    problem.devices[s.range.device].name,
        FormatBytes(s.weight_bytes), FormatBytes(s.kv_bytes),
        TimeText(s.decode_ns),       TimeText(s.prefill_ns)};
    if (r.decode) row.insert(row.begin() + 5, MeasuredText(r.decode, i));
    if (r.prefill) row.push_back(MeasuredText(r.prefill, i));
    table.Add(std::move(row));
  }
  return table.Format();
}

std::string UnitName(int unit, int layers) {
  if (unit == 0) return "embedding";
  return unit == layers + 1 ? "head" : absl::StrCat("layer ", unit - 1);
}

std::string LayerTable(const PlanReport& r) {
  const PlanProblem& problem = r.report.problem.plan;
  TextTable table({"part", "device", "weights", "KV cache", "decode",
                   absl::StrCat("prefill of ", problem.prefill_tokens)});
  for (const PlacementSegment& s : r.report.placement.segments) {
    const PlanDevice& device = problem.devices[s.range.device];
    const int begin = s.range.embedding ? 0 : s.range.begin + 1;
    const int end = s.range.head ? problem.layers + 2 : s.range.end + 1;
    for (int unit = begin; unit < end; ++unit) {
      const auto u = static_cast<size_t>(unit);
      table.Add({UnitName(unit, problem.layers), device.name, FormatBytes(device.weight_bytes[u]),
                 FormatBytes(device.kv_bytes.empty() ? 0 : device.kv_bytes[u]),
                 TimeText(device.decode.unit_ns[u]), TimeText(device.prefill.unit_ns[u])});
    }
  }
  return table.Format();
}

std::string MemoryTable(const PlanReport& r) {
  const PlanProblem& problem = r.report.problem.plan;
  TextTable table({"memory", "taken", "of", "scratch", "times"});
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    const MemoryUse& use = r.report.placement.devices[i];
    if (use.used_bytes == 0) continue;
    table.Add({use.name, FormatBytes(use.used_bytes), Limit(use.available_bytes),
               FormatBytes(problem.devices[i].fixed_bytes),
               r.report.problem.measured[i] ? "calibrated" : "guessed"});
  }
  for (const MemoryUse& use : r.report.placement.pools) {
    if (use.used_bytes == 0) continue;
    table.Add({absl::StrCat("pool ", use.name), FormatBytes(use.used_bytes),
               Limit(use.available_bytes), "", ""});
  }
  return table.Format();
}

std::string Reasons(const PlanReport& r) {
  std::string text;
  for (const PlacementSegment& s : r.report.placement.segments) {
    if (s.bound.empty()) continue;
    absl::StrAppend(&text, "  ", DescribeSegment(s.range), " on ",
                    r.report.problem.plan.devices[s.range.device].name, ": bound by ", s.bound,
                    s.change.empty() ? "" : "; ", s.change, "\n");
  }
  for (const PlacementSegment& s : r.report.placement.segments) {
    const std::string& helper = r.report.problem.helpers[s.range.device];
    if (helper.empty()) continue;
    absl::StrAppend(&text, "  ", DescribeSegment(s.range), " on ",
                    r.report.problem.plan.devices[s.range.device].name,
                    ": prefill with the help of ", helper, " (--dispatch)\n");
  }
  for (const LeftOutDevice& out : r.report.placement.left_out) {
    absl::StrAppend(&text, "  ", r.report.problem.plan.devices[out.device].name,
                    " is left out: ", out.reason, "\n");
  }
  for (const std::string& violation : r.report.placement.violations) {
    absl::StrAppend(&text, "  does not fit: ", violation, "\n");
  }
  return text;
}

std::string Rate(double tokens, double ns) {
  return ns > 0 ? absl::StrFormat("%.1f tokens/s", tokens * 1e9 / ns) : "no time at all";
}

}  // namespace

std::string DescribeSegment(const PlacedRange& range) {
  std::vector<std::string> parts;
  if (range.embedding) parts.push_back("embedding");
  if (range.end - range.begin == 1) parts.push_back(absl::StrCat("layer ", range.begin));
  if (range.end - range.begin > 1) {
    parts.push_back(absl::StrCat("layers ", range.begin, "-", range.end - 1));
  }
  if (range.head) parts.push_back("head");
  return absl::StrJoin(parts, " + ");
}

std::string FormatPlan(const PlanReport& r, bool layers) {
  const Placement& placement = r.report.placement;
  const PlanProblem& problem = r.report.problem.plan;
  const NominalRequest& request = r.report.options.request;
  std::string text = absl::StrCat(r.model, ": ", problem.layers, " layers, a context of ",
                                  r.context, ", placed ", Goal(r), " (", request.prompt_tokens,
                                  " tokens of prompt, ", request.written_tokens, " written)\n\n");
  absl::StrAppend(&text, layers ? LayerTable(r) : SegmentTable(r), "\n", MemoryTable(r), "\n");
  const auto decode = static_cast<double>(placement.decode_ns);
  const auto prefill = static_cast<double>(placement.prefill_ns);
  absl::StrAppend(&text, "decode: ", TimeText(placement.decode_ns), " a token, ", Rate(1, decode));
  if (r.decode) {
    absl::StrAppend(&text, "; measured ", TimeText(static_cast<int64_t>(r.decode->all_ns)), ", ",
                    Rate(1, r.decode->all_ns));
  }
  absl::StrAppend(&text, "\nprefill: ", TimeText(placement.prefill_ns), " for ",
                  problem.prefill_tokens, " tokens, ", Rate(problem.prefill_tokens, prefill));
  if (r.prefill) {
    absl::StrAppend(&text, "; measured ", TimeText(static_cast<int64_t>(r.prefill->all_ns)), ", ",
                    Rate(problem.prefill_tokens, r.prefill->all_ns));
  }
  absl::StrAppend(&text, "\nrequest: ", TimeText(placement.request_ns), " alone; one every ",
                  TimeText(placement.cycle_ns), " with many in flight\n");
  if (!placement.exact) absl::StrAppend(&text, "the search was cut short: there may be better\n");
  const std::string reasons = Reasons(r);
  if (!reasons.empty()) absl::StrAppend(&text, "\n", reasons);
  const bool guessed = std::find(r.report.problem.measured.begin(), r.report.problem.measured.end(),
                                 false) != r.report.problem.measured.end();
  if (guessed)
    absl::StrAppend(&text, "\nsome times are guessed: `trine calibrate` measures them\n");
  return text;
}

}  // namespace trine
