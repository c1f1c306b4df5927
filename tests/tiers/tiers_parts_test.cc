// Parts of layers on other devices than the layers, on CPU, Vulkan and HIP in one process: fetched
// weights, experts that devices share, their counts, and the memory that parts take.
#include <fstream>

#include "tests/tiers/tiers_fixture.h"

namespace trine {
namespace {

class TiersPartsTest : public TiersTest {};

// A GPU with its own memory reads prompts with weights that it fetches; the devices that have these
// weights write. Dense models and mixtures of experts, all layers divided or some.
TEST_F(TiersPartsTest, WeightsElsewhereAreFetchedForPrompts) {
  const TempFile moe(*MakeModelBytes(*FindPreset("tiny-mixtral")));
  struct Case {
    std::string model, split, overrides;
  };
  const std::vector<Case> cases = {
      {file_.path(), "dgpu:100%", "ffn_(up|gate|down)=cpu"},
      {file_.path(), "cpu:1,dgpu:4", "blk.[24].ffn_(up|gate)=igpu,ffn_down=cpu"},
      {moe.path(), "dgpu:100%", "_exps=cpu"},
      {moe.path(), "dgpu:100%", "blk.1.*_exps=igpu,_exps=cpu"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.overrides);
    EngineOptions options = Options();
    options.model_path = c.model;
    options.context = 128;
    options.placement.split = SplitOf("cpu:100%");
    const auto alone = MustLoad(options);
    ASSERT_NE(alone, nullptr);
    options.placement.split = SplitOf(c.split);
    options.placement.overrides = OverridesOf(c.overrides);
    options.placement.dispatch.from_tokens = 4;
    options.batch_tokens = 16;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<RouteInfo> routes = engine->model()->routes();
    ASSERT_FALSE(routes.empty());
    EXPECT_EQ(routes.back().kind, RouteKind::kFetched);
    EXPECT_EQ(routes.back().first_tokens, 4);
    std::vector<int32_t> prompt(21);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(7 + i * 11 % 200);
    EXPECT_EQ(MustSay(engine.get(), {prompt}, {12}, 7), MustSay(alone.get(), {prompt}, {12}, 7));
    EXPECT_GT(engine->segments().back().detours, 0u);
    EXPECT_EQ(HashOf(engine.get(), prompt), HashOf(alone.get(), prompt));
  }
}

// Experts that a GPU and the CPU share, while they are moved and devices are lost: the bits are the
// CPU's.
TEST_F(TiersPartsTest, DividedExpertsDoNotShow) {
  std::mt19937 random(21);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 60 : 6;
  uint64_t moved = 0;
  for (int round = 0; round < rounds; ++round) {
    const char* const presets[] = {"tiny-mixtral", "tiny-qwen3moe", "tiny-qwen2moe",
                                   "tiny-gpt-oss"};
    ModelShape shape = *FindPreset(presets[round % 4]);
    const TempFile moe(*MakeModelBytes(shape));
    EngineOptions options = Options();
    options.model_path = moe.path();
    options.context = 512;
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 24);
    options.placement.split = SplitOf("cpu:100%");
    const auto alone = MustLoad(options);
    ASSERT_NE(alone, nullptr);
    const char* const splits[] = {"dgpu:100%", "igpu:100%", "dgpu:2,cpu:1", "igpu:1,dgpu:2"};
    options.placement.split = SplitOf(splits[random() % (shape.layers == 3 ? 4 : 2)]);
    options.placement.hot_experts = 1 + static_cast<int64_t>(random() % 2);
    options.placement.dispatch.on = random() % 2 == 0;
    options.pack = random() % 2 == 0;
    if (round % 3 == 2) {
      options.faults =
          absl::StrCat(options.placement.split[0].device, "0:", random() % 2 == 0 ? "lost" : "oom",
                       "@run=", 1 + random() % 60);
    }
    SCOPED_TRACE(absl::StrCat(presets[round % 4], ", ", options.placement.split[0].device, ", ",
                              *options.placement.hot_experts, " slots, ", options.batch_tokens,
                              " tokens a pass, ", options.faults));
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    std::vector<int32_t> prompt(9 + random() % 30);
    for (int32_t& token : prompt) token = static_cast<int32_t>(3 + random() % 200);
    EXPECT_EQ(MustSay(engine.get(), {prompt}, {90}, 7), MustSay(alone.get(), {prompt}, {90}, 7));
    EXPECT_EQ(HashOf(engine.get(), prompt), HashOf(alone.get(), prompt));
    const auto model = engine->model();
    for (size_t stage = 0; stage < model->stage_count(); ++stage) {
      if (model->experts(stage) == nullptr) continue;
      EXPECT_GT(model->experts(stage)->all_hits(), 0u);
      moved += model->experts(stage)->moved_experts();
    }
  }
  EXPECT_GT(moved, 0u) << "the test should see experts that are moved";
}

// A GPU that computes its experts beside the CPU's needs no thread of its own: where the CPU's team
// has all processors, that thread would have to wait for one.
TEST_F(TiersPartsTest, AGpuBesideTheCpuHasNoThread) {
  const auto device_threads = [] {
    int64_t count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(task.path() / "comm");
      std::string name;
      std::getline(file, name);
      count += name == "trine-device" ? 1 : 0;
    }
    return count;
  };
  const ModelShape shape = *FindPreset("tiny-qwen3moe");
  const TempFile moe(*MakeModelBytes(shape));
  for (const char* split : {"dgpu:100%", "igpu:100%"}) {
    SCOPED_TRACE(split);
    EngineOptions options = Options();
    options.model_path = moe.path();
    options.context = 128;
    options.placement.split = SplitOf(split);
    options.placement.dispatch.on = false;
    options.placement.hot_experts = shape.experts / 2;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    (void)MustSay(engine.get(), {{5, 90, 17, 33}}, {8}, 7);
    const auto model = engine->model();
    ASSERT_NE(model->experts(0), nullptr);
    EXPECT_GT(model->experts(0)->home_hits(), 0u) << "the GPU should have computed experts";
    EXPECT_EQ(device_threads(), 0);
  }
}

// An integrated GPU that reads the file's pages divides experts with the CPU, and copies none. If
// it turns out that it can't import the pages, it has slots.
TEST_F(TiersPartsTest, AnIntegratedGpuSharesExperts) {
  for (const char* preset : {"tiny-mixtral", "tiny-gpt-oss"}) {
    const ModelShape shape = *FindPreset(preset);
    const TempFile moe(*MakeModelBytes(shape));
    EngineOptions options = Options();
    options.model_path = moe.path();
    options.context = 256;
    options.pack = false;
    options.placement.split = SplitOf("cpu:100%");
    const auto alone = MustLoad(options);
    ASSERT_NE(alone, nullptr);
    options.placement.split = SplitOf("igpu:100%");
    options.placement.dispatch.on = false;
    options.placement.hot_experts = shape.experts / 2;
    const std::vector<int32_t> prompt = {5, 90, 17, 33, 101, 64, 2};
    const auto expected = MustSay(alone.get(), {prompt}, {40}, 7);
    {
      auto setup = PrepareModel(options);
      ASSERT_TRUE(setup.ok()) << setup.status();
      const auto report = setup->placer->Explain();
      ASSERT_TRUE(report.ok()) << report.status();
      const auto planned = SlotsOf(report->problem, report->placement.segments[0].range);
      ASSERT_TRUE(planned.has_value());
      EXPECT_TRUE(planned->in_place);
      EXPECT_DOUBLE_EQ(planned->share, 0.5);
    }
    uint64_t without_copies = 0;
    for (const bool refused : {false, true}) {
      SCOPED_TRACE(absl::StrCat(preset, refused ? ", imports are refused" : ""));
      for (int i = 1; refused && i <= 8; ++i) {
        absl::StrAppend(&options.faults, i > 1 ? ";" : "", "igpu0:oom@import=", i);
      }
      const auto engine = MustLoad(options);
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(MustSay(engine.get(), {prompt}, {40}, 7), expected);
      const auto model = engine->model();
      const DividedExperts* const experts = model->experts(0);
      ASSERT_NE(experts, nullptr);
      EXPECT_GT(experts->home_hits(), 0u);
      EXPECT_LT(experts->home_hits(), experts->all_hits());
      EXPECT_EQ(experts->in_place(), !refused);
      const uint64_t bytes = model->BytesOn("igpu0");
      if (experts->in_place()) {
        EXPECT_EQ(experts->moved_experts(), 0u);
        without_copies = bytes;
      } else {
        EXPECT_GT(bytes, without_copies);
      }
    }
  }
}

// An engine that knows how often experts were chosen begins with the most chosen ones in slots.
TEST_F(TiersPartsTest, HotExpertsAreThereFromTheBeginning) {
  for (const char* preset : {"tiny-qwen3moe", "tiny-gpt-oss"}) {
    for (const bool pack : {true, false}) {
      SCOPED_TRACE(absl::StrCat(preset, pack ? ", packed" : ""));
      const ModelShape shape = *FindPreset(preset);
      const TempFile moe(*MakeModelBytes(shape));
      EngineOptions options = Options();
      options.model_path = moe.path();
      options.context = 256;
      options.pack = pack;
      options.placement.split = SplitOf("cpu:100%");
      const auto alone = MustLoad(options);
      ASSERT_NE(alone, nullptr);
      const std::vector<int32_t> prompt = {5, 90, 17, 33, 101};
      const std::string expected = HashOf(alone.get(), prompt);
      options.placement.split = SplitOf("dgpu:100%");
      options.placement.dispatch.on = false;
      options.placement.hot_experts = 2;
      // The last experts of each layer: slots begin with the first ones otherwise.
      options.expert_hits = std::make_shared<ExpertHits>(shape.layers, shape.experts);
      for (int64_t layer = 0; layer < shape.layers; ++layer) {
        options.expert_hits->Add(layer, shape.experts - 1, 1000000);
        options.expert_hits->Add(layer, shape.experts - 2, 900000);
      }
      const auto engine = MustLoad(options);
      ASSERT_NE(engine, nullptr);
      const auto model = engine->model();
      ASSERT_NE(model->experts(0), nullptr);
      const ExpertSlots& slots = model->experts(0)->slots(0);
      EXPECT_EQ(slots.InSlot(0) + slots.InSlot(1), 2 * shape.experts - 3);
      EXPECT_EQ(HashOf(engine.get(), prompt), expected);
      options.expert_hits = std::make_shared<ExpertHits>(shape.layers + 1, shape.experts);
      EXPECT_EQ(Engine::Load(options).status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

// Passes with fetched weights, and those that pass ids between devices: with a file all choices are
// counted on three kinds of devices.
TEST_F(TiersPartsTest, ExpertsAreCountedOnAllDevices) {
  const ModelShape shape = *FindPreset("tiny-qwen3moe");
  const TempFile moe(*MakeModelBytes(shape));
  const std::string stats = moe.path() + ".stats";
  std::vector<int32_t> prompt(21);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(7 + i * 11 % 200);
  std::vector<std::vector<uint64_t>> first;
  for (const char* split : {"cpu:100%", "igpu:100%", "dgpu:100%", "dgpu:1,igpu:1,cpu:1"}) {
    for (const char* overrides : {"", "_exps=cpu"}) {
      for (const int64_t from_tokens : {0, 4}) {
        SCOPED_TRACE(absl::StrCat(split, " ", overrides, " from ", from_tokens));
        EngineOptions options = Options();
        options.model_path = moe.path();
        options.context = 128;
        options.batch_tokens = 16;
        options.placement.split = SplitOf(split);
        if (*overrides != '\0') options.placement.overrides = OverridesOf(overrides);
        options.placement.dispatch.on = from_tokens != 0;
        options.placement.dispatch.from_tokens = from_tokens;
        options.expert_stats = stats;
        auto engine = MustLoad(options);
        ASSERT_NE(engine, nullptr);
        HashOf(engine.get(), prompt);
        const ExpertCounts counts = engine->counted_experts();
        if (first.empty()) first = counts.hits;
        EXPECT_EQ(counts.hits, first);
        EXPECT_EQ(counts.choices(), prompt.size() * static_cast<uint64_t>(shape.layers) *
                                        static_cast<uint64_t>(shape.experts_used));
        engine.reset();
        EXPECT_TRUE(std::filesystem::remove(stats));
      }
    }
  }
}

// A GPU that has parts of layers takes no more memory than was planned, fetched weights included.
TEST_F(TiersPartsTest, PartsTakeTheMemoryThatWasPlanned) {
  const TempFile moe(*MakeModelBytes(*FindPreset("tiny-qwen3moe")));
  EngineOptions options = Options();
  options.model_path = moe.path();
  options.context = 1024;
  options.placement.split = SplitOf("dgpu:100%");
  for (const int64_t hot : {0, 3}) {
    for (const bool fetches : {false, true}) {
      SCOPED_TRACE(absl::StrCat(hot, " hot experts, ", fetches));
      options.placement.cpu_experts = PlacementRequest::kAllLayers;
      options.placement.hot_experts = hot;
      const std::string calibration = file_.path() + ".calibration";
      Calibrate(options, {{"cpu", fetches ? 1000 : 0.01}, {"dgpu0", fetches ? 0.01 : 1000}},
                calibration);
      options.placement.calibration = calibration;
      auto setup = PrepareModel(options);
      ASSERT_TRUE(setup.ok()) << setup.status();
      const auto report = setup->placer->Explain();
      ASSERT_TRUE(report.ok()) << report.status();
      uint64_t planned = 0;
      for (const MemoryUse& use : report->placement.devices) {
        if (use.name == "dgpu0") planned = use.used_bytes;
      }
      const auto engine = MustLoad(options);
      ASSERT_NE(engine, nullptr);
      ASSERT_EQ(engine->model()->routes().size(), fetches ? 1u : 0u);
      const uint64_t taken = engine->model()->BytesOn("dgpu0");
      EXPECT_LE(taken, planned);
      EXPECT_GT(static_cast<double>(taken), 0.6 * static_cast<double>(planned));
      std::filesystem::remove(calibration);
      std::filesystem::remove(calibration + ".lock");
    }
  }
}

// Where a GPU fetches weights for each pass, passes have as many tokens as are predicted to be
// best, unless the user says how many.
TEST_F(TiersPartsTest, PassesThatFetchWeightsAreLonger) {
  EngineOptions options = Options();
  options.context = 4096;
  options.placement.split = SplitOf("dgpu:100%");
  options.placement.overrides = OverridesOf("ffn_(up|gate|down)=cpu");
  const std::string calibration = file_.path() + ".calibration";
  Calibrate(options, {{"cpu", 1000}, {"dgpu0", 0.01}}, calibration);
  options.placement.calibration = calibration;
  const auto tokens = [&] {
    const auto setup = PrepareModel(options);
    EXPECT_TRUE(setup.ok()) << setup.status();
    return setup.ok() ? setup->limits.max_tokens : 0;
  };
  const int64_t chosen = tokens();
  EXPECT_GT(chosen, 512);
  EXPECT_LE(chosen, 4096);
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->model()->limits().max_tokens, chosen);
  options.most_batch_tokens = 600;
  EXPECT_LE(tokens(), 600);
  EXPECT_GE(tokens(), 512);
  options.most_batch_tokens = 100;
  EXPECT_EQ(tokens(), 100);
  options.most_batch_tokens = 4096;
  options.batch_tokens = 16;
  EXPECT_EQ(tokens(), 16);
  options.batch_tokens = 0;
  options.placement.dispatch.on = false;
  EXPECT_EQ(tokens(), 512);
  options.placement.dispatch.on = true;
  options.placement.overrides.clear();
  EXPECT_EQ(tokens(), 512);
  std::filesystem::remove(calibration);
  std::filesystem::remove(calibration + ".lock");
}

}  // namespace
}  // namespace trine
