// Runs CPU, Vulkan and HIP in one process, the GPUs with software drivers: the CPU's bits for any
// placement, split and route, and after any fault.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/cost/device_costs.h"
#include "gmock/gmock.h"
#include "runtime/base/machine_report.h"
#include "runtime/engine/generate.h"
#include "runtime/engine/model_setup.h"
#include "runtime/graph/capture_file.h"
#include "runtime/graph/graph_model.h"
#include "runtime/graph/replay.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/placement/calibration.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr int64_t kLayers = 5;

class TiersTest : public testing::Test {
 protected:
  TiersTest() : file_(Model()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = kLayers;
    spec.n_ctx = 512;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options() const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_VULKAN_PLUGIN,
                                             TRINE_HIP_PLUGIN};
    options.threads = 1;
    return options;
  }

  // Writes a calibration in which the products of devices cost multiples of a CPU's guessed costs.
  static void Calibrate(const EngineOptions& options, const std::map<std::string, double>& factors,
                        const std::string& path) {
    MachineOptions machine;
    machine.registry = options.plugins;
    const Inventory inventory = DescribeMachine(machine);
    Calibration calibration;
    for (const InventoryDevice& device : inventory.devices) {
      const auto factor = factors.find(device.tier_name);
      if (factor == factors.end()) continue;
      trine_device_info cpu{};
      cpu.tier = TRINE_TIER_CPU;
      DeviceCosts costs = GuessCosts(cpu, 1);
      for (auto& [type, curve] : costs.matmul) {
        std::vector<CostCurve::Point> points = curve.points();
        for (CostCurve::Point& p : points) p.cost *= factor->second;
        curve = CostCurve(std::move(points));
      }
      calibration.Set(CalibrationKey(inventory, device, 1), std::move(costs));
    }
    ASSERT_TRUE(calibration.Write(path).ok());
  }

  // Returns a split over some of the tiers in any order, by layers or by shares.
  static std::string RandomSplit(std::mt19937* random, bool rows) {
    std::vector<std::string> devices = {"cpu", "igpu", "dgpu"};
    std::shuffle(devices.begin(), devices.end(), *random);
    devices.resize((rows ? 2 : 1) + (*random)() % (rows ? 2 : 3));
    return Split(devices, random);
  }

  // Returns a split by layers over all tiers.
  static std::string RandomLayers(std::mt19937* random) {
    std::vector<std::string> devices = {"cpu", "igpu", "dgpu"};
    std::shuffle(devices.begin(), devices.end(), *random);
    return Split(devices, random);
  }

  static std::string Split(const std::vector<std::string>& devices, std::mt19937* random) {
    std::vector<int64_t> counts(devices.size(), 1);
    for (auto left = kLayers - static_cast<int64_t>(devices.size()); left > 0; --left) {
      ++counts[(*random)() % counts.size()];
    }
    std::string split;
    for (size_t i = 0; i < devices.size(); ++i) {
      absl::StrAppend(&split, i == 0 ? "" : ",", devices[i], ":", counts[i]);
    }
    return split;
  }

  // Runs all prompts together. Gives the text of each after its hash, as far as it came.
  static absl::Status Together(Engine* engine, const std::vector<std::vector<int32_t>>& prompts,
                               const std::vector<int64_t>& lengths, uint64_t seed,
                               std::vector<std::string>* said) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> options(prompts.size());
    std::vector<Generation> results(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
      SessionOptions session_options;
      session_options.logits_hash = true;
      session_options.ignore_eos = true;
      session_options.sampler.seed = seed + i;
      auto session = Session::Create(engine, session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      EXPECT_TRUE((*session)->Append(prompts[i]).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      options[i].max_tokens = lengths[i];
    }
    const absl::Status status = GenerateTogether(pointers, options, results);
    said->clear();
    for (size_t i = 0; i < results.size(); ++i) {
      said->push_back(absl::StrCat(sessions[i]->logits_hash().Text(), " ", results[i].text));
    }
    return status;
  }

  static std::vector<std::string> MustSay(Engine* engine,
                                          const std::vector<std::vector<int32_t>>& prompts,
                                          const std::vector<int64_t>& lengths, uint64_t seed) {
    std::vector<std::string> said;
    const absl::Status status = Together(engine, prompts, lengths, seed, &said);
    EXPECT_TRUE(status.ok()) << status;
    return said;
  }

  // Makes one to three faults, each at some moment of a load, of a prompt or of an answer.
  static std::string RandomFaults(std::mt19937* random, std::set<std::string>* devices) {
    const auto pick = [&](const std::vector<std::string>& list) {
      return list[(*random)() % list.size()];
    };
    std::string faults;
    for (uint32_t n = 1 + (*random)() % 3; n > 0; --n) {
      const std::string device = pick({"cpu", "igpu", "igpu", "dgpu", "dgpu"});
      const std::string kind = pick({"lost", "lost", "oom", "timeout=10", "garbage=status",
                                     "garbage=nan", "garbage=tiny", "hang"});
      const bool values = kind == "garbage=nan" || kind == "garbage=tiny";
      std::string moment;
      switch ((*random)() % 3) {
        case 0:
          moment = values ? "run=1"
                          : pick({"open=1", "load", "alloc=4", "import=1", "query=1", "plan=1"});
          break;
        case 1:
          moment = absl::StrCat(values ? "run" : pick({"run", "write", "read"}), "=",
                                1 + (*random)() % 4);
          break;
        default:
          moment = absl::StrCat("token=", 1 + (*random)() % 8);
      }
      devices->insert(device);
      absl::StrAppend(&faults, faults.empty() ? "" : ";", device, ":", kind, "@", moment);
    }
    return faults;
  }

  TempFile file_;
};

TEST_F(TiersTest, AllThreeAreThere) {
  EngineOptions options = Options();
  options.placement.split = SplitOf("cpu:1,igpu:2,dgpu:2");
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  std::vector<std::string> names;
  for (const SegmentPlace& place : engine->model()->places()) names.push_back(place.device_name);
  EXPECT_THAT(names, IsSupersetOf({"cpu", "igpu0", "dgpu0"}));
}

TEST_F(TiersTest, NeitherSplitNorModeNorWayShows) {
  EngineOptions cpu = Options();
  cpu.placement.split = SplitOf("cpu:100%");
  const auto alone = MustLoad(cpu);
  ASSERT_NE(alone, nullptr);
  std::mt19937 random(1);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 300 : 8;
  int detours = 0, rows = 0;
  for (int round = 0; round < rounds; ++round) {
    EngineOptions options = Options();
    const bool by_rows = random() % 4 == 0;
    options.placement.mode = by_rows ? SplitMode::kRow : SplitMode::kLayer;
    const std::string split = RandomSplit(&random, by_rows);
    options.placement.split = SplitOf(split);
    if (random() % 4 == 0) options.placement.overrides = OverridesOf("ffn_(up|gate)=dgpu");
    if (random() % 2 == 0)
      options.placement.dispatch.from_tokens = 1 + static_cast<int64_t>(random() % 9);
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 40);
    options.pack = random() % 3 != 0;
    std::vector<std::vector<int32_t>> prompts(1 + random() % 4);
    std::vector<int64_t> lengths;
    for (std::vector<int32_t>& prompt : prompts) {
      prompt.resize(1 + random() % 24);
      for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 256);
      lengths.push_back(static_cast<int64_t>(random() % 4));
    }
    options.max_sequences = static_cast<int64_t>(prompts.size());
    SCOPED_TRACE(absl::StrCat("round ", round, ": ", by_rows ? "rows " : "", split,
                              options.placement.overrides.empty() ? "" : ", ffn on dgpu", ", from ",
                              options.placement.dispatch.from_tokens, " tokens on, ",
                              options.batch_tokens, " a pass", options.pack ? "" : ", not packed"));
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<std::string> said = MustSay(engine.get(), prompts, lengths, 7);
    for (size_t i = 0; i < prompts.size(); ++i) {
      ASSERT_EQ(said[i], MustSay(alone.get(), {prompts[i]}, {lengths[i]}, 7 + i)[0]) << i;
    }
    rows += by_rows ? 1 : 0;
    for (const SegmentCounters& segment : engine->segments()) {
      detours += segment.detours > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(detours, rounds / 10) << "too few took one";
  EXPECT_GT(rows, rounds / 10);
}

// A GPU with its own memory reads prompts with weights that it fetches; the devices that have these
// weights write. Dense models and mixtures of experts, all layers divided or some.
TEST_F(TiersTest, WeightsElsewhereAreFetchedForPrompts) {
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
TEST_F(TiersTest, DividedExpertsDoNotShow) {
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
                              options.placement.hot_experts, " slots, ", options.batch_tokens,
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

// An integrated GPU that reads the file's pages divides experts with the CPU, too.
TEST_F(TiersTest, AnIntegratedGpuSharesExperts) {
  for (const char* preset : {"tiny-mixtral", "tiny-gpt-oss"}) {
    SCOPED_TRACE(preset);
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
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<int32_t> prompt = {5, 90, 17, 33, 101, 64, 2};
    EXPECT_EQ(MustSay(engine.get(), {prompt}, {40}, 7), MustSay(alone.get(), {prompt}, {40}, 7));
    const auto model = engine->model();
    ASSERT_NE(model->experts(0), nullptr);
    EXPECT_GT(model->experts(0)->home_hits(), 0u);
    EXPECT_LT(model->experts(0)->home_hits(), model->experts(0)->all_hits());
  }
}

// An engine that knows how often experts were chosen begins with the most chosen ones in slots.
TEST_F(TiersTest, HotExpertsAreThereFromTheBeginning) {
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
TEST_F(TiersTest, ExpertsAreCountedOnAllDevices) {
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
TEST_F(TiersTest, PartsTakeTheMemoryThatWasPlanned) {
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
TEST_F(TiersTest, PassesThatFetchWeightsAreLonger) {
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

// Devices are lost, hang or return garbage: the text is the CPU's, unless every device has had a
// fault.
TEST_F(TiersTest, FaultsDoNotShow) {
  EngineOptions cpu = Options();
  cpu.placement.split = SplitOf("cpu:100%");
  cpu.max_sequences = 4;
  const auto alone = MustLoad(cpu);
  ASSERT_NE(alone, nullptr);
  std::mt19937 random(8);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 100 : 4;
  int disturbed = 0, ended = 0;
  for (int round = 0; round < rounds; ++round) {
    EngineOptions options = Options();
    const bool by_rows = random() % 4 == 0;
    options.placement.mode = by_rows ? SplitMode::kRow : SplitMode::kLayer;
    const std::string split = by_rows ? "cpu:1,igpu:1,dgpu:1" : RandomLayers(&random);
    options.placement.split = SplitOf(split);
    options.batch_tokens = 16;
    options.max_sequences = 4;
    options.stage_limit = std::chrono::milliseconds(1000);
    std::set<std::string> faulty;
    options.faults = RandomFaults(&random, &faulty);
    std::vector<std::vector<int32_t>> prompts(round % 2 == 0 ? 1 : 4);
    for (std::vector<int32_t>& prompt : prompts) {
      prompt.resize(1 + random() % 24);
      for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 256);
    }
    const std::vector<int64_t> lengths(prompts.size(), 10);
    SCOPED_TRACE(
        absl::StrCat("round ", round, ": ", by_rows ? "rows " : "", split, ", ", options.faults));
    std::vector<std::string> said;
    auto engine = Engine::Load(options);
    absl::Status status = engine.status();
    if (engine.ok()) {
      status = Together(engine->get(), prompts, lengths, 7, &said);
      disturbed += (*engine)->lost_devices().empty() ? 0 : 1;
    }
    if (!status.ok()) {
      ASSERT_THAT(std::string(status.message()), HasSubstr("no device is left"));
      ASSERT_EQ(faulty.size(), 3u) << status;
      ++ended;
      continue;
    }
    ASSERT_EQ(said, MustSay(alone.get(), prompts, lengths, 7));
  }
  EXPECT_GT(disturbed, rounds / 2) << "too few devices were lost";
  EXPECT_LE(ended, rounds / 4);
  std::printf("  devices lost in %d of %d, none left in %d\n", disturbed, rounds, ended);
}

// The CPU's ops give the same as those of each other tier, one by one and fused.
TEST_F(TiersTest, ACaptureOfTheCpuIsReplayedByEachTier) {
  const std::string path = testing::TempDir() + "/tiers_test.capture";
  CaptureOptions to;
  to.path = path;
  to.model = file_.path();
  to.values = true;
  auto recorder = CaptureRecorder::Create(to);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  EngineOptions options = Options();
  options.placement.split = SplitOf("cpu:100%");
  options.taps = TapLevel::kOps;
  options.observer = [&](const auto& model, size_t stage, const Pass& pass) {
    return (*recorder)->Ran(model, stage, pass);
  };
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  std::vector<int32_t> prompt(40);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 11 % 256);
  MustSay(engine.get(), {prompt}, {4}, 1);
  ASSERT_TRUE((*recorder)->Finish().ok());
  const auto capture = CaptureFile::Open(path);
  ASSERT_TRUE(capture.ok()) << capture.status();
  for (const char* split : {"igpu:100%", "dgpu:100%", "dgpu:2,cpu:1,igpu:2"}) {
    for (const bool ops : {true, false}) {
      SCOPED_TRACE(absl::StrCat(split, ops ? " by ops" : " by layers"));
      options.placement.split = SplitOf(split);
      options.observer = nullptr;
      const auto loaded = LoadGraphModel(options);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      const auto graph = ExecutionGraph::Create((*loaded)->model);
      ASSERT_TRUE(graph.ok()) << graph.status();
      ReplayOptions how;
      how.ops = ops;
      const auto result = Replay(**capture, how, graph->get());
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_FALSE(result->difference.has_value()) << Describe(*result->difference);
      EXPECT_EQ(result->passes, (*capture)->passes().size());
    }
  }
  std::remove(path.c_str());
}

// A search reads the beginning once and tries two continuations: by regressing, by forks that share
// passes, and by forks of what was regressed to. Each must equal a session of its own that reads
// everything on the CPU.
TEST_F(TiersTest, ASearchEqualsDirectRuns) {
  const auto text = [](size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 256);
    return tokens;
  };
  const std::vector<int32_t> prefix = text(150, 1);
  const std::vector<std::vector<int32_t>> ways = {text(9, 2), text(21, 3)};
  const auto open = [](Engine* engine) {
    SessionOptions options;
    options.logits_hash = true;
    options.ignore_eos = true;
    options.sampler.seed = 4;
    auto session = Session::Create(engine, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  };
  const auto go_on = [](Session* session, const std::vector<int32_t>& tokens) {
    GenerateOptions options;
    options.max_tokens = 30;
    Generation result;
    EXPECT_TRUE(session->Append(tokens).ok());
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return absl::StrCat(session->logits_hash().Text(), " ", result.text);
  };
  EngineOptions options = Options();
  options.placement.split = SplitOf("cpu:100%");
  std::vector<std::string> expected;
  {
    const auto alone = MustLoad(options);
    ASSERT_NE(alone, nullptr);
    for (const std::vector<int32_t>& way : ways) {
      std::vector<int32_t> all = prefix;
      all.insert(all.end(), way.begin(), way.end());
      expected.push_back(go_on(open(alone.get()).get(), all));
    }
    EXPECT_NE(expected[0], expected[1]);
  }
  for (const char* split : {"cpu:100%", "cpu:2,igpu:2,dgpu:1", "dgpu:1,cpu:2,igpu:2"}) {
    SCOPED_TRACE(split);
    options.placement.split = SplitOf(split);
    options.max_sequences = 3;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const int64_t free = engine->prefix_counters().free_blocks;
    {
      const auto session = open(engine.get());
      ASSERT_TRUE(session->Append(prefix).ok());
      ASSERT_TRUE(session->Evaluate().ok());
      const auto t = session->Checkpoint();
      ASSERT_TRUE(t.ok()) << t.status();
      for (const size_t way : {size_t{0}, size_t{1}, size_t{0}}) {
        EXPECT_EQ(go_on(session.get(), ways[way]), expected[way]) << "by going back";
        ASSERT_TRUE(session->Regress(*t).ok());
      }
      std::vector<std::unique_ptr<Session>> forks;
      std::vector<Session*> both;
      std::vector<GenerateOptions> each(2);
      std::vector<Generation> results(2);
      for (size_t way = 0; way < 2; ++way) {
        auto fork = session->Fork();
        ASSERT_TRUE(fork.ok()) << fork.status();
        ASSERT_TRUE((*fork)->Append(ways[way]).ok());
        both.push_back(fork->get());
        forks.push_back(*std::move(fork));
        each[way].max_tokens = 30;
      }
      ASSERT_TRUE(GenerateTogether(both, each, results).ok());
      for (size_t way = 0; way < 2; ++way) {
        EXPECT_EQ(absl::StrCat(both[way]->logits_hash().Text(), " ", results[way].text),
                  expected[way])
            << "by a fork";
      }
    }
    EXPECT_EQ(engine->prefix_counters().free_blocks, free) << "blocks are back";
  }
}

}  // namespace
}  // namespace trine
