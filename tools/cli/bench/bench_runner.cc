#include "tools/cli/bench/bench_runner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plugins/device_text.h"
#include "runtime/base/version.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/model_summary.h"
#include "runtime/model/run/decode_bytes.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/options/describe_placement.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t Since(Clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

std::vector<int32_t> RandomTokens(int64_t count, int64_t n_vocab) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  uint64_t state = 1;
  for (int32_t& token : tokens) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(n_vocab));
  }
  return tokens;
}

// Describes the CPU, which is part of every measurement, and the other devices that take part.
void DescribeChips(const Engine& engine, BenchSubject* subject) {
  const Inventory& inventory = engine.inventory();
  const std::set<std::string> used = engine.model()->Devices();
  subject->cpu = Printable(inventory.machine.cpu.model);
  for (const InventoryDevice& device : inventory.devices) {
    if (device.registry_device == InventoryDevice::kNone) continue;
    const trine_device_info& info = inventory.registry.devices[device.registry_device].info;
    if (device.tier_name == "cpu") {
      subject->cpu = FieldText(info.name);
      subject->cpu_level = FieldText(info.arch);
    } else if (used.count(device.tier_name) != 0) {
      const std::string driver = FieldText(info.driver);
      subject->gpus.push_back(absl::StrCat(device.tier_name, ": ", FieldText(info.name),
                                           driver.empty() ? "" : ", ", driver));
    }
  }
}

const char* SplitModeName(SplitMode mode) {
  switch (mode) {
    case SplitMode::kRow:
      return "row";
    case SplitMode::kNone:
      return "none";
    case SplitMode::kLayer:
      break;
  }
  return "layer";
}

BenchDevices DevicesAskedFor(const EngineOptions& options) {
  const PlacementRequest& request = options.placement;
  BenchDevices asked;
  asked.devices = absl::StrJoin(request.devices, ",");
  asked.split_mode = SplitModeName(request.mode);
  asked.overrides =
      absl::StrJoin(request.overrides, ",", [](std::string* text, const TensorOverride& one) {
        absl::StrAppend(text, one.expression, "=", one.device);
      });
  if (request.cpu_experts != 0) {
    asked.cpu_experts = request.cpu_experts == PlacementRequest::kAllLayers
                            ? "all"
                            : absl::StrCat(request.cpu_experts);
  }
  if (request.hot_experts) asked.hot_experts = absl::StrCat(*request.hot_experts);
  asked.memory =
      absl::StrJoin(request.memory_limits, ",", [](std::string* text, const SplitShare& limit) {
        absl::StrAppend(text, limit.device, ":", FormatBytes(static_cast<uint64_t>(limit.amount)));
      });
  asked.numerics = options.plugins.numerics == TRINE_NUMERICS_EXACT ? "exact" : "fast";
  asked.plugin_options = absl::StrJoin(
      options.plugins.plugin_options, ";", [](std::string* text, const PluginOption& one) {
        absl::StrAppend(text, one.plugin, one.plugin.empty() ? "" : ":", one.setting);
      });
  return asked;
}

// Returns the devices that have layers, or share rows of them, in the model's order: "cpu+dgpu0".
std::string BackendText(const Model& model, const EngineOptions& options) {
  if (options.placement.mode == SplitMode::kRow) return absl::StrJoin(model.StageDevices(0), "+");
  return absl::StrJoin(model.places(), "+", [](std::string* text, const SegmentPlace& place) {
    absl::StrAppend(text, place.device_name);
  });
}

}  // namespace

BenchRunner::BenchRunner(Engine* engine)
    : engine_(engine),
      sequence_(engine->NewSequence()),
      tokens_(RandomTokens(engine->context(), engine->config().n_vocab)) {}

absl::Status BenchRunner::Extend(int64_t n_tokens) {
  const auto next = std::span<const int32_t>(tokens_).subspan(
      static_cast<size_t>(sequence_->size()), static_cast<size_t>(n_tokens));
  if (absl::Status s = sequence_->Append(next); !s.ok()) return s;
  Sequence* const one[] = {sequence_.get()};
  return engine_->Evaluate(one);
}

absl::Status BenchRunner::Reach(int64_t depth) {
  // Keep evaluated tokens, except the last one, which is evaluated again.
  sequence_->Truncate(std::min(depth, sequence_->size()));
  return Extend(depth - sequence_->size());
}

absl::Status BenchRunner::WarmUp(const BenchTest& test) {
  BenchTest less = test;
  less.n_gen = test.n_prompt > 0 ? 0 : 1;
  return Run(less).status();
}

// Runs the timed part, from where the sequence is.
absl::StatusOr<uint64_t> BenchRunner::Time(const BenchTest& test) {
  const Clock::time_point begin = Clock::now();
  if (test.n_prompt > 0) {
    if (absl::Status s = Extend(test.n_prompt); !s.ok()) return s;
  }
  for (int64_t i = 0; i < test.n_gen; ++i) {
    if (absl::Status s = Extend(1); !s.ok()) return s;
  }
  return Since(begin);
}

absl::StatusOr<uint64_t> BenchRunner::Run(const BenchTest& test) {
  if (absl::Status s = Reach(test.n_depth); !s.ok()) return s;
  return Time(test);
}

absl::StatusOr<BenchOps> BenchRunner::RunWithOps(const BenchTest& test) {
  if (absl::Status s = Reach(test.n_depth); !s.ok()) return s;
  BenchOps ops;
  ops.n_tokens = test.Tokens();
  const uint64_t run_ns = engine_->model()->run_ns();
  engine_->StartOpTimes();
  const auto wall_ns = Time(test);
  ops.ops = engine_->StopOpTimes();
  if (!wall_ns.ok()) return wall_ns.status();
  ops.wall_ns = *wall_ns;
  ops.run_ns = engine_->model()->run_ns() - run_ns;
  std::stable_sort(ops.ops.begin(), ops.ops.end(),
                   [](const OpTime& a, const OpTime& b) { return a.ns > b.ns; });
  return ops;
}

BusyWatch::BusyWatch(const Engine& engine)
    : engine_(engine), begin_(Clock::now()), before_(Sum()) {}

std::map<std::string, uint64_t> BusyWatch::Sum() const {
  std::map<std::string, uint64_t> busy;
  for (const SegmentCounters& segment : engine_.segments()) {
    for (const DeviceUse& use : segment.devices) busy[use.device_name] += use.busy_ns;
    if (segment.devices.empty()) busy[segment.device_name] += segment.stage.busy_ns;
  }
  return busy;
}

std::vector<BusyShare> BusyWatch::Shares() const {
  const auto wall = static_cast<double>(Since(begin_));
  std::vector<BusyShare> shares;
  for (const auto& [device, ns] : Sum()) {
    const auto known = before_.find(device);
    // The counters begin anew when the model is placed again.
    const uint64_t before = known == before_.end() || known->second > ns ? 0 : known->second;
    shares.push_back({device, static_cast<double>(ns - before) / wall});
  }
  if (shares.size() < 2) shares.clear();
  return shares;
}

SlotUse SlotWatch::Sum() const {
  SlotUse sum;
  const std::shared_ptr<const Model> model = engine_.model();
  for (size_t stage = 0; stage < model->stage_count(); ++stage) {
    const DividedExperts* const experts = model->experts(stage);
    if (experts == nullptr) continue;
    sum.choices += experts->all_hits();
    sum.in_slots += experts->home_hits();
    sum.moved += experts->moved_experts();
    sum.moved_bytes += experts->moved_bytes();
    sum.in_place = experts->in_place();
  }
  return sum;
}

SlotUse SlotWatch::Use() const {
  SlotUse use = Sum();
  // The counters begin anew when the model is placed again.
  if (use.choices < before_.choices || use.moved < before_.moved) return use;
  use.choices -= before_.choices;
  use.in_slots -= before_.in_slots;
  use.moved -= before_.moved;
  use.moved_bytes -= before_.moved_bytes;
  return use;
}

absl::StatusOr<std::optional<BenchReads>> ReadsOf(const Engine& engine, const BenchTest& test) {
  if (!test.IsDecode()) return std::optional<BenchReads>();
  const std::shared_ptr<const Model> placed = engine.model();
  const Model& model = *placed;
  const auto bytes = CountDecodeBytes(engine.file(), model.config(), model.limits());
  if (!bytes.ok()) return bytes.status();
  BenchReads reads;
  reads.weight_bytes = static_cast<double>(bytes->weights);
  reads.kv_bytes = bytes->MeanKv(test.n_depth, test.n_gen);
  return std::make_optional(reads);
}

BenchSubject DescribeSubject(const Engine& engine, const EngineOptions& options) {
  const gguf::TensorSum all = gguf::Summarize(engine.file()).all;
  const std::shared_ptr<const Model> placed = engine.model();
  const Model& model = *placed;
  BenchSubject subject;
  subject.model_path = engine.file().parts()[0].path;
  const auto parameters = static_cast<double>(all.parameters);
  const std::string count = all.parameters >= 1000000000
                                ? absl::StrFormat("%.2fB", parameters / 1e9)
                                : absl::StrFormat("%.0fM", parameters / 1e6);
  const std::string type = gguf::FileTypeOf(engine.file().metadata());
  subject.model_type =
      absl::StrCat(model.config().architecture, " ", count, type.empty() ? "" : " ", type);
  subject.model_bytes = all.bytes;
  subject.model_parameters = all.parameters;
  subject.backend = BackendText(model, options);
  DescribeChips(engine, &subject);
  subject.version = Version();
  subject.weights = model.weights();
  subject.asked = DevicesAskedFor(options);
  subject.placement = DescribePlacement(engine, options);
  return subject;
}

}  // namespace trine
