#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/report/plan_report.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

std::string Limit(uint64_t bytes) { return bytes == kNoLimit ? "no limit" : FormatBytes(bytes); }

std::string MeasuredText(const std::optional<MeasuredPass>& pass, size_t segment) {
  if (!pass || segment >= pass->segment_ns.size()) return "-";
  return TimeText(static_cast<int64_t>(pass->segment_ns[segment]));
}

std::string Goal(const PlanReport& r) {
  if (r.report.rows) return "by rows of matrices, as it was asked for";
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

// Returns a row with the cells for what was measured put in.
std::vector<std::string> Row(const PlanReport& r, std::vector<std::string> cells,
                             const std::string& decode, const std::string& prefill) {
  if (r.decode) cells.insert(cells.begin() + 5, decode);
  if (r.prefill) cells.push_back(prefill);
  return cells;
}

TextTable NewTable(const PlanReport& r, const char* what) {
  const std::string prefill = absl::StrCat("prefill of ", r.report.problem.plan.prefill_tokens);
  return TextTable(
      Row(r, {what, "device", "weights", "KV cache", "decode", prefill}, "measured", "measured"));
}

std::string SegmentTable(const PlanReport& r) {
  const Placement& placement = r.report.placement;
  const PlanProblem& problem = r.report.problem.plan;
  TextTable table = NewTable(r, "segment");
  for (size_t i = 0; i < placement.segments.size(); ++i) {
    const PlacementSegment& s = placement.segments[i];
    table.Add(Row(r,
                  {DescribeSegment(s.range), problem.devices[s.range.device].name,
                   FormatBytes(s.weight_bytes), FormatBytes(s.kv_bytes), TimeText(s.decode_ns),
                   TimeText(s.prefill_ns)},
                  MeasuredText(r.decode, i), MeasuredText(r.prefill, i)));
    for (size_t j = 0; j < s.elsewhere.size(); ++j) {
      const SegmentShare& share = s.elsewhere[j];
      std::string what = problem.devices[s.range.device].elsewhere[j].what;
      if (const auto slots = SlotsOfPart(r.report, i, j)) {
        absl::StrAppendFormat(&what, ", %d of %d also on %s: %.0f %% of choices", slots->slots,
                              slots->experts, problem.devices[s.range.device].name,
                              100 * slots->share);
      }
      table.Add(
          Row(r,
              {absl::StrCat("  ", what), problem.devices[share.device].name,
               FormatBytes(share.bytes), "", TimeText(share.decode_ns), TimeText(share.prefill_ns)},
              "", ""));
    }
  }
  std::string text = table.Format();
  if (std::any_of(placement.segments.begin(), placement.segments.end(),
                  [](const PlacementSegment& s) { return !s.elsewhere.empty(); })) {
    absl::StrAppend(&text, "the time of a segment includes that of its parts on other devices\n");
  }
  return text;
}

std::string UnitName(int unit, int layers) {
  if (unit == 0) return "embedding";
  return unit == layers + 1 ? "head" : absl::StrCat("layer ", unit - 1);
}

// Returns the part's predicted share of its segment's measured time: only segments are measured.
std::string MeasuredShare(const std::optional<MeasuredPass>& pass, size_t segment, int64_t part_ns,
                          int64_t segment_ns) {
  if (!pass || segment >= pass->segment_ns.size() || segment_ns <= 0) return "-";
  const double share = static_cast<double>(part_ns) / static_cast<double>(segment_ns);
  return absl::StrCat("~", TimeText(static_cast<int64_t>(pass->segment_ns[segment] * share)));
}

void AddLayerRows(const PlanReport& r, size_t segment, TextTable* table) {
  const PlanProblem& problem = r.report.problem.plan;
  const PlacementSegment& s = r.report.placement.segments[segment];
  const PlanDevice& device = problem.devices[s.range.device];
  const int64_t begin = s.range.embedding ? 0 : s.range.begin + 1;
  const int64_t end = s.range.head ? problem.layers + 2 : s.range.end + 1;
  for (int unit = begin; unit < end; ++unit) {
    const auto u = static_cast<size_t>(unit);
    const int64_t decode = device.decode.unit_ns[u], prefill = device.prefill.unit_ns[u];
    table->Add(
        Row(r,
            {UnitName(unit, problem.layers), device.name, FormatBytes(device.weight_bytes[u]),
             FormatBytes(device.kv_bytes.empty() ? 0 : device.kv_bytes[u]), TimeText(decode),
             TimeText(prefill)},
            MeasuredShare(r.decode, segment, decode, s.decode_ns),
            MeasuredShare(r.prefill, segment, prefill, s.prefill_ns)));
  }
}

std::string LayerTable(const PlanReport& r) {
  TextTable table = NewTable(r, "part");
  for (size_t i = 0; i < r.report.placement.segments.size(); ++i) AddLayerRows(r, i, &table);
  std::string text = table.Format();
  if (r.decode) {
    absl::StrAppend(&text, "~: segments are measured; a part has its predicted share of that\n");
  }
  return text;
}

// Lists the weights that are not with their layers.
std::string MovedTable(const PlanReport& r) {
  if (r.report.moved.empty()) return "";
  TextTable table({"part of", "on", "whole matrices", "divided ones", "weights"});
  for (const MovedWeights& moved : r.report.moved) {
    table.Add({DescribeSegment(r.report.ranges[moved.range]), moved.device,
               absl::StrCat(moved.whole), absl::StrCat(moved.parts), FormatBytes(moved.bytes)});
  }
  return absl::StrCat(table.Format(), "\n");
}

// Says where a device's times come from.
std::string OriginOfTimes(const PlacementProblem& problem, size_t device) {
  if (!problem.measured[device]) return "guessed";
  std::string text = "calibrated";
  if (!problem.guessed[device].empty()) text += ", some guessed";
  if (!problem.busy[device].empty()) text += ", while busy";
  return text;
}

// Says which costs to doubt, and why.
std::string DoubtfulTimes(const PlacementProblem& problem) {
  std::string text;
  for (size_t i = 0; i < problem.plan.devices.size(); ++i) {
    const std::string& name = problem.plan.devices[i].name;
    if (problem.plan.devices[i].mode_of.has_value()) continue;
    if (!problem.guessed[i].empty()) {
      absl::StrAppend(&text, name, " could not be measured whole; guessed are: ",
                      absl::StrJoin(problem.guessed[i], ", "), "\n");
    }
    if (!problem.busy[i].empty()) {
      absl::StrAppend(&text, name, " was calibrated on a busy machine: ", problem.busy[i],
                      "; run `trine calibrate` again when it is idle\n");
    }
  }
  return text.empty() ? "" : absl::StrCat("\n", text);
}

std::string MemoryTable(const PlanReport& r) {
  const PlanProblem& problem = r.report.problem.plan;
  TextTable table({"memory", "taken", "of", "scratch", "times"});
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    const MemoryUse& use = r.report.placement.devices[i];
    if (use.used_bytes == 0) continue;
    table.Add({use.name, FormatBytes(use.used_bytes), Limit(use.available_bytes),
               FormatBytes(problem.devices[i].fixed_bytes), OriginOfTimes(r.report.problem, i)});
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
                    r.report.problem.plan.devices[s.range.device].name, ": limited by ", s.bound,
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
    absl::StrAppend(&text, "  ", DescribeLeftOut(r.report, out), "\n");
  }
  for (const InventoryDevice& device : r.too_fast) {
    absl::StrAppend(&text, "  ", DescribeLeftOut(device), "\n");
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

std::string DescribeLeftOut(const PlacementReport& report, const LeftOutDevice& out) {
  const std::string& name = report.problem.plan.devices[out.device].name;
  const bool helps = std::any_of(
      report.placement.segments.begin(), report.placement.segments.end(),
      [&](const PlacementSegment& s) { return report.problem.helpers[s.range.device] == name; });
  return absl::StrCat(name, helps ? " has no layers, it helps: " : " is left out: ", out.reason);
}

std::string DescribeLeftOut(const InventoryDevice& device) {
  return absl::StrCat(device.backend_name, " is left out: ", device.reason);
}

std::string DescribeSegment(const LayerSpan& range) {
  std::vector<std::string> parts;
  if (range.embedding) parts.push_back("embedding");
  if (range.layers() == 1) parts.push_back(absl::StrCat("layer ", range.begin));
  if (range.layers() > 1) {
    parts.push_back(absl::StrCat("layers ", range.begin, "-", range.end - 1));
  }
  if (range.head) parts.push_back("head");
  return absl::StrJoin(parts, " + ");
}

std::optional<PlannedSlots> SlotsOfPart(const PlacementReport& report, size_t segment,
                                        size_t part) {
  const PlacedRange& range = report.placement.segments[segment].range;
  const std::vector<PlanDevice>& devices = report.problem.plan.devices;
  const PlanShare& share = devices[range.device].elsewhere[part];
  if (devices[share.device].tier != "cpu" || share.what != "experts") return std::nullopt;
  return SlotsOf(report.problem, range);
}

std::string FormatPlan(const PlanReport& r, bool layers) {
  const Placement& placement = r.report.placement;
  const PlanProblem& problem = r.report.problem.plan;
  const NominalRequest& request = r.report.options.request;
  std::string text = absl::StrCat(r.model, ": ", problem.layers, " layers, a context of ",
                                  r.context, ", placed ", Goal(r), " (", request.prompt_tokens,
                                  " tokens of prompt, ", request.written_tokens, " written)\n\n");
  absl::StrAppend(&text, layers ? LayerTable(r) : SegmentTable(r), "\n", MovedTable(r),
                  MemoryTable(r), "\n");
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
  return absl::StrCat(text, DoubtfulTimes(r.report.problem));
}

}  // namespace trine
