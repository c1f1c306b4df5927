// Tests passes that leave the device of their layers: the same bits on any route, the route that
// costs decide, and no second copy of weights.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/cost/device_costs.h"
#include "gmock/gmock.h"
#include "runtime/base/machine_report.h"
#include "runtime/engine/generate.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/placement/calibration.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// several0 and several1 share the CPU's memory, several2 and several3 have their own.
EngineOptions Options(const std::string& path) {
  EngineOptions options = TestOptions(path);
  options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
  options.threads = 1;
  return options;
}

class RouteFamilyTest : public testing::TestWithParam<std::string> {};

TEST_P(RouteFamilyTest, NoDetourShows) {
  const ModelShape shape = *FindPreset(GetParam());
  const TempFile file(*MakeModelBytes(shape));
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(GetParam())));
  std::vector<int32_t> tokens(70);
  for (int32_t& t : tokens) {
    t = static_cast<int32_t>(random() % static_cast<uint32_t>(shape.vocab));
  }
  const auto alone = MustLoad(Options(file.path()));
  ASSERT_NE(alone, nullptr);
  const std::string expected = HashOf(alone.get(), tokens);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 40 : 6;
  uint64_t detours = 0;
  for (int round = 0; round < rounds; ++round) {
    EngineOptions options = Options(file.path());
    std::vector<std::string> devices = {"cpu", absl::StrCat("several", random() % 4)};
    std::shuffle(devices.begin(), devices.end(), random);
    const auto first = static_cast<int64_t>(random() % static_cast<uint64_t>(shape.layers));
    const std::string split =
        absl::StrCat(devices[0], ":", first, ",", devices[1], ":", shape.layers - first);
    options.placement.split = SplitOf(split);
    options.placement.dispatch.from_tokens = 1 + static_cast<int64_t>(random() % 12);
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 90);
    options.pack = random() % 2 == 0;
    options.use_mmap = random() % 3 != 0;
    SCOPED_TRACE(absl::StrCat(split, ", from ", options.placement.dispatch.from_tokens,
                              " tokens on, ", options.batch_tokens, " tokens a pass",
                              options.pack ? ", packed" : "", options.use_mmap ? "" : ", read"));
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    ASSERT_EQ(HashOf(engine.get(), tokens), expected);
    for (const SegmentCounters& segment : engine->segments()) detours += segment.detours;
  }
  EXPECT_GT(detours, 0u);
}

std::vector<std::string> Families() {
  std::vector<std::string> names;
  for (const ModelShape& shape : TinyPresets()) names.emplace_back(shape.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, RouteFamilyTest, testing::ValuesIn(Families()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class RouteTest : public testing::Test {
 protected:
  RouteTest() : file_(Model()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = 4;
    spec.type = quant::Type::kQ8_0;  // packed by the CPU backend
    spec.n_embd = 128;
    spec.n_ff = 256;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions With(const std::string& split, int64_t from_tokens) {
    EngineOptions options = Options(file_.path());
    options.placement.split = SplitOf(split);
    options.placement.dispatch.from_tokens = from_tokens;
    options.context = 128;
    options.max_sequences = 3;
    options.batch_tokens = 48;
    options.stage_limit = std::chrono::milliseconds(400);
    options.log = [this](uint32_t, const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_ += line + "\n";
    };
    return options;
  }

  struct Outcome {
    absl::Status status;
    std::vector<std::string> said;
    std::vector<LostDevice> lost;
    std::vector<SegmentCounters> segments;
  };

  // Three sequences, with prompts of 3, 12 and 21 tokens.
  Outcome Generate(const EngineOptions& options) {
    Outcome outcome;
    auto engine = Engine::Load(options);
    outcome.status = engine.status();
    if (!engine.ok()) return outcome;
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> generate(3);
    std::vector<Generation> results(3);
    for (size_t i = 0; i < results.size(); ++i) {
      SessionOptions session_options;
      session_options.sampler.seed = 3 + i;
      session_options.ignore_eos = true;
      session_options.logits_hash = true;
      auto session = Session::Create(engine->get(), session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      EXPECT_TRUE(
          (*session)->Append(std::vector<int32_t>(3 + 9 * i, static_cast<int32_t>(40 + i))).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      generate[i].max_tokens = 10;
    }
    outcome.status = GenerateTogether(pointers, generate, results);
    for (size_t i = 0; i < results.size(); ++i) {
      outcome.said.push_back(absl::StrCat(sessions[i]->logits_hash().Text(), " ", results[i].text));
    }
    outcome.lost = (*engine)->lost_devices();
    outcome.segments = (*engine)->segments();
    return outcome;
  }

  TempFile file_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(RouteTest, OnlyPassesOfSomeSizeTakeIt) {
  const Outcome alone = Generate(Options(file_.path()));
  ASSERT_TRUE(alone.status.ok()) << alone.status;
  for (const char* helper : {"several1", "several2"}) {  // a twin, and one that fetches weights
    SCOPED_TRACE(helper);
    const Outcome outcome = Generate(With(absl::StrCat("cpu:3,", helper, ":1"), 4));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.said, alone.said);
    ASSERT_EQ(outcome.segments.size(), 2u);
    EXPECT_EQ(outcome.segments[0].helper, helper);
    EXPECT_GT(outcome.segments[0].detours, 0u) << "the prompts";
    EXPECT_LT(outcome.segments[0].detours, outcome.segments[0].stage.jobs - 5) << "what is written";
    // No pass is that large.
    EXPECT_EQ(Generate(With(absl::StrCat("cpu:3,", helper, ":1"), 49)).segments[0].detours, 0u);
  }
}

TEST_F(RouteTest, WhoMayHelpWhom) {
  const auto detours = [&](const EngineOptions& options) {
    const auto engine = MustLoad(options);
    std::vector<std::string> texts;
    for (const RouteInfo& d : engine->model()->routes()) {
      texts.push_back(absl::StrCat(d.stage, " ", d.helper, " ",
                                   d.kind == RouteKind::kTwin ? "twin" : "streamed", " ",
                                   d.first_tokens));
    }
    return texts;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(detours(With("cpu:2,several3:2", 5)), ElementsAre("0 several3 streamed 5"))
      << "what is in memory of its own stays there";
  EXPECT_THAT(detours(With("cpu:2,several0:2", 5)),
              ElementsAre("0 several0 twin 5", "1 cpu twin 5"));
  EXPECT_THAT(detours(With("cpu:4", 5)), IsEmpty()) << "nobody else was named";
  EngineOptions off = With("cpu:2,several3:2", 5);
  off.placement.dispatch.on = false;
  EXPECT_THAT(detours(off), IsEmpty());
  // Weights that are packed, and not in a mapped file, exist nowhere in the file's layout.
  EngineOptions read = With("cpu:2,several3:2", 5);
  read.use_mmap = false;
  EXPECT_THAT(detours(read), IsEmpty());
  read.pack = false;
  EXPECT_THAT(detours(read), ElementsAre("0 several3 streamed 5"));
  EngineOptions rows = With("cpu:2,several3:2", 5);
  rows.placement.mode = SplitMode::kRow;
  EXPECT_THAT(detours(rows), IsEmpty());
}

TEST_F(RouteTest, NothingIsThereTwice) {
  for (const char* split : {"cpu:3,several2:1", "cpu:3,several0:1"}) {
    SCOPED_TRACE(split);
    EngineOptions without = With(split, 0);
    without.placement.dispatch.on = false;
    const auto a = MustLoad(without), b = MustLoad(With(split, 2));
    ASSERT_FALSE(b->model()->routes().empty());
    EXPECT_EQ(a->model()->kv_bytes(), b->model()->kv_bytes());
    EXPECT_EQ(a->model()->packed_bytes(), b->model()->packed_bytes());
    for (size_t i = 0; i < 2; ++i) {
      const DeviceWeights x = a->model()->weights()[i], y = b->model()->weights()[i];
      EXPECT_EQ(x.packed_bytes, y.packed_bytes) << x.device_name;
      EXPECT_EQ(x.plain.copied, y.plain.copied) << x.device_name;
    }
  }
}

// A device that shares memory but refuses files has its weights in an arena, and the file has
// released them.
TEST_F(RouteTest, WhatWasMovedIsStreamedFromWhereItIs) {
  const Outcome alone = Generate(Options(file_.path()));
  for (const bool mapped : {false, true}) {
    EngineOptions options = With("packing1:3,several3:1", 2);
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_PACKING_PLUGIN,
                                             TRINE_SEVERAL_PLUGIN};
    setenv("TRINE_FIXTURE_PACKING", "none,no-files,told", 1);
    options.use_mmap = mapped;
    options.pack = false;
    const Outcome outcome = Generate(options);
    unsetenv("TRINE_FIXTURE_PACKING");
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.said, alone.said);
    EXPECT_EQ(outcome.segments[0].helper, "several3");
    EXPECT_GT(outcome.segments[0].detours, 0u);
  }
}

// Nor does it make one.
TEST_F(RouteTest, ATwinThatRefusesFilesIsNone) {
  for (const char* says : {"none,no-files,told", "none,no-files"}) {
    EngineOptions options = With("cpu:3,packing1:1", 2);
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_PACKING_PLUGIN};
    setenv("TRINE_FIXTURE_PACKING", says, 1);
    const auto engine = MustLoad(options);
    unsetenv("TRINE_FIXTURE_PACKING");
    ASSERT_NE(engine, nullptr);
    for (const RouteInfo& detour : engine->model()->routes()) EXPECT_NE(detour.stage, 0u);
    // The arena holds packing1's own layer, which the CPU may read there, too.
    setenv("TRINE_FIXTURE_PACKING", says, 1);
    options.placement.dispatch.on = false;
    const auto without = MustLoad(options);
    unsetenv("TRINE_FIXTURE_PACKING");
    EXPECT_EQ(engine->model()->arena_bytes(), without->model()->arena_bytes()) << says;
    EXPECT_GT(without->model()->arena_bytes(), 0u);
    EXPECT_EQ(engine->model()->packed_bytes(), without->model()->packed_bytes());
  }
}

TEST_F(RouteTest, ACacheThatCannotBeSharedIsItsOwn) {
  const Outcome alone = Generate(Options(file_.path()));
  int without = 0;
  for (int n = 1; n < 30; ++n) {
    EngineOptions options = With("cpu:3,several0:1", 2);
    options.faults = absl::StrCat("cpu:oom@import=", n);
    const Outcome outcome = Generate(options);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.said, alone.said);
    EXPECT_THAT(outcome.lost, IsEmpty()) << n;
    if (!outcome.segments.empty() && outcome.segments[0].helper.empty()) ++without;
  }
  EXPECT_GT(without, 0);
}

TEST_F(RouteTest, LimitsOfMemoryAreTheHelpersToo) {
  EngineOptions options = With("", 2);
  options.placement.devices = {"cpu", "several2"};
  options.placement.memory_limits = LimitsOf("several2:1M");
  auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_THAT(engine->model()->routes(), IsEmpty());
  EXPECT_THAT(log_, HasSubstr("cpu goes without the help of several2"));
  options.placement.memory_limits = {};
  options.placement.split = SplitOf("cpu:3,several2:1");
  options.placement.devices = {};
  engine = MustLoad(options);
  EXPECT_EQ(engine->model()->routes().size(), 1u);
}

TEST_F(RouteTest, AHelperThatFailsIsDoneWithout) {
  const Outcome alone = Generate(Options(file_.path()));
  for (const char* helper : {"several1", "several2"}) {
    for (const char* fault :
         {"lost@run=3", "garbage=nan@run=2", "garbage=status@run=4", "lost@plan=2", "hang@run=3"}) {
      SCOPED_TRACE(absl::StrCat(helper, ":", fault));
      EngineOptions options = With(absl::StrCat("cpu:3,", helper, ":1"), 2);
      options.faults = absl::StrCat(helper, ":", fault);
      const Outcome outcome = Generate(options);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.said, alone.said);
      ASSERT_EQ(outcome.lost.size(), 1u);
      EXPECT_EQ(outcome.lost[0].name, helper);
      ASSERT_EQ(outcome.segments.size(), 1u);
      EXPECT_EQ(outcome.segments[0].helper, "");
    }
  }
}

TEST_F(RouteTest, WantOfMemoryForADetourIsNoFault) {
  const Outcome alone = Generate(Options(file_.path()));
  // The helper's own layer takes so many allocations; those of its route come after them.
  for (int alloc = 1; alloc < 60; ++alloc) {
    log_.clear();
    EngineOptions options = With("cpu:3,several2:1", 2);
    options.faults = absl::StrCat("several2:oom@alloc=", alloc);
    const Outcome outcome = Generate(options);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.said, alone.said);
    const bool without = log_.find("cpu goes without the help of several2") != std::string::npos;
    if (!without) continue;  // the fault hit its own layer, or nothing
    EXPECT_THAT(outcome.lost, IsEmpty());
    EXPECT_EQ(outcome.segments[0].helper, "");
    return;
  }
  ADD_FAILURE() << "no allocation was the detour's";
}

TEST_F(RouteTest, MeasuredCostsSayFromWhereOn) {
  const std::string path = absl::StrCat(file_.path(), ".calibration");
  MachineOptions machine;
  machine.registry = Options(file_.path()).plugins;
  const Inventory inventory = DescribeMachine(machine);
  Calibration calibration;
  for (const InventoryDevice& device : inventory.devices) {
    if (device.registry_device == InventoryDevice::kNone) continue;  // a GPU without a backend
    const trine_device_info& info = inventory.registry.devices[device.registry_device].info;
    DeviceCosts costs = GuessCosts(info, 1);
    // Ten nanoseconds per weight and token at home, a tenth of that on the helper, and 0.5 ms per
    // call: the smallest matrix, 128 by 32, is worth it from 14 tokens on, the largest from 2 on.
    const bool helps = device.tier_name == "several2";
    costs.matmul[TRINE_DTYPE_Q8_0] =
        helps ? CostCurve({{1, 1}, {256, 256}}) : CostCurve({{1, 10}, {256, 2560}});
    costs.matmul_ns = 1;
    costs.run_ns = helps ? 5e5 : 1;
    costs.in = costs.out = {1, 1e-6};
    costs.stream_byte_ns = 1e-6;
    calibration.Set(CalibrationKey(inventory, device, 1), costs);
  }
  ASSERT_TRUE(calibration.Write(path).ok());
  EngineOptions options = With("cpu:3,several2:1", 0);
  options.placement.calibration = path;
  const auto first_tokens = [&] {
    const auto engine = MustLoad(options);
    const std::vector<RouteInfo> detours = engine->model()->routes();
    return detours.size() == 1 ? detours[0].first_tokens : -1;
  };
  EXPECT_EQ(first_tokens(), 4) << "passes of three sequences that write stay where they were put";
  options.placement.dispatch.prompts_only = false;
  EXPECT_EQ(first_tokens(), 2);
  // With the times swapped, nothing is gained.
  options.placement.split = SplitOf("cpu:1,several3:3");
  EXPECT_THAT(MustLoad(options)->model()->routes(), IsEmpty());
  std::filesystem::remove(path);
}

TEST_F(RouteTest, WhatStandsBetweenProductsGoesAlong) {
  MachineOptions machine;
  machine.registry = Options(file_.path()).plugins;
  DeviceSet devices(DescribeMachine(machine), 1, {});
  const auto file = gguf::File::Open(file_.path(), {});
  ASSERT_TRUE(file.ok());
  const auto config = ReadModelConfig(**file);
  ASSERT_TRUE(config.ok());
  SegmentLimits limits;
  limits.max_context = 64;
  limits.kv_blocks = 1;
  const LayerSpan span = {0, 1, false, false};
  const auto graph = BuildSegmentGraph(**file, *config, limits, span, {.finish = false});
  ASSERT_TRUE(graph.ok());
  DispatchOptions options;
  options.rule.from_tokens = 16;
  std::vector<std::string> lines;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  for (const char* name : {"cpu", "several2"}) {
    auto device = devices.Open(name);
    ASSERT_TRUE(device.ok()) << device.status();
    options.costs[name].costs = GuessCosts((*device)->info(), 1);
    options.helpers.push_back({*device, name});
  }
  const SegmentPlace home = {options.helpers[0].device, "cpu", span};
  std::string refused = "attn_k.weight";
  const auto can_stream = [&](const gguf::TensorInfo& t) { return !t.name.ends_with(refused); };
  const auto plan = PlanRoute(home, *graph, limits, options, {}, can_stream);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->FirstTokens(), 16);
  EXPECT_EQ(plan->helper.name, "several2");
  ASSERT_EQ(plan->helper_ops.size(), 1u);
  for (size_t op = 0; op < graph->graph.n_ops(); ++op) {
    const uint32_t kind = graph->graph.op(op).kind;
    std::string name;
    for (const WeightUse& use : graph->weights) {
      if (use.tensor == graph->graph.op(op).in[0]) name = std::string(use.info->name);
    }
    const bool product = kind == TRINE_OP_MATMUL && name != "blk.0.attn_k.weight";
    EXPECT_EQ(plan->helper_ops[0][op], product || kind == TRINE_OP_GLU)
        << op << " of kind " << kind;
  }
  EXPECT_THAT(lines, Each(HasSubstr("dispatch: cpu, layer 0, ")));
  EXPECT_THAT(lines,
              Contains(HasSubstr("ffn_up.weight q8_0 [128, 256], tokens: cpu up to 15 (fewer "
                                 "than 16 tokens), several2 from 16 on (at least 16 tokens)")));
  EXPECT_THAT(lines, Contains(HasSubstr("attn_k.weight q8_0 [128, 32], tokens: cpu from 1 on (the "
                                        "host has its weights packed only)")));
}

}  // namespace
}  // namespace trine
