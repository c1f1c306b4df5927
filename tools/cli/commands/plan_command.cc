// trine plan: shows where a model would be placed, what that takes, and why.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/engine/model_setup.h"
#include "runtime/gguf/output_file.h"
#include "tools/cli/bench/bench_runner.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/progress.h"
#include "tools/report/plan_report.h"

namespace trine {
namespace {

struct PlanArguments {
  EngineArguments engine;
  std::string picture;
  bool layers = false;
  bool json = false;
  bool measure = false;
};

constexpr int kRepetitions = 3;

// Returns the median time of a few repetitions, for each segment if there are counters.
absl::StatusOr<MeasuredPass> MeasurePass(Engine* engine, const BenchTest& test, size_t segments,
                                         double passes) {
  BenchRunner runner(engine);
  if (absl::Status s = runner.WarmUp(test); !s.ok()) return s;
  std::vector<MeasuredPass> all;
  for (int i = 0; i < kRepetitions; ++i) {
    // Bring the sequence to its depth first: that does not count.
    BenchTest reach = test;
    reach.n_prompt = reach.n_gen = 0;
    if (const auto s = runner.Run(reach); !s.ok()) return s.status();
    const std::vector<SegmentCounters> before = engine->segments();
    const auto ns = runner.Run(test);
    if (!ns.ok()) return ns.status();
    const std::vector<SegmentCounters> after = engine->segments();
    MeasuredPass pass;
    pass.all_ns = static_cast<double>(*ns) / passes;
    if (segments == 1) pass.segment_ns.push_back(pass.all_ns);
    for (size_t s = 0; segments > 1 && s < after.size() && s < before.size(); ++s) {
      pass.segment_ns.push_back(
          static_cast<double>(after[s].stage.busy_ns - before[s].stage.busy_ns) / passes);
    }
    all.push_back(std::move(pass));
  }
  std::sort(all.begin(), all.end(),
            [](const MeasuredPass& a, const MeasuredPass& b) { return a.all_ns < b.all_ns; });
  return all[kRepetitions / 2];
}

// Returns the number of the placement's segments that are one segment of the model as it runs.
std::vector<size_t> SegmentsOfRanges(const PlacementReport& report) {
  std::vector<size_t> counts;
  size_t next = 0;
  for (const LayerRange& range : report.ranges) {
    const size_t first = next;
    const auto& segments = report.placement.segments;
    const auto is_part = [&](const PlacementSegment& s) {
      return report.problem.plan.devices[s.range.device].name == range.device &&
             s.range.end <= range.end;
    };
    while (next < segments.size() && is_part(segments[next])) ++next;
    counts.push_back(next - first);
  }
  return counts;
}

// Divides the measured times of segments among the placement's, which may be parts of them, in
// proportion to the predicted times.
void DivideTimes(const PlacementReport& report, int64_t PlacementSegment::*predicted,
                 MeasuredPass* pass) {
  const std::vector<size_t> counts = SegmentsOfRanges(report);
  if (pass->segment_ns.size() != counts.size()) return;
  std::vector<double> divided;
  for (size_t i = 0; i < counts.size(); ++i) {
    double sum = 0;
    const size_t first = divided.size();
    for (size_t j = 0; j < counts[i]; ++j) {
      sum += static_cast<double>(report.placement.segments[first + j].*predicted);
    }
    for (size_t j = 0; j < counts[i]; ++j) {
      const auto ns = static_cast<double>(report.placement.segments[first + j].*predicted);
      divided.push_back(pass->segment_ns[i] * (counts[i] == 1 || sum <= 0 ? 1 : ns / sum));
    }
  }
  pass->segment_ns = std::move(divided);
}

absl::Status Measure(const PlanArguments& a, PlanReport* report) {
  const PlanProblem& problem = report->report.problem.plan;
  const NominalRequest& request = report->report.options.request;
  auto engine = LoadEngine(a.engine);
  if (!engine.ok()) return engine.status();
  // The loaded placement differs from the planned one if a device of the plan was lost.
  for (const LostDevice& lost : (*engine)->lost_devices()) {
    for (const PlacementSegment& segment : report->report.placement.segments) {
      if (problem.devices[segment.range.device].name != lost.name) continue;
      return absl::UnavailableError(
          absl::StrCat(lost.name, " was lost while the model was loaded: ", lost.reason));
    }
  }
  Progress progress("measuring");
  const size_t segments = report->report.ranges.size();
  const int64_t context = (*engine)->context();
  const int64_t written = std::min<int64_t>(32, std::max<int64_t>(context / 2, 1));
  const int64_t depth = std::clamp<int64_t>(
      request.prompt_tokens + request.written_tokens / 2 - written / 2, 0, context - written);
  BenchTest decode;
  decode.n_gen = written;
  decode.n_depth = depth;
  auto one = MeasurePass(engine->get(), decode, segments, static_cast<double>(written));
  if (!one.ok()) return one.status();
  report->decode = *std::move(one);
  DivideTimes(report->report, &PlacementSegment::decode_ns, &*report->decode);
  BenchTest prefill;
  prefill.n_prompt = problem.prefill_tokens;
  auto many = MeasurePass(engine->get(), prefill, segments, 1);
  if (!many.ok()) return many.status();
  report->prefill = *std::move(many);
  DivideTimes(report->report, &PlacementSegment::prefill_ns, &*report->prefill);
  return absl::OkStatus();
}

int ShowPlan(const PlanArguments& a) {
  if (!a.engine.trace.empty() && !a.measure) {
    return ComplainOfArguments(
        absl::InvalidArgumentError("--trace needs --measure: nothing runs without it"));
  }
  EngineOptions options = EngineOptionsOf(a.engine);
  options.explain = true;
  PlanReport report;
  {  // releases the devices before they are measured
    auto setup = PrepareModel(options);
    if (!setup.ok()) return Complain(setup.status());
    auto placement = setup->placer->Explain();
    if (!placement.ok()) return Complain(placement.status());
    report.report = *std::move(placement);
    report.too_fast = DevicesTooFast(setup->devices->inventory());
    report.model = setup->file->parts()[0].path;
    report.context = setup->limits.max_context;
  }
  if (a.measure) {
    if (absl::Status s = Measure(a, &report); !s.ok()) return Complain(s);
  }
  if (!a.picture.empty()) {
    if (absl::Status s = gguf::OutputFile::Write(a.picture, FormatPlanPicture(report)); !s.ok())
      return Complain(s);
  }
  const std::string text = a.json ? FormatPlanJson(report) : FormatPlan(report, a.layers);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddPlanCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<PlanArguments>(
      app, run, ShowPlan, "plan",
      "Show which layers of a model would go on which device, what that takes, and why");
  a->engine.expert_stats_read_only = true;
  AddEngineOptions(command, "Positions of a sequence", &a->engine);
  command.AddFlag("--layers", a->layers, "A line for each layer");
  command.AddFlag("--json", a->json, "Print everything as JSON");
  command.AddOption("--svg", a->picture, "Write a picture of it to this file")
      .Check(NotEmpty)
      .ValueName("FILE");
  command.AddFlag("--measure", a->measure, "Load and run it, and show what that took beside it");
}

}  // namespace trine
