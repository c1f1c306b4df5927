// Tests several devices at once: the same bits for any placement and overlap of passes; no token
// lost, doubled or out of order; cancelling at any moment.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"
#include "tests/model/pipeline_throughput.h"

namespace trine {
namespace {

constexpr int64_t kLayers = 7;

class StagesTest : public testing::Test {
 protected:
  StagesTest() : file_(Model()) {}
  void TearDown() override { unsetenv("TRINE_FIXTURE_SEVERAL"); }

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = kLayers;
    spec.n_ctx = 512;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options(const std::string& split) const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split);
    options.threads = 1;
    return options;
  }

  // Returns a random split of the layers over some of the devices, in any order.
  static std::string RandomSplit(std::mt19937* random) {
    std::vector<std::string> devices = {"cpu", "several0", "several1", "several2", "several3"};
    std::shuffle(devices.begin(), devices.end(), *random);
    devices.resize(1 + (*random)() % devices.size());
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

  static std::vector<int32_t> Tokens(std::mt19937* random, size_t count) {
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>((*random)() % 256);
    return tokens;
  }

  // Runs several sessions at once. Returns the text and hash of each.
  static std::vector<std::string> Together(Engine* engine,
                                           const std::vector<std::vector<int32_t>>& prompts,
                                           const std::vector<int64_t>& lengths,
                                           uint64_t first_seed = 7) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> options(prompts.size());
    std::vector<Generation> results(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
      SessionOptions session_options;
      session_options.logits_hash = true;
      session_options.ignore_eos = true;
      session_options.sampler.seed = first_seed + i;
      auto session = Session::Create(engine, session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      EXPECT_TRUE((*session)->Append(prompts[i]).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      options[i].max_tokens = lengths[i];
    }
    const absl::Status status = GenerateTogether(pointers, options, results);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> said;
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].n_tokens, lengths[i]);
      said.push_back(absl::StrCat(sessions[i]->logits_hash().Text(), " ", results[i].text));
    }
    return said;
  }

  TempFile file_;
};

// Random splits, orders, chunk sizes and mixes of sequences, each compared with the same sequences
// one after the other on the CPU alone.
TEST_F(StagesTest, NeitherSplitNorOverlapShows) {
  std::mt19937 random(42);
  const auto alone = MustLoad(Options("cpu:100%"));
  ASSERT_NE(alone, nullptr);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<int32_t>> prompts;
    std::vector<int64_t> lengths;
    const size_t sequences = 1 + random() % 6;
    for (size_t i = 0; i < sequences; ++i) {
      prompts.push_back(Tokens(&random, 1 + random() % (random() % 3 == 0 ? 200 : 8)));
      lengths.push_back(static_cast<int64_t>(random() % 9));
    }
    EngineOptions options = Options(RandomSplit(&random));
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 96);
    options.max_sequences = static_cast<int64_t>(sequences);
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<std::string> said = Together(engine.get(), prompts, lengths);
    for (size_t i = 0; i < sequences; ++i) {
      ASSERT_EQ(said[i], Together(alone.get(), {prompts[i]}, {lengths[i]}, 7 + i)[0])
          << "round " << round << ", sequence " << i << ", " << options.batch_tokens
          << " tokens a pass";
    }
  }
}

// Threads with sequences of their own share the stages; some are cancelled in mid-pass.
TEST_F(StagesTest, CancelledSequencesLeaveTheOthersAlone) {
  std::mt19937 random(7);
  setenv("TRINE_FIXTURE_SEVERAL", "300", 1);
  EngineOptions options = Options("several0:3,cpu:1,several1:3");
  options.max_sequences = 4;
  options.batch_tokens = 32;
  const auto engine = MustLoad(options);
  const auto alone = MustLoad(Options("cpu:100%"));
  ASSERT_TRUE(engine != nullptr && alone != nullptr);
  const std::vector<int32_t> prompt = Tokens(&random, 150);
  const std::string expected = HashOf(alone.get(), prompt);
  for (int round = 0; round < 10; ++round) {
    std::atomic<bool> over = false;
    std::thread victim([&] {
      for (int i = 0; !over; ++i) {
        auto sequence = engine->NewSequence();
        EXPECT_TRUE(sequence->Append(prompt).ok());
        Sequence* const one[] = {sequence.get()};
        std::thread canceller([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(400 * (i % 17)));
          sequence->Cancel();
        });
        const absl::Status status = engine->Evaluate(one);
        EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
        canceller.join();
        // What was evaluated so far is kept: it goes on from there.
        sequence->ClearCancel();
        if (i % 4 == 0) {
          EXPECT_TRUE(engine->Evaluate(one).ok());
          EXPECT_EQ(sequence->pending(), 0);
        }
      }
    });
    EXPECT_EQ(HashOf(engine.get(), prompt), expected);
    over = true;
    victim.join();
  }
}

// An exception of a callback reaches its own caller, and no other caller waits for ever.
TEST_F(StagesTest, ACallbackThatThrowsEndsItsOwnCallAlone) {
  std::mt19937 random(11);
  for (const char* split : {"cpu:100%", "several0:3,cpu:1,several1:3"}) {
    EngineOptions options = Options(split);
    options.max_sequences = 4;
    options.batch_tokens = 32;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<int32_t> prompt = Tokens(&random, 150);
    std::thread thrower([&] {
      auto sequence = engine->NewSequence();
      EXPECT_TRUE(sequence->Append(prompt).ok());
      sequence->set_progress([](int64_t, int64_t) { throw std::runtime_error("enough of that"); });
      Sequence* const one[] = {sequence.get()};
      absl::Status status = engine->Evaluate(one);
      EXPECT_EQ(status, absl::InternalError("enough of that"));
      // An observer that throws gets the same rows again.
      sequence->set_progress(nullptr);
      sequence->Truncate(0);
      EXPECT_TRUE(sequence->Append(prompt).ok());
      LogitsHash hash;
      bool thrown = false;
      sequence->set_row_observer([&](int64_t position, std::span<const float> row) {
        if (position == 3 && !std::exchange(thrown, true)) throw std::runtime_error("not this");
        hash.Add(position, row);  // rows that it has are ignored
      });
      status = engine->Evaluate(one);
      EXPECT_EQ(status, absl::InternalError("not this"));
      EXPECT_TRUE(engine->Evaluate(one).ok());
      EXPECT_EQ(hash.Text(), HashOf(engine.get(), prompt));
    });
    const std::string hash = HashOf(engine.get(), prompt);
    thrower.join();
    EXPECT_EQ(HashOf(engine.get(), prompt), hash);
  }
}

// More sequences than a pass takes, all in one call: each gets its turn.
TEST_F(StagesTest, NobodyStarvesInACall) {
  std::mt19937 random(12);
  EngineOptions options = Options("cpu:100%");
  options.max_sequences = 2;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Sequence*> pointers;
  for (int i = 0; i < 6; ++i) {
    sequences.push_back(engine->NewSequence());
    pointers.push_back(sequences.back().get());
  }
  std::vector<int> turns(6, 0);
  for (int step = 0; step < 30; ++step) {
    for (Sequence* s : pointers) {
      if (s->pending() != 0) continue;
      ASSERT_TRUE(s->Append(Tokens(&random, 1)).ok());
    }
    ASSERT_TRUE(engine->EvaluateSome(pointers).ok());
    for (size_t i = 0; i < 6; ++i) turns[i] += pointers[i]->pending() == 0;
  }
  engine->Drain(pointers);
  for (int count : turns) EXPECT_GE(count, 8) << "of 60 shares";
}

// Eight sequences over three stages of the same known time, in one call and each on a thread of its
// own. The stages sleep, so any loss is the scheduler's; a busy machine may spoil a try.
TEST_F(StagesTest, StagesOfAKnownTimeGiveNineTenthsOfTheirIdeal) {
  PipelineLoad load;
  load.cpu_plugin = TRINE_CPU_PLUGIN;
  load.several_plugin = TRINE_SEVERAL_PLUGIN;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  load.stage_time = std::chrono::milliseconds(80);  // the scheduler takes a few times as long
#else
  load.stage_time = std::chrono::milliseconds(20);
#endif
  for (const bool threads : {false, true}) {
    load.threads = threads;
    double best = 0;
    for (int i = 0; i < 6 && best < 0.9; ++i) {
      const auto result = MeasurePipeline(load);
      ASSERT_TRUE(result.ok()) << result.status();
      std::printf("  %.1f tokens/s of %.1f\n", result->tokens_per_s, result->ideal_tokens_per_s);
      best = std::max(best, result->efficiency());
    }
    EXPECT_GE(best, 0.9) << (threads ? "a thread each" : "one thread");
    EXPECT_LE(best, 1.01) << "more than can be";
  }
}

// With more sequences than stages, all stages work at the same time most of the time: their busy
// times add up to well more than the elapsed time, even on a loaded machine.
TEST_F(StagesTest, AllStagesAreAtWorkAtOnce) {
  std::mt19937 random(9);
  setenv("TRINE_FIXTURE_SEVERAL", "4000", 1);
  EngineOptions options = Options("several0:2,several1:2,several2:3");
  options.max_sequences = 8;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  std::vector<std::vector<int32_t>> prompts(8, Tokens(&random, 1));
  const std::vector<int64_t> lengths(8, 24);
  const auto begin = std::chrono::steady_clock::now();
  Together(engine.get(), prompts, lengths);
  const std::chrono::nanoseconds wall = std::chrono::steady_clock::now() - begin;
  double busy = 0;
  for (const SegmentCounters& segment : engine->segments()) {
    busy += static_cast<double>(segment.stage.busy_ns);
  }
  EXPECT_GT(busy / static_cast<double>(wall.count()), 1.5);
  std::printf("  %.2f of 3 stages at work\n", busy / static_cast<double>(wall.count()));
}

}  // namespace
}  // namespace trine
