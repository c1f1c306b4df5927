// Tests how often experts are counted, wherever they are, and the file that keeps the counts.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/model/experts/expert_profile.h"
#include "tests/model/placement_testing.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ExpertStatsTest : public PlacementTest {
 protected:
  ExpertStatsTest()
      : shape_(*FindPreset("tiny-mixtral")),
        moe_(*MakeModelBytes(shape_)),
        stats_(moe_.path() + ".stats") {
    Calibrate({1000, 1000, 1, 1000, 1000});
  }
  ~ExpertStatsTest() override { fs::remove_all(stats_); }

  EngineOptions MoeOptions() {
    EngineOptions options = Options();
    options.model_path = moe_.path();
    options.context = 64;
    options.placement.split = SplitOf("cpu:100%");
    return options;
  }
  std::string Refusal(EngineOptions options) {
    options.expert_stats = stats_;
    const absl::Status status = Engine::Load(options).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }
  // Returns the hits in each layer.
  static std::vector<uint64_t> Sums(const ExpertCounts& counts) {
    std::vector<uint64_t> sums;
    for (const auto& layer : counts.hits) {
      sums.push_back(std::accumulate(layer.begin(), layer.end(), uint64_t{0}));
    }
    return sums;
  }
  std::vector<uint64_t> Expected(uint64_t tokens) const {
    return std::vector<uint64_t>(static_cast<size_t>(shape_.layers),
                                 tokens * static_cast<uint64_t>(shape_.experts_used));
  }

  const ModelShape shape_;
  const TempFile moe_;
  const std::string stats_;
};

// Whole layers on one device or several, experts and rows elsewhere, and experts in slots: with a
// file all choices are counted, and the same ones.
TEST_F(ExpertStatsTest, CountsAreTheSameWhereverExpertsAre) {
  struct Case {
    const char* name;
    const char* split;
    SplitMode mode = SplitMode::kLayer;
    const char* overrides = "";
    int64_t cpu_experts = 0, hot_experts = 0;
    bool host_sees = false;  // all choices, also without a file
  };
  const std::vector<Case> cases = {
      {"the CPU", "cpu:100%"},
      {"a device", "several1:100%"},
      {"two devices", "several0:2,cpu:1"},
      {"rows", "cpu:50%,several0:50%", SplitMode::kRow},
      {"experts elsewhere", "several0:100%", SplitMode::kLayer, "_exps=cpu", 0, 0, true},
      {"one matrix elsewhere", "several0:100%", SplitMode::kLayer, "blk.1.ffn_down_exps=several1"},
      {"all experts on the CPU", "several0:100%", SplitMode::kLayer, "", -1, 0, true},
      {"slots", "several2:100%", SplitMode::kLayer, "", -1, 2, true},
      {"divided without slots", "several0:100%", SplitMode::kLayer, "", -1, 2, true},
      {"slots of a layer", "several0:100%", SplitMode::kLayer, "", 1, 2},
  };
  std::vector<std::vector<uint64_t>> first;
  std::string hash;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EngineOptions options = MoeOptions();
    options.batch_tokens = 5;
    options.placement.mode = c.mode;
    options.placement.split = SplitOf(c.split);
    if (*c.overrides != '\0') options.placement.overrides = OverridesOf(c.overrides);
    options.placement.cpu_experts = c.cpu_experts;
    options.placement.hot_experts = c.hot_experts;
    options.placement.dispatch.on = false;
    for (const bool keeps : {false, true}) {
      options.expert_stats = keeps ? stats_ : "";
      const auto engine = MustLoad(options);
      ASSERT_NE(engine, nullptr);
      const std::string now = HashOf(engine.get(), kPrompt);
      if (hash.empty()) hash = now;
      EXPECT_EQ(now, hash);
      const ExpertCounts counts = engine->counted_experts();
      EXPECT_EQ(engine->expert_hits().choices(), counts.choices());
      if (keeps || c.host_sees) {
        EXPECT_EQ(Sums(counts), Expected(kPrompt.size()));
        if (first.empty()) first = counts.hits;
        EXPECT_EQ(counts.hits, first);
      } else if (c.mode == SplitMode::kLayer && *c.overrides == '\0' && c.cpu_experts == 0) {
        EXPECT_EQ(counts.choices(), 0u) << "no file was named";
      }
      if (c.hot_experts > 0) {
        EXPECT_GT(engine->expert_hits().in_slots(), 0u);
        EXPECT_LT(engine->expert_hits().in_slots(), counts.choices());
      } else {
        EXPECT_EQ(engine->expert_hits().in_slots(), 0u);
      }
    }
    EXPECT_TRUE(fs::remove(stats_)) << "the file was written when the engine was destroyed";
  }
}

// Passes on helped routes are counted, too: a helper that shares the CPU's memory runs all of them,
// and one with its own memory runs products.
TEST_F(ExpertStatsTest, HelpedPassesAreCounted) {
  for (const char* helper : {"several0", "several2"}) {
    SCOPED_TRACE(helper);
    EngineOptions options = MoeOptions();
    options.placement.split = SplitOf(absl::StrCat("cpu:2,", helper, ":1"));
    options.placement.dispatch.from_tokens = 2;
    options.batch_tokens = 5;
    options.pack = false;
    options.expert_stats = stats_;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    HashOf(engine.get(), kPrompt);
    uint64_t detours = 0;
    for (const SegmentCounters& segment : engine->segments()) detours += segment.detours;
    EXPECT_GT(detours, 0u);
    EXPECT_EQ(Sums(engine->counted_experts()), Expected(kPrompt.size()));
  }
}

TEST_F(ExpertStatsTest, TheFileGrowsFromRunToRun) {
  EngineOptions options = MoeOptions();
  options.expert_stats = stats_;
  for (uint64_t run = 1; run <= 3; ++run) {
    auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    HashOf(engine.get(), kPrompt);
    EXPECT_EQ(engine->counted_experts().choices(), engine->expert_hits().choices());
    engine.reset();
    const auto profile = ReadExpertProfile(stats_);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(Sums(profile->counts), Expected(run * kPrompt.size()));
    EXPECT_EQ(profile->tokens(), run * kPrompt.size());
  }
  // Only read: nothing is counted for its sake, and the file stays.
  const auto before = fs::last_write_time(stats_);
  options.expert_stats_read_only = true;
  auto reader = MustLoad(options);
  ASSERT_NE(reader, nullptr);
  HashOf(reader.get(), kPrompt);
  EXPECT_EQ(reader->expert_hits().choices(), 0u);
  EXPECT_EQ(Sums(reader->expert_hits().Snapshot()), Expected(3 * kPrompt.size()));
  reader.reset();
  EXPECT_EQ(fs::last_write_time(stats_), before);
}

// The most chosen experts of the file begin in the slots.
TEST_F(ExpertStatsTest, TheFileSaysWhichExpertsBeginInSlots) {
  EngineOptions options = MoeOptions();
  options.expert_stats = stats_;
  {
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    HashOf(engine.get(), kPrompt);
  }
  auto profile = ReadExpertProfile(stats_);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto last = static_cast<int32_t>(shape_.experts - 1);
  for (auto& layer : profile->counts.hits) layer.back() += 1000;
  std::ofstream(stats_) << FormatExpertProfile(*profile);
  options.placement.split = SplitOf("several2:100%");
  options.placement.hot_experts = 1;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  const auto model = engine->model();
  ASSERT_NE(model->experts(0), nullptr);
  for (size_t layer = 0; layer < model->experts(0)->layers(); ++layer) {
    EXPECT_EQ(model->experts(0)->slots(layer).InSlot(0), last);
  }
}

// Slots that were asked for and that no device can have are told of.
TEST_F(ExpertStatsTest, SlotsWithoutEffectAreAWarning) {
  EngineOptions options = MoeOptions();
  options.placement.hot_experts = 1;
  std::string logged;
  options.log = [&](uint32_t, const std::string& line) { logged += line + "\n"; };
  options.placement.split = SplitOf("cpu:100%");
  ASSERT_NE(MustLoad(options), nullptr);
  EXPECT_NE(logged.find("--hot-experts has no effect"), std::string::npos) << logged;
  logged.clear();
  options.placement.split = SplitOf("several0:100%");
  ASSERT_NE(MustLoad(options), nullptr);
  EXPECT_EQ(logged.find("--hot-experts"), std::string::npos) << logged;
}

// A profile that is named by a link is written where the link leads to.
TEST_F(ExpertStatsTest, ALinkStaysALink) {
  const std::string link = stats_ + ".link";
  fs::create_symlink(stats_, link);
  EngineOptions options = MoeOptions();
  options.expert_stats = link;
  for (int run = 1; run <= 2; ++run) {
    HashOf(MustLoad(options).get(), kPrompt);
    EXPECT_TRUE(fs::is_symlink(link));
    const auto profile = ReadExpertProfile(stats_);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->tokens(), static_cast<uint64_t>(run) * kPrompt.size());
  }
  fs::remove(link);
}

// Where a device is too small for the model, the planner gives it slots if the file's counts make
// that the fastest prediction.
TEST_F(ExpertStatsTest, ThePlannerChoosesSlotsWhereTheyPay) {
  Calibrate({1000, 1000, 1000, 1, 1000});
  EngineOptions options = MoeOptions();
  options.placement.split.clear();
  options.placement.devices = {"cpu", "several2"};  // which is a thousand times as fast
  options.placement.dispatch.on = false;
  const auto explain = [&]() -> PlacementReport {
    auto setup = PrepareModel(options);
    EXPECT_TRUE(setup.ok()) << setup.status();
    if (!setup.ok()) return {};
    auto report = setup->placer->Explain();
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : PlacementReport();
  };
  const auto slots = [](const PlacementReport& report) -> int64_t {
    for (const PlacementSegment& s : report.placement.segments) {
      if (const auto found = SlotsOf(report.problem, s.range)) return found->slots;
    }
    return 0;
  };
  EngineOptions counting = MoeOptions();
  counting.expert_stats = stats_;
  {
    const auto engine = MustLoad(counting);
    ASSERT_NE(engine, nullptr);
    HashOf(engine.get(), kPrompt);
  }
  auto profile = ReadExpertProfile(stats_);
  ASSERT_TRUE(profile.ok()) << profile.status();
  for (auto& layer : profile->counts.hits) layer = {1, 100000, 1, 99999};
  std::ofstream(stats_) << FormatExpertProfile(*profile);
  const PlacementReport whole = explain();
  const auto& first = whole.placement.segments.at(0);
  const auto scratch =
      static_cast<double>(whole.problem.plan.devices[first.range.device].fixed_bytes);
  const auto used = static_cast<double>(whole.placement.devices[first.range.device].used_bytes);
  options.expert_stats = stats_;
  EXPECT_EQ(slots(explain()), 0) << "all of the model fits";
  options.placement.memory_limits = {
      {"several2", SplitShare::Unit::kBytes, scratch + (used - scratch) * 0.8}};
  const PlacementReport chosen = explain();
  EXPECT_GT(slots(chosen), 0) << "two experts get next to all of the choices";
  EXPECT_TRUE(chosen.placement.violations.empty());
  options.expert_stats.clear();
  const PlacementReport without = explain();
  EXPECT_EQ(slots(without), 0) << "nothing is known about the choices";
  EXPECT_LT(chosen.placement.request_ns, without.placement.request_ns);
  // What the user asks for holds.
  options.expert_stats = stats_;
  options.placement.cpu_experts = PlacementRequest::kAllLayers;
  EXPECT_EQ(slots(explain()), 0);
  options.placement.cpu_experts = 0;
  options.placement.hot_experts = 0;
  EXPECT_EQ(slots(explain()), 0);
  options.placement.hot_experts = 1;
  EXPECT_EQ(slots(explain()), 1);
  options.placement.hot_experts.reset();
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  ASSERT_NE(engine->model()->experts(0), nullptr);
  EXPECT_EQ(engine->model()->experts(0)->slots(0).slots(), slots(chosen));
  options.placement.devices = {"cpu"};
  options.placement.memory_limits.clear();
  const auto alone = MustLoad(options);
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(HashOf(engine.get(), kPrompt), HashOf(alone.get(), kPrompt));
}

TEST_F(ExpertStatsTest, WrongFilesAreRefusedAndStay) {
  EngineOptions options = MoeOptions();
  EngineOptions dense = options;
  dense.model_path = file_.path();
  const std::string file = "--expert-stats: " + stats_;
  EXPECT_EQ(Refusal(dense), file + ": the model has no experts, so there is nothing to count");
  EXPECT_FALSE(fs::exists(stats_));
  std::ofstream(stats_) << "a diary";
  EXPECT_EQ(Refusal(options), file + ": it is not JSON");
  std::ifstream diary(stats_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(diary), {}), "a diary");
  fs::remove(stats_);
  fs::create_directory(stats_);
  EXPECT_EQ(Refusal(options), file + ": it is no file");
  fs::remove(stats_);
  // Of another model: the same sizes and other weights, and other sizes.
  const TempFile twin(*MakeModelBytes(shape_, {.seed = 2}));
  EngineOptions other = options;
  other.model_path = twin.path();
  other.expert_stats = stats_;
  {
    const auto engine = MustLoad(other);
    ASSERT_NE(engine, nullptr);
    HashOf(engine.get(), kPrompt);
  }
  EXPECT_EQ(Refusal(options),
            file + ": it counts the experts of another model: one with other weights");
  const TempFile qwen(*MakeModelBytes(*FindPreset("tiny-qwen3moe")));
  other.model_path = qwen.path();
  EXPECT_THAT(Refusal(other), HasSubstr("it counts the experts of another model: "));
  EXPECT_TRUE(ReadExpertProfile(stats_).ok());
  options.expert_stats = "/nonexistent/folder/stats";
  EXPECT_THAT(std::string(Engine::Load(options).status().message()),
              HasSubstr("--expert-stats: /nonexistent/folder/stats: cannot be created"));
  options.expert_stats = stats_ + ".absent";
  options.expert_stats_read_only = true;
  EXPECT_EQ(Engine::Load(options).status().message(),
            file +
                ".absent: there is no such file: generate, chat and serve make it with the same "
                "option");
  options.expert_hits = std::make_shared<ExpertHits>(shape_.layers, shape_.experts);
  EXPECT_EQ(Engine::Load(options).status().message(),
            "counts of experts are given, and a file that keeps them: it must be one of both");
}

// A file that can't be written costs a warning.
TEST_F(ExpertStatsTest, AFailureToWriteIsAWarning) {
  EngineOptions options = MoeOptions();
  options.expert_stats = stats_;
  {
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    HashOf(engine.get(), kPrompt);
    fs::create_directory(stats_);
  }
  EXPECT_THAT(said_, HasSubstr("--expert-stats: " + stats_ +
                               ": it is no file: the counts of this run are not kept"));
}

// Tokens are read again when a device was lost. Each counts once, in all layers, also if the loss
// comes while passes are half-way through the stages.
TEST_F(ExpertStatsTest, TokensThatAreReadAgainAfterALossCountOnce) {
  struct Case {
    const char* split;
    const char* faults;
    int64_t cpu_experts = 0, hot_experts = 0;
  };
  const std::vector<Case> cases = {
      {"several0:100%", "several0:lost@run=1"},
      {"several0:100%", "several0:lost@run=3"},
      {"several0:1,cpu:1,several1:1", "several1:lost@run=2"},
      {"several0:1,cpu:1,several1:1", "several0:lost@run=3"},
      {"several0:100%", "several0:lost@run=5", -1, 0},
      {"several0:100%", "several0:lost@run=8", -1, 2},
  };
  EngineOptions options = MoeOptions();
  options.expert_stats = stats_;
  options.batch_tokens = 3;
  options.placement.dispatch.on = false;
  const auto never = MustLoad(options);
  ASSERT_NE(never, nullptr);
  const std::string hash = HashOf(never.get(), kPrompt);
  const ExpertCounts expected = never->counted_experts();
  EXPECT_EQ(Sums(expected), Expected(kPrompt.size()));
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.split, " ", c.faults, " ", c.hot_experts));
    options.placement.split = SplitOf(c.split);
    options.placement.cpu_experts = c.cpu_experts;
    options.placement.hot_experts = c.hot_experts;
    options.faults = c.faults;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(HashOf(engine.get(), kPrompt), hash);
    EXPECT_EQ(engine->losses(), 1u);
    EXPECT_EQ(engine->counted_experts().hits, expected.hits);
    EXPECT_EQ(engine->expert_hits().choices(), expected.choices());
    EXPECT_LE(engine->expert_hits().in_slots(), expected.choices());
  }
}

// A device is lost while tokens are written one by one.
TEST_F(ExpertStatsTest, ALossWhileATextIsWrittenCountsNoTokenTwice) {
  EngineOptions options = MoeOptions();
  options.expert_stats = stats_;
  options.placement.split = SplitOf("several0:100%");
  options.faults = "several0:lost@run=4";
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  auto session = Session::Create(engine.get(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Append(kPrompt).ok());
  GenerateOptions generate;
  generate.max_tokens = 8;
  Generation answer;
  ASSERT_TRUE(Generate(session->get(), generate, &answer).ok());
  EXPECT_EQ(engine->losses(), 1u);
  const auto read = static_cast<uint64_t>((*session)->sequence().evaluated());
  EXPECT_GT(read, kPrompt.size());
  EXPECT_EQ(Sums(engine->counted_experts()), Expected(read));
}

}  // namespace
}  // namespace trine
