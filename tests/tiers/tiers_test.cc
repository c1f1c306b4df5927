// Runs CPU, Vulkan and HIP in one process, the GPUs with software drivers: the CPU's bits for any
// placement, split and route, and after any fault.
#include "tests/tiers/tiers_fixture.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

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
