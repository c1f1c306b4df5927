// Tests the promise of the same bits however a model is run. Each case hashes the logits of every
// position and must give the one hash that is written here, on every machine.
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

// Returns 700 tokens that exercise the shipped model: every part of its vocabulary, no repetition.
std::vector<int32_t> LongPrompt() {
  std::vector<int32_t> tokens;
  uint32_t state = 12345;
  for (int i = 0; i < 700; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((state >> 8) % 8000));
  }
  return tokens;
}

// The hash of LongPrompt with an f16 cache. It changes only with the numerics version.
constexpr char kShippedHash[] = "1-757492e183518ad6";

class ExactnessTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv("TRINE_CPU_ISA"); }
  // 700 tokens take minutes with ThreadSanitizer, which is meant for the other tests.
  static bool TooSlowHere() {
#if defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
  }
  static std::string Hash(const EngineOptions& options) {
    const auto engine = MustLoad(options);
    return engine == nullptr ? "no engine" : HashOf(engine.get(), LongPrompt());
  }
};

TEST_F(ExactnessTest, ThreadsDoNotShow) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  for (uint32_t threads : {1u, 2u, 4u}) {
    EngineOptions options = TestOptions(ShippedModel());
    options.threads = threads;
    EXPECT_EQ(Hash(options), kShippedHash) << threads << " threads";
  }
}

TEST_F(ExactnessTest, TheCutOfThePromptDoesNotShow) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  for (int64_t batch : {1, 7, 64}) {  // 512 is the default
    EngineOptions options = TestOptions(ShippedModel());
    options.batch_tokens = batch;
    EXPECT_EQ(Hash(options), kShippedHash) << batch << " tokens a pass";
  }
}

TEST_F(ExactnessTest, TheSplitDoesNotShow) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  for (const char* split : {"cpu:32", "cpu:1,cpu:31", "cpu:4,cpu:12,cpu:16"}) {
    EngineOptions options = TestOptions(ShippedModel());
    options.placement.split = SplitOf(split);
    EXPECT_EQ(Hash(options), kShippedHash) << split;
  }
}

TEST_F(ExactnessTest, MappedOrReadDoesNotShow) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  EngineOptions options = TestOptions(ShippedModel());
  options.use_mmap = false;
  EXPECT_EQ(Hash(options), kShippedHash);
}

TEST_F(ExactnessTest, TheInstructionSetDoesNotShow) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  for (const char* level : {"baseline", "avx2", "avxvnni", "avx512", "amx", "dotprod", "i8mm"}) {
    setenv("TRINE_CPU_ISA", level, 1);
    auto engine = Engine::Load(TestOptions(ShippedModel()));
    if (engine.ok()) {
      EXPECT_EQ(HashOf(engine->get(), LongPrompt()), kShippedHash) << level;
      std::printf("  %s: the same\n", level);
      continue;
    }
    // The only valid reason is that this machine, or the build, has no such level.
    const std::string why(engine.status().message());
    EXPECT_TRUE(why.find("no such level") != std::string::npos ||
                why.find("can't be used here") != std::string::npos)
        << why;
    EXPECT_STRNE(level, "baseline") << why;
    std::printf("  %s: not here\n", level);
  }
}

TEST_F(ExactnessTest, CompanyInThePassDoesNotShow) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  EngineOptions options = TestOptions(ShippedModel());
  options.max_sequences = 5;
  options.context = 1024;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  // Four other sequences of several lengths, before and behind this one in the batch.
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Sequence*> pointers;
  LogitsHash hash;
  for (int i = 0; i < 5; ++i) {
    sequences.push_back(engine->NewSequence());
    std::vector<int32_t> tokens = LongPrompt();
    if (i != 2) tokens.assign(static_cast<size_t>(3 + 97 * i), 100 + i);
    ASSERT_TRUE(sequences.back()->Append(tokens).ok());
    pointers.push_back(sequences.back().get());
  }
  sequences[2]->set_row_observer(
      [&](int64_t position, std::span<const float> row) { hash.Add(position, row); });
  ASSERT_TRUE(engine->Evaluate(pointers).ok());
  EXPECT_EQ(hash.rows(), 700);
  EXPECT_EQ(hash.Text(), kShippedHash);
}

TEST_F(ExactnessTest, ThreadsThatGenerateAtOnceGetTheirOwnAnswers) {
  EngineOptions options = TestOptions(ShippedModel());
  options.max_sequences = 3;
  options.context = 256;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  const auto generate = [&](uint64_t seed) {
    SessionOptions session_options;
    session_options.sampler.seed = seed;
    auto session = Session::Create(engine.get(), session_options);
    EXPECT_TRUE((*session)->AppendText("Once upon a time", {}).ok());
    Generation result;
    GenerateOptions options;
    options.max_tokens = 24;
    EXPECT_TRUE(Generate(session->get(), options, &result).ok());
    return result.tokens;
  };
  std::vector<std::vector<int32_t>> alone, together(4);
  for (uint64_t seed = 0; seed < 4; ++seed) alone.push_back(generate(seed));
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] { together[seed] = generate(seed); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(together, alone);
  EXPECT_NE(alone[0], alone[1]);
}

TEST_F(ExactnessTest, GoingBackAndOnAgainGivesTheSameLogits) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  const auto engine = MustLoad(TestOptions(ShippedModel()));
  ASSERT_NE(engine, nullptr);
  const std::vector<int32_t> tokens = LongPrompt();
  const std::vector<std::vector<float>> once = AllLogits(engine.get(), tokens);
  auto sequence = engine->NewSequence();
  Sequence* const one[] = {sequence.get()};
  ASSERT_TRUE(sequence->Append(tokens).ok());
  ASSERT_TRUE(engine->Evaluate(one).ok());
  sequence->Truncate(301);
  EXPECT_TRUE(sequence->logits().empty());
  ASSERT_TRUE(sequence->Append(std::span(tokens).subspan(301)).ok());
  ASSERT_TRUE(engine->Evaluate(one).ok());
  const std::span<const float> last = sequence->logits();
  EXPECT_EQ(std::vector<float>(last.begin(), last.end()), once.back());
}

// The other cache types have hashes of their own, equal for every cut.
TEST_F(ExactnessTest, OtherCachesAreExactToo) {
  if (TooSlowHere()) GTEST_SKIP() << "too slow under ThreadSanitizer";
  for (const char* type : {"f32", "bf16", "q8_0"}) {
    EngineOptions options = TestOptions(ShippedModel());
    options.kv_type_k = options.kv_type_v = type;
    const std::string whole = Hash(options);
    options.batch_tokens = 33;
    options.threads = 3;
    EXPECT_EQ(Hash(options), whole) << type;
    EXPECT_NE(whole, kShippedHash) << type;
  }
}

}  // namespace
}  // namespace trine
