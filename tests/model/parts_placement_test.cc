// Tests layers whose parts the planner, or the user, places on several devices: what is reported,
// and the same bits everywhere.
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "tests/model/placement_testing.h"

namespace trine {
namespace {

// Has a mixture of experts, and a device that is a thousand times as fast as the others.
class PartsPlacementTest : public PlacementTest {
 protected:
  PartsPlacementTest() : moe_(*MakeModelBytes(*FindPreset("tiny-mixtral"))) {
    Calibrate({1000, 1000, 1, 1000, 1000});
  }

  EngineOptions MoeOptions() {
    EngineOptions options = Options();
    options.model_path = moe_.path();
    options.context = 64;
    options.placement.devices = {"cpu", "several1"};
    options.placement.dispatch.on = false;  // a device that helps could run whole layers
    return options;
  }
  // Limits several1 to a part of what the whole model takes there, without scratch.
  void Limit(double part, EngineOptions* options) {
    auto setup = PrepareModel(*options);
    ASSERT_TRUE(setup.ok()) << setup.status();
    const auto whole = setup->placer->Explain();
    ASSERT_TRUE(whole.ok()) << whole.status();
    const size_t device = whole->placement.segments[0].range.device;
    const auto scratch = static_cast<double>(whole->problem.plan.devices[device].fixed_bytes);
    const auto used = static_cast<double>(whole->placement.devices[device].used_bytes);
    options->placement.memory_limits = {
        {"several1", SplitShare::Unit::kBytes, scratch + (used - scratch) * part}};
  }
  static int ModesIn(const PlacementReport& report) {
    int modes = 0;
    for (const PlacementSegment& s : report.placement.segments) {
      modes += report.problem.plan.devices[s.range.device].mode_of.has_value();
    }
    return modes;
  }

  TempFile moe_;
};

TEST_F(PartsPlacementTest, ExpertsGoToMainMemoryWhereADeviceIsSmall) {
  EngineOptions options = MoeOptions();
  Limit(0.85, &options);
  auto setup = PrepareModel(options);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto report = setup->placer->Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(ModesIn(*report), 0);
  EXPECT_TRUE(report->placement.violations.empty()) << report->placement.violations.front();
  for (const PlacementSegment& s : report->placement.segments) {
    const PlanDevice& device = report->problem.plan.devices[s.range.device];
    if (!device.mode_of.has_value()) continue;
    EXPECT_EQ(device.name, "several1");
    ASSERT_EQ(s.elsewhere.size(), 1u);
    EXPECT_EQ(report->problem.plan.devices[s.elsewhere[0].device].name, "cpu");
    EXPECT_EQ(device.elsewhere[0].what, "experts");
    EXPECT_GT(s.elsewhere[0].bytes, 0u);
    EXPECT_GT(s.decode_ns, s.elsewhere[0].decode_ns) << "the time of the parts is in it";
  }
  EngineOptions cpu = TestOptions(moe_.path());
  cpu.context = 64;
  const auto engine = MustLoad(options), alone = MustLoad(cpu);
  ASSERT_TRUE(engine != nullptr && alone != nullptr);
  EXPECT_FALSE(engine->model()->moved_weights().empty()) << Where(*engine);
  const std::string expected = HashOf(alone.get(), kPrompt);
  EXPECT_EQ(HashOf(engine.get(), kPrompt), expected);
  // A lost device's layers go elsewhere, and parts with them.
  options.faults = "several1:lost@run=2";
  const auto losing = MustLoad(options);
  ASSERT_NE(losing, nullptr);
  EXPECT_EQ(HashOf(losing.get(), kPrompt), expected);
  EXPECT_EQ(HashOf(losing.get(), kPrompt), expected);
  EXPECT_THAT(said_, testing::HasSubstr("several1 is lost"));
}

TEST_F(PartsPlacementTest, DenseLayersAreDividedToo) {
  EngineOptions options = MoeOptions();
  options.model_path = file_.path();
  Limit(0.92, &options);
  auto setup = PrepareModel(options);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto report = setup->placer->Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(ModesIn(*report), 0);
  // Captured passes need whole layers.
  options.taps = TapLevel::kLayers;
  auto whole = PrepareModel(options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto undivided = whole->placer->Explain();
  ASSERT_TRUE(undivided.ok()) << undivided.status();
  EXPECT_EQ(ModesIn(*undivided), 0);
}

TEST_F(PartsPlacementTest, AnyDivisionGivesTheSameBits) {
  std::mt19937 random(12);
  EngineOptions cpu = TestOptions(moe_.path());
  cpu.context = 64;
  const auto alone = MustLoad(cpu);
  ASSERT_NE(alone, nullptr);
  const std::string expected = HashOf(alone.get(), kPrompt);
  int moved = 0;
  for (int round = 0; round < 12; ++round) {
    EngineOptions options = MoeOptions();
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 16);
    options.pack = random() % 2 == 0;
    options.placement.optimize = static_cast<Optimize>(random() % 2);
    Limit(0.75 + static_cast<double>(random() % 20) / 100, &options);
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    ASSERT_EQ(HashOf(engine.get(), kPrompt), expected) << Where(*engine);
    moved += !engine->model()->moved_weights().empty();
  }
  EXPECT_GT(moved, 2) << "the test should see layers that are divided";
}

TEST_F(PartsPlacementTest, ExpertsArePlacedByHandToo) {
  EngineOptions options = MoeOptions();
  options.placement.devices = {"several1"};
  for (const int64_t layers : {int64_t{1}, PlacementRequest::kAllLayers}) {
    options.placement.cpu_experts = layers;
    auto setup = PrepareModel(options);
    ASSERT_TRUE(setup.ok()) << setup.status();
    const auto report = setup->placer->Explain();
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->moved.size(), 1u);
    EXPECT_EQ(report->moved[0].device, "cpu");
    EXPECT_EQ(report->moved[0].whole, layers == 1 ? 3 : 3 * setup->config.n_layers);
    ASSERT_EQ(report->placement.segments.size(), 1u);
    ASSERT_EQ(report->placement.segments[0].elsewhere.size(), 1u);
    EXPECT_GT(report->placement.segments[0].elsewhere[0].decode_ns, 0);
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->model()->moved_weights().size(), static_cast<size_t>(report->moved[0].whole));
  }
  options.placement.cpu_experts = 99;
  const absl::Status many = Engine::Load(options).status();
  EXPECT_EQ(many.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(many.message()), testing::HasSubstr("--n-cpu-moe 99: the model has "));
  options.model_path = file_.path();
  const absl::Status none = Engine::Load(options).status();
  EXPECT_EQ(none.message(), "--n-cpu-moe: the model has no experts");
  options.placement.cpu_experts = 0;
  options.placement.hot_experts = 2;
  const absl::Status no_hot = Engine::Load(options).status();
  EXPECT_EQ(no_hot.message(), "--hot-experts: the model has no experts");
  options.model_path = moe_.path();
  options.placement.hot_experts = 99;
  const absl::Status too_hot = Engine::Load(options).status();
  EXPECT_EQ(too_hot.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_hot.message()), testing::HasSubstr("--hot-experts 99: a layer has "));
  options.placement.hot_experts = 2;
  const auto divided = MustLoad(options);
  ASSERT_NE(divided, nullptr);
  ASSERT_NE(divided->model()->experts(0), nullptr);
  EXPECT_EQ(divided->model()->experts(0)->slots(0).slots(), 2);
}

// A prediction with slots counts their memory, and the experts that the CPU does not compute.
TEST_F(PartsPlacementTest, PredictionsKnowTheSlots) {
  Calibrate({1000, 1000, 1000, 1, 1000});
  EngineOptions options = MoeOptions();
  options.placement.devices = {"several2"};  // which has memory of its own
  options.placement.cpu_experts = PlacementRequest::kAllLayers;
  const auto explain = [&]() -> PlacementReport {
    auto setup = PrepareModel(options);
    EXPECT_TRUE(setup.ok()) << setup.status();
    if (!setup.ok()) return {};
    auto report = setup->placer->Explain();
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : PlacementReport();
  };
  const auto segment = [](const PlacementReport& report) {
    return report.placement.segments.at(0);
  };
  const PlacementReport away = explain();
  EXPECT_FALSE(SlotsOf(away.problem, segment(away).range).has_value());
  options.placement.hot_experts = 2;
  const PlacementReport even = explain();
  const auto slots = SlotsOf(even.problem, segment(even).range);
  ASSERT_TRUE(slots.has_value());
  EXPECT_EQ(slots->slots, 2);
  EXPECT_EQ(slots->experts, 4);
  EXPECT_DOUBLE_EQ(slots->share, 0.5);
  // Half of the experts of each layer are on the device, too.
  const uint64_t experts = segment(away).elsewhere.at(0).bytes;
  EXPECT_NEAR(static_cast<double>(segment(even).weight_bytes - segment(away).weight_bytes),
              static_cast<double>(experts) / 2, static_cast<double>(experts) / 50);
  EXPECT_EQ(segment(even).elsewhere.at(0).bytes, experts) << "the CPU has all";
  EXPECT_LT(segment(even).elsewhere.at(0).decode_ns, segment(away).elsewhere.at(0).decode_ns);
  EXPECT_LT(segment(even).decode_ns, segment(away).decode_ns);
  // With counts that say which experts are chosen, the CPU is expected to do next to nothing.
  options.expert_hits = std::make_shared<ExpertHits>(3, 4);
  for (int64_t layer = 0; layer < 3; ++layer) {
    options.expert_hits->Add(layer, 1, 600);
    options.expert_hits->Add(layer, 3, 390);
    options.expert_hits->Add(layer, 0, 10);
  }
  const PlacementReport known = explain();
  EXPECT_DOUBLE_EQ(SlotsOf(known.problem, segment(known).range)->share, 0.99);
  EXPECT_LT(segment(known).elsewhere.at(0).decode_ns, segment(even).elsewhere.at(0).decode_ns);
  EXPECT_LT(segment(known).decode_ns, segment(even).decode_ns);
  EXPECT_LT(known.placement.decode_ns, even.placement.decode_ns);
  // A device that reads the file's pages gets its part of the choices, whichever they are.
  options.placement.devices = {"several1"};
  const PlacementReport in_place = explain();
  EXPECT_TRUE(SlotsOf(in_place.problem, segment(in_place).range)->in_place);
  EXPECT_DOUBLE_EQ(SlotsOf(in_place.problem, segment(in_place).range)->share, 0.5);
}

}  // namespace
}  // namespace trine
