// Tests --numerics fast, and devices that have products alone: who is used, what is marked, and
// what is never mixed with exact results. The device computes the CPU's bits, but does not say so.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "runtime/base/machine_report.h"
#include "runtime/engine/generate.h"
#include "runtime/model/weights/pack_cache.h"
#include "runtime/placement/calibration.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class FastNumericsTest : public testing::Test {
 protected:
  FastNumericsTest() : file_(Model()) {}
  ~FastNumericsTest() override {
    unsetenv("TRINE_FIXTURE_PRODUCTS");
    unsetenv("TRINE_SELF_TEST_CACHE");
  }

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = 3;
    spec.n_ctx = 256;
    spec.type = quant::Type::kQ8_0;  // packed by the CPU backend
    spec.n_embd = 128;
    spec.n_ff = 256;
    return MakeTinyModel(spec).ToBytes();
  }

  // `from_tokens`: the fewest tokens of a pass with which the device helps.
  EngineOptions Options(uint32_t numerics, int64_t from_tokens = 8) const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_PRODUCTS_PLUGIN};
    options.plugins.numerics = numerics;
    options.threads = 1;
    options.context = 256;
    options.placement.dispatch.from_tokens = from_tokens;
    return options;
  }
  EngineOptions Cpu() const {
    EngineOptions options = Options(TRINE_NUMERICS_EXACT);
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN};
    return options;
  }

  // Reads 40 tokens and writes ten. Returns the hash and the text.
  static std::vector<std::string> Say(Engine* engine) {
    SessionOptions session_options;
    session_options.logits_hash = true;
    session_options.ignore_eos = true;
    auto session = Session::Create(engine, session_options);
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 40; ++i) tokens.push_back(3 + i * 7 % 90);
    EXPECT_TRUE((*session)->Append(tokens).ok());
    GenerateOptions options;
    options.max_tokens = 10;
    Generation result;
    const absl::Status status = Generate(session->get(), options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return {(*session)->logits_hash().Text(), result.text};
  }

  const TempFile file_;
};

TEST_F(FastNumericsTest, IsNotUsedWithoutPermission) {
  for (const char* name : {"products0", "cpu,products0"}) {
    EngineOptions options = Options(TRINE_NUMERICS_EXACT);
    options.placement.devices = absl::StrSplit(name, ',');
    EXPECT_EQ(
        Engine::Load(options).status().message(),
        "device 'products0' is not used: fast numerics only: not used without --numerics fast");
  }
  const auto engine = MustLoad(Options(TRINE_NUMERICS_EXACT));
  ASSERT_NE(engine, nullptr);
  EXPECT_THAT(engine->model()->routes(), IsEmpty());
  EXPECT_THAT(Say(engine.get())[0], StartsWith("1-"));
}

// The host tests devices that call themselves exact.
TEST_F(FastNumericsTest, ADeviceThatIsNotExactIsFound) {
  setenv("TRINE_FIXTURE_PRODUCTS", "lies", 1);
  setenv("TRINE_SELF_TEST_CACHE", "off", 1);
  EngineOptions options = Options(TRINE_NUMERICS_EXACT);
  options.placement.devices = {"cpu", "products0"};
  EXPECT_EQ(Engine::Load(options).status().message(),
            "device 'products0' is not used: the plugin calls it exact, but it fails the self-test "
            "(matmul): not used without --numerics fast");
  // Where fast numerics are allowed, its results are not taken for exact ones.
  options = Options(TRINE_NUMERICS_FAST);
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  ASSERT_THAT(engine->model()->routes(), SizeIs(1));
  EXPECT_FALSE(engine->model()->IsExact(0));
  EXPECT_THAT(Say(engine.get())[0], StartsWith("fast-"));
}

TEST_F(FastNumericsTest, ProductsAloneHelpWithPrompts) {
  const auto alone = MustLoad(Cpu());
  const std::vector<std::string> expected = Say(alone.get());
  const auto engine = MustLoad(Options(TRINE_NUMERICS_FAST));
  ASSERT_NE(engine, nullptr);
  const std::vector<RouteInfo> routes = engine->model()->routes();
  ASSERT_THAT(routes, SizeIs(1));
  EXPECT_EQ(routes[0].helper, "products0");
  EXPECT_EQ(routes[0].kind, RouteKind::kProducts);
  EXPECT_EQ(routes[0].first_tokens, 8);
  EXPECT_FALSE(engine->model()->IsExact(0));
  const std::vector<std::string> said = Say(engine.get());
  EXPECT_EQ(said[1], expected[1]);
  EXPECT_EQ(said[0], absl::StrCat("fast-", expected[0].substr(2))) << "it computes the same bits";
  const std::vector<SegmentCounters> segments = engine->segments();
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_GT(segments[0].detours, 0u);
  EXPECT_LT(segments[0].detours, segments[0].stage.jobs);
  ASSERT_THAT(segments[0].devices, SizeIs(2));
  EXPECT_EQ(segments[0].devices[1].device_name, "products0");
  EXPECT_EQ(segments[0].devices[1].passes, segments[0].detours);
  EXPECT_GT(segments[0].devices[1].busy_ns, 0u);
}

TEST_F(FastNumericsTest, AnExactDeviceOfProductsNeedsNoPermission) {
  const std::vector<std::string> expected = Say(MustLoad(Cpu()).get());
  setenv("TRINE_FIXTURE_PRODUCTS", "exact", 1);
  for (const bool pack : {true, false}) {
    EngineOptions options = Options(TRINE_NUMERICS_EXACT);
    options.pack = pack;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    ASSERT_THAT(engine->model()->routes(), SizeIs(1));
    EXPECT_EQ(engine->model()->routes()[0].kind, RouteKind::kProducts);
    EXPECT_TRUE(engine->model()->IsExact(0));
    EXPECT_EQ(Say(engine.get()), expected);
    EXPECT_GT(engine->segments()[0].detours, 0u);
  }
}

TEST_F(FastNumericsTest, MatricesPlacedByNameRunThere) {
  EngineOptions options = Options(TRINE_NUMERICS_FAST);
  options.placement.overrides = OverridesOf("ffn_(up|gate|down)=products0");
  options.placement.dispatch.on = false;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_FALSE(engine->model()->IsExact(0));
  EXPECT_EQ(Say(engine.get())[1], Say(MustLoad(Cpu()).get())[1]);
}

// Without a word about where anything goes, the planner sees that the device is worth its help.
TEST_F(FastNumericsTest, ThePlannerChoosesTheHelp) {
  const std::string path = absl::StrCat(file_.path(), ".calibration");
  EngineOptions options = Options(TRINE_NUMERICS_FAST, 0);
  options.placement.calibration = path;
  options.explain = true;
  MachineOptions machine;
  machine.registry = options.plugins;
  const Inventory inventory = DescribeMachine(machine);
  for (const double speed : {10.0, 0.1}) {  // times as fast as the CPU, with products
    Calibration calibration;
    for (const InventoryDevice& device : inventory.devices) {
      if (device.registry_device == InventoryDevice::kNone) continue;
      DeviceCosts costs = GuessCosts(inventory.registry.devices[device.registry_device].info, 1);
      const double ns = device.tier_name == "cpu" ? 1 : 1 / speed;
      costs.matmul[TRINE_DTYPE_Q8_0] = CostCurve({{1, ns}, {256, 256 * ns}});
      costs.run_ns = costs.matmul_ns = 100;
      calibration.Set(CalibrationKey(inventory, device, 1), costs);
    }
    ASSERT_TRUE(calibration.Write(path).ok());
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    ASSERT_TRUE(engine->plan().has_value());
    const PlacementProblem& problem = engine->plan()->problem;
    if (speed > 1) {
      ASSERT_THAT(engine->model()->routes(), SizeIs(1));
      EXPECT_EQ(engine->model()->routes()[0].helper, "products0");
      EXPECT_THAT(problem.helpers, testing::Contains("products0")) << "the plan counts it";
      Say(engine.get());
      EXPECT_GT(engine->segments()[0].detours, 0u);
    } else {
      EXPECT_THAT(engine->model()->routes(), IsEmpty());
      EXPECT_THAT(problem.helpers, testing::Not(testing::Contains("products0")));
    }
  }
  std::filesystem::remove(path);
}

TEST_F(FastNumericsTest, KeptBlocksAreNotMixed) {
  const std::string folder = absl::StrCat(file_.path(), ".store");
  std::vector<uint64_t> found;
  for (const uint32_t numerics :
       {TRINE_NUMERICS_EXACT, TRINE_NUMERICS_FAST, TRINE_NUMERICS_FAST, TRINE_NUMERICS_EXACT}) {
    EngineOptions options = Options(numerics);
    options.kv_store = folder;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    SessionOptions session_options;
    session_options.prefix_space = "";
    auto session = Session::Create(engine.get(), session_options);
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE((*session)->Append(std::vector<int32_t>(150, 7)).ok());
    GenerateOptions one;
    one.max_tokens = 1;
    Generation result;
    ASSERT_TRUE(Generate(session->get(), one, &result).ok());
    session->reset();
    found.push_back(engine->keeper_counters()->found_blocks);
  }
  EXPECT_EQ(found[0], 0u);
  EXPECT_EQ(found[1], 0u) << "a fast engine took exact blocks";
  EXPECT_EQ(found[2], 2u);
  EXPECT_EQ(found[3], 2u) << "the exact blocks of the first engine";
  std::filesystem::remove_all(folder);
}

TEST_F(FastNumericsTest, PackCachesAreNotMixed) {
  const std::string folder = absl::StrCat(file_.path(), ".packs");
  std::filesystem::create_directory(folder);
  for (const uint32_t numerics : {TRINE_NUMERICS_FAST, TRINE_NUMERICS_EXACT}) {
    EngineOptions options = Options(numerics);
    options.placement.dispatch.on = false;  // help with plain weights would keep them unpacked
    options.pack_cache = true;
    options.pack_cache_folder = folder;
    ASSERT_NE(MustLoad(options), nullptr);
  }
  std::vector<std::string> suffixes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    suffixes.push_back(name.find(".fast.trine-pack") != name.npos ? "fast" : "exact");
  }
  EXPECT_THAT(suffixes, testing::UnorderedElementsAre("fast", "exact"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trine
