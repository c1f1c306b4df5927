#include "runtime/placement/placer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dispatch/devices/inventory.h"
#include "dispatch/planner/planner.h"
#include "runtime/base/invalid.h"
#include "runtime/placement/calibration.h"
#include "runtime/placement/known_costs.h"
#include "runtime/placement/layer_parts.h"
#include "runtime/placement/split_mode.h"

namespace trine {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the limits by tier name. Ignores limits of absent devices if the user allows that.
absl::StatusOr<std::map<std::string, uint64_t>> ResolveLimits(const PlacementRequest& request,
                                                              const DeviceSet& devices) {
  std::map<std::string, uint64_t> limits;
  for (const SplitShare& share : request.memory_limits) {
    auto name = devices.Resolve(share.device);
    if (!name.ok() && request.allow_degraded) continue;
    if (!name.ok()) return name.status();
    const auto bytes = static_cast<uint64_t>(std::min(share.amount, 1e18));
    if (!limits.emplace(*name, bytes).second) {
      return Invalid("device memory: ", *name, " is given two limits");
    }
  }
  return limits;
}

bool NoneIsUsable(const std::vector<CandidateDevice>& candidates) {
  return std::none_of(candidates.begin(), candidates.end(),
                      [](const CandidateDevice& c) { return c.left_out.empty(); });
}

// A file that was read into memory is already missing from the free memory. Its weights on the CPU
// are counted again where they are placed, although they use or replace the file's memory. Adds the
// file's bytes to the free memory, so that they are counted once.
void CountFileOnce(uint64_t file_bytes, PlanProblem* plan) {
  for (const PlanDevice& device : plan->devices) {
    if (device.tier != "cpu") continue;
    uint64_t& capacity = plan->pools[device.pool].capacity_bytes;
    if (capacity != kNoLimit) capacity += file_bytes;
    return;
  }
}

// Returns a tier name as people write it: "CPU", "iGPU1".
std::string Titled(const std::string& name) {
  if (name == "cpu") return "CPU";
  if (name.rfind("igpu", 0) == 0) return absl::StrCat("iGPU", name.substr(4));
  if (name.rfind("dgpu", 0) == 0) return absl::StrCat("dGPU", name.substr(4));
  return name;
}

}  // namespace

Placer::Placer(PlacementRequest request, PlacerOptions options,
               std::shared_ptr<const gguf::File> file, const ModelConfig& config,
               const SegmentLimits& limits, DeviceSet* devices)
    : request_(std::move(request)),
      options_(std::move(options)),
      file_(std::move(file)),
      config_(config),
      limits_(limits),
      devices_(devices) {}

std::vector<std::string> Placer::Named() const {
  std::vector<std::string> names;
  for (const std::string& name : request_.devices) {
    if (auto known = devices_->Resolve(name); known.ok()) names.push_back(*std::move(known));
  }
  return names;
}

void Placer::Warn(const std::string& message) const {
  if (options_.log) options_.log(TRINE_LOG_WARNING, message);
}

absl::StatusOr<ModelPlaces> Placer::Choose() {
  return ChoosePlaces(request_, options_.log, *file_, config_, *devices_,
                      [&] { return searches() ? Plan({}) : AskedRanges(); });
}

absl::StatusOr<ModelPlaces> Placer::ChooseWithout(const std::vector<std::string>& lost) {
  auto places = Plan(lost);
  if (!places.ok()) return places;
  auto fixed = FixedTensors(lost);
  if (!fixed.ok()) return fixed.status();
  for (auto& [tensor, device] : *fixed) places->tensors.insert_or_assign(tensor, device);
  return places;
}

absl::StatusOr<std::map<std::string, std::string>> Placer::FixedTensors(
    const std::vector<std::string>& lost) const {
  auto tensors = ResolveOverrides(request_, nullptr, *file_, *devices_);
  if (!tensors.ok()) return tensors;
  std::erase_if(*tensors, [&](const auto& placed) {
    return Contains(lost, placed.second) || HasFailed(placed.second);
  });
  return tensors;
}

std::map<int64_t, PlannedSlots> Placer::Expected(const std::map<int64_t, int64_t>& slots) const {
  std::map<int64_t, PlannedSlots> expected;
  const int64_t experts = config_.experts.count;
  for (const auto& [layer, count] : slots) {
    const double share = options_.hits != nullptr
                             ? HitShare(options_.hits->OfLayer(layer), count)
                             : static_cast<double>(count) / static_cast<double>(experts);
    expected[layer] = {count, experts, share};
  }
  return expected;
}

absl::StatusOr<ModelPlaces> Placer::AskedRanges() const {
  auto ranges = ChooseRanges(request_, options_.log, *file_, config_, *devices_);
  if (!ranges.ok()) return ranges.status();
  ModelPlaces places;
  places.ranges = *std::move(ranges);
  return places;
}

std::vector<ModeOption> Placer::Modes(const std::vector<CandidateDevice>& candidates) const {
  std::vector<ModeOption> modes;
  const auto usable = [&](const CandidateDevice& c) { return c.left_out.empty(); };
  const bool has_cpu =
      std::any_of(candidates.begin(), candidates.end(),
                  [&](const CandidateDevice& c) { return c.name == "cpu" && usable(c); });
  if (!has_cpu || !places_parts() || options_.whole_layers) return modes;
  if (request_.strategy == Strategy::kMemory) return modes;  // it has no use for them
  ModeOption mode;
  bool experts = false;
  for (const LayerParts& layer : FindLayerParts(*file_)) {
    experts = experts || layer.experts;
    for (const std::string& weight : layer.weights) mode.tensors[weight] = "cpu";
  }
  mode.what = experts ? "experts" : "feed-forward";
  if (mode.tensors.empty()) return modes;
  for (const CandidateDevice& c : candidates) {
    if (c.name == "cpu" || !usable(c)) continue;
    mode.device = c.name;
    modes.push_back(mode);
  }
  return modes;
}

ModelPlaces Placer::PlacesOf(const PlanProblem& problem, const Placement& placement) const {
  ModelPlaces places;
  const std::vector<LayerParts> layers = FindLayerParts(*file_);
  for (const PlacementSegment& segment : placement.segments) {
    const PlanDevice& device = problem.devices[segment.range.device];
    LayerRange range{segment.range, device.name};
    if (device.mode_of.has_value()) {
      const std::string& other = problem.devices[device.elsewhere.front().device].name;
      for (int64_t i = range.begin; i < range.end && i < static_cast<int64_t>(layers.size()); ++i) {
        for (const std::string& weight : layers[static_cast<size_t>(i)].weights) {
          places.tensors.emplace(weight, other);
        }
      }
    }
    if (!places.ranges.empty() && places.ranges.back().device == range.device) {
      places.ranges.back().end = range.end;
      places.ranges.back().head = range.head;
    } else {
      places.ranges.push_back(std::move(range));
    }
  }
  return places;
}

absl::StatusOr<std::vector<CandidateDevice>> Placer::Candidates(
    const std::vector<std::string>& lost, bool warn) const {
  const Inventory& inventory = devices_->inventory();
  std::vector<std::string> named;
  for (const std::string& name : request_.devices) {
    auto known = devices_->Resolve(name);
    if (known.ok()) {
      named.push_back(*std::move(known));
    } else if (request_.allow_degraded) {
      if (warn) Warn(absl::StrCat(known.status().message(), ": going on without it"));
    } else {
      return known.status();
    }
  }
  std::vector<CandidateDevice> candidates;
  for (const InventoryDevice& device : inventory.devices) {
    const bool asked = Contains(named, device.tier_name);
    if (!device.used && !device.on_request) continue;
    std::string why;
    const auto failed = std::find_if(failed_.begin(), failed_.end(), [&](const DeviceFailure& f) {
      return f.name == device.tier_name;
    });
    if (failed != failed_.end()) {
      why = std::string(failed->why.message());
    } else if (Contains(lost, device.tier_name)) {
      why = "it is lost";
    } else if (!request_.devices.empty() && !asked) {
      why = "it was not asked for";
    } else if (!device.used && !asked) {
      why = "it is used only where it is asked for by name";
    }
    candidates.push_back({device.tier_name, std::move(why)});
  }
  // The CPU is used if all devices that the user named are absent.
  if (NoneIsUsable(candidates)) {
    for (CandidateDevice& c : candidates) {
      if (c.name == "cpu" && !Contains(lost, "cpu") && !HasFailed("cpu")) c.left_out.clear();
    }
  }
  return candidates;
}

absl::StatusOr<ProblemOptions> Placer::Describe(const std::vector<std::string>& lost) const {
  ProblemOptions options;
  auto candidates = Candidates(lost, /*warn=*/false);
  if (!candidates.ok()) return candidates.status();
  options.candidates = *std::move(candidates);
  auto limits = ResolveLimits(request_, *devices_);
  if (!limits.ok()) return limits.status();
  options.memory_limits = *std::move(limits);
  options.pack = options_.pack;
  options.file_mapped = file_->mapped();
  options.modes = Modes(options.candidates);
  options.request = nominal_;
  auto fixed = FixedTensors(lost);
  if (!fixed.ok()) return fixed.status();
  options.fixed.tensors = *std::move(fixed);
  const auto slots = SlotsFor(request_, *file_, config_, options.fixed.tensors);
  if (!slots.ok()) return slots.status();
  options.fixed.slots = Expected(*slots);
  // With many requests in flight a helper has work of its own.
  options.dispatch = request_.dispatch.on && request_.optimize == Optimize::kLatency;
  options.rule.from_tokens = request_.dispatch.from_tokens;
  options.rule.at_least = LeastHelped();
  return options;
}

// A device runs the layers that the user gave to it whenever a pass only writes. A larger pass,
// which reads a prompt, may have help. An engine for embeddings writes nothing.
int64_t Placer::LeastHelped() const {
  return request_.helps_prompts_only() && !limits_.embeddings ? limits_.max_sequences + 1 : 1;
}

std::string Placer::CalibrationPath() const {
  const bool ask = request_.calibration.empty() && options_.use_environment;
  return ask ? Calibration::DefaultPath() : request_.calibration;
}

DispatchChoice Placer::ChooseDispatch(const ModelPlaces& places,
                                      const std::vector<std::string>& lost) const {
  DispatchChoice choice;
  if (!request_.dispatch.on || !places.rows.empty()) return choice;
  const char* log = options_.use_environment ? std::getenv("TRINE_DISPATCH") : nullptr;
  choice.log = log != nullptr && std::strcmp(log, "log") == 0;
  if (log != nullptr && *log != '\0' && !choice.log) {
    Warn(absl::StrCat("TRINE_DISPATCH is '", log, "': only 'log' means something"));
  }
  std::set<std::string> names, parts;  // of devices that may help, and that have parts of layers
  for (const LayerRange& range : places.ranges) names.insert(range.device);
  for (const auto& [tensor, device] : places.tensors) parts.insert(device);
  // If the user placed the layers, only devices with layers may help. If the planner placed them,
  // any device that it was free to use may help.
  if (searches()) {
    const auto candidates = Candidates(lost, /*warn=*/false);
    for (size_t i = 0; candidates.ok() && i < candidates->size(); ++i) {
      if ((*candidates)[i].left_out.empty()) names.insert((*candidates)[i].name);
    }
  }
  // With many requests in flight a helper has work of its own.
  const bool busy =
      request_.optimize == Optimize::kThroughput && request_.dispatch.from_tokens == 0;
  if ((names.size() < 2 && parts.empty()) || busy) return choice;
  auto limits = ResolveLimits(request_, *devices_);
  if (limits.ok()) choice.limits = *std::move(limits);
  choice.rule.from_tokens = request_.dispatch.from_tokens;
  choice.rule.at_least = LeastHelped();
  auto calibration = Calibration::Read(CalibrationPath());
  if (!calibration.ok()) calibration = Calibration();  // the planner has reported it
  const uint32_t threads = devices_->host().table()->worker_count;
  for (const InventoryDevice& device : devices_->inventory().devices) {
    const bool helps = names.count(device.tier_name) != 0;
    if (!helps && parts.count(device.tier_name) == 0) continue;
    choice.costs[device.tier_name] =
        FindCosts(*calibration, devices_->inventory(), device, threads);
    if (helps) choice.helpers.push_back(device.tier_name);
  }
  return choice;
}

absl::StatusOr<PlacementProblem> Placer::Problem(const ProblemOptions& options) {
  auto calibration = Calibration::Read(CalibrationPath());
  if (!calibration.ok()) {
    Warn(absl::StrCat(calibration.status().message(), "; times are guessed"));
    calibration = Calibration();
  }
  if (calibration->senseless() > 0) {
    Warn(absl::StrCat(CalibrationPath(), ": ", calibration->senseless(),
                      " of its entries make no sense and count for nothing"));
  }
  auto problem = DescribeProblem(file_, config_, limits_, *calibration, options, devices_);
  if (!problem.ok()) return problem;
  failed_.insert(failed_.end(), problem->failed.begin(), problem->failed.end());
  for (const DeviceFailure& failure : problem->failed) {
    Warn(absl::StrCat(failure.name, " is not used: ", failure.why.message()));
  }
  if (!problem->failed.empty()) return problem;
  if (!file_->mapped()) CountFileOnce(file_->tensor_bytes(), &problem->plan);
  for (size_t i = 0; i < options.candidates.size(); ++i) {
    const PlanDevice& device = problem->plan.devices[i];
    if (!options.candidates[i].left_out.empty() || device.left_out.empty()) continue;
    Warn(absl::StrCat(device.name, " is not used: ", device.left_out));
  }
  return problem;
}

bool Placer::HasFailed(const std::string& device) const {
  return std::any_of(failed_.begin(), failed_.end(),
                     [&](const DeviceFailure& f) { return f.name == device; });
}

absl::StatusOr<PlacementProblem> Placer::ProblemOfThoseThatAnswer(
    const std::vector<std::string>& lost, bool cpu_from_file) {
  for (;;) {
    auto described = Describe(lost);
    if (!described.ok()) return described.status();
    ProblemOptions* const options = &*described;
    options->cpu_from_file = cpu_from_file;
    if (!failed_.empty() && NoneIsUsable(options->candidates)) {
      std::string text = "no device is left";
      for (const DeviceFailure& f : failed_) {
        absl::StrAppend(&text, &f == &failed_.front() ? ": " : "; ", f.name, ": ", f.why.message());
      }
      return absl::UnavailableError(text);
    }
    if (NoneIsUsable(options->candidates)) return NoDevice();
    auto problem = Problem(*options);
    if (!problem.ok() || problem->failed.empty()) return problem;
  }
}

absl::StatusOr<PlacementReport> Placer::Search(const std::vector<std::string>& lost, bool explain) {
  PlacementReport report;
  report.searched = true;
  report.options.strategy = request_.strategy;
  report.options.optimize = request_.optimize;
  report.options.explain = explain;
  report.options.request = nominal_;
  auto problem = ProblemOfThoseThatAnswer(lost, /*cpu_from_file=*/false);
  if (!problem.ok()) return problem.status();
  auto placement = FindPlacement(problem->plan, report.options);
  if (absl::IsResourceExhausted(placement.status()) && file_->mapped()) {
    // A model that is too large for the memory can still be read from the file for each token.
    const std::string why(placement.status().message());
    auto again = ProblemOfThoseThatAnswer(lost, /*cpu_from_file=*/true);
    if (!again.ok()) return again.status();
    auto found = FindPlacement(again->plan, report.options);
    if (found.ok()) {
      Warn(absl::StrCat(why, ": what is on the CPU is read from the file for each token, which is ",
                        "slow"));
      problem = std::move(again);
      placement = std::move(found);
    }
  }
  if (!placement.ok()) return placement.status();
  report.problem = *std::move(problem);
  report.placement = *std::move(placement);
  return report;
}

absl::Status Placer::NoDevice() const {
  auto cpu = devices_->Resolve("cpu");
  return cpu.ok() ? absl::UnavailableError("no device is left") : cpu.status();
}

absl::StatusOr<ModelPlaces> Placer::Plan(const std::vector<std::string>& lost) {
  auto candidates = Candidates(lost, /*warn=*/lost.empty());
  if (!candidates.ok()) return candidates.status();
  std::vector<std::string> usable;
  for (const CandidateDevice& c : *candidates) {
    if (c.left_out.empty()) usable.push_back(c.name);
  }
  if (usable.empty()) return NoDevice();
  // With one device there is nothing to choose, and loading shows whether the model fits. That does
  // not hold with memory limits, or after a loss, when the CPU may have to help.
  const bool bounded = !request_.memory_limits.empty() || (!lost.empty() && usable[0] != "cpu");
  if (usable.size() == 1 && !bounded) {
    ModelPlaces places;
    places.ranges = {{{0, config_.n_layers, true, true}, usable[0]}};
    return places;
  }
  auto report = Search(lost, /*explain=*/false);
  if (!report.ok()) return report.status();
  return PlacesOf(report->problem.plan, report->placement);
}

bool Placer::MayFetch() const {
  const Inventory& inventory = devices_->inventory();
  const bool whole = options_.whole_layers || request_.mode == SplitMode::kRow;
  if (!request_.dispatch.on || !file_->mapped() || whole) return false;
  return std::any_of(inventory.devices.begin(), inventory.devices.end(),
                     [&](const InventoryDevice& device) {
                       if (device.registry_device == InventoryDevice::kNone) return false;
                       return CanFetch(inventory.registry.devices[device.registry_device].info);
                     });
}

absl::StatusOr<PredictedRequest> Placer::Predict(const NominalRequest& request) {
  nominal_ = request;
  const auto report = Report(/*explain=*/false);
  if (!report.ok()) return report.status();
  PredictedRequest predicted{report->placement.request_ns, false};
  for (const PlacementSegment& segment : report->placement.segments) {
    predicted.fetches = predicted.fetches || report->problem.fetches[segment.range.device];
  }
  return predicted;
}

absl::StatusOr<PlacementReport> Placer::Explain() { return Report(/*explain=*/true); }

absl::StatusOr<PlacementReport> Placer::Report(bool explain) {
  absl::StatusOr<PlacementReport> found = PlacementReport();
  const auto places = ChoosePlaces(request_, options_.log, *file_, config_, *devices_,
                                   [&]() -> absl::StatusOr<ModelPlaces> {
                                     if (!searches()) return AskedRanges();
                                     found = Search({}, explain);
                                     if (!found.ok()) return found.status();
                                     return PlacesOf(found->problem.plan, found->placement);
                                   });
  if (!places.ok()) return places.status();
  if (!searches()) found = Evaluate(*places);
  if (!found.ok()) return found.status();
  found->ranges = places->ranges;
  found->rows = !places->rows.empty();
  if (!found->rows && places->tensors.empty()) return found;
  auto moved = FindMovedWeights(*file_, config_, limits_, *places, devices_);
  if (!moved.ok()) return moved.status();
  found->moved = *std::move(moved);
  return found;
}

// Returns the problem in which the devices of the places are used, even if the planner would leave
// them out. If a device fails while it is described, begins again without it, unless it has layers.
absl::StatusOr<PlacementProblem> Placer::ProblemOf(const ModelPlaces& places) {
  std::set<std::string> named, with_layers;
  for (const LayerRange& range : places.ranges) with_layers.insert(range.device);
  named = with_layers;
  for (const DeviceShare& share : places.rows) named.insert(share.device);
  for (const auto& [tensor, device] : places.tensors) named.insert(device);
  for (;;) {
    auto options = Describe({});
    if (!options.ok()) return options.status();
    for (const std::string& name : named) {
      const auto found = std::find_if(options->candidates.begin(), options->candidates.end(),
                                      [&](const CandidateDevice& c) { return c.name == name; });
      if (found == options->candidates.end()) {
        options->candidates.push_back({name, ""});
      } else if (!HasFailed(name)) {
        found->left_out.clear();
      }
    }
    options->dispatch = options->dispatch && places.rows.empty();
    options->helpers = with_layers;  // as in ChooseDispatch
    options->fixed.rows = places.rows;
    auto problem = Problem(*options);
    if (!problem.ok() || problem->failed.empty()) return problem;
    for (const DeviceFailure& failure : problem->failed) {
      if (with_layers.count(failure.name) != 0) return failure.why;
    }
  }
}

// Predicts the times of the places that the user asked for.
absl::StatusOr<PlacementReport> Placer::Evaluate(const ModelPlaces& places) {
  PlacementReport report;
  auto problem = ProblemOf(places);
  if (!problem.ok()) return problem.status();
  report.problem = *std::move(problem);
  std::vector<PlacedRange> placed;
  for (const LayerRange& range : places.ranges) {
    for (size_t d = 0; d < report.problem.plan.devices.size(); ++d) {
      const PlanDevice& device = report.problem.plan.devices[d];
      if (device.name != range.device || device.mode_of.has_value()) continue;
      placed.push_back({range, d});
    }
  }
  report.options.request = nominal_;
  auto placement = EvaluatePlacement(report.problem.plan, nominal_, placed);
  if (!placement.ok()) return placement.status();
  report.placement = *std::move(placement);
  return report;
}

std::string RowsText(const std::vector<std::string>& devices, int layers) {
  std::vector<std::string> names;
  for (const std::string& name : devices) names.push_back(Titled(name));
  return absl::StrCat(layers, "L over ", absl::StrJoin(names, " + "));
}

std::string PlacementText(const std::vector<LayerRange>& ranges,
                          const std::vector<std::string>& notes,
                          const std::vector<PartsText>& others) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LayerRange& range = ranges[i];
    std::string part = absl::StrCat(Titled(range.device), "(");
    if (range.layers() == 0) {
      absl::StrAppend(&part, range.embedding ? "embedding" : "head");
    } else {
      absl::StrAppend(&part, range.layers(), "L");
    }
    if (i < notes.size() && !notes[i].empty()) absl::StrAppend(&part, ", ", notes[i]);
    parts.push_back(part + ")");
  }
  for (const PartsText& other : others) {
    parts.push_back(absl::StrCat(Titled(other.device), "(", other.what, ")"));
  }
  return absl::StrJoin(parts, " + ");
}

}  // namespace trine
