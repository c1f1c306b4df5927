// Tests prompts that are read while other sequences decode: in pieces that hold up none of them.
#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using Tokens = std::vector<int32_t>;

struct SeenPass {
  int64_t number, tokens, sequences;
};

class MixedPassTest : public testing::Test {
 protected:
  static constexpr int64_t kLimit = 16;
  static constexpr int64_t kPrompt = 240;

  MixedPassTest()
      : file_(MakeTinyModel(*TinyModelByName("llama")).ToBytes()),
        trace_(std::vector<std::byte>()) {}

  EngineOptions Options(int64_t mixed_tokens) {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split_);
    options.context = 256;
    options.max_sequences = 4;
    options.batch_tokens = 128;
    options.threads = 1;
    options.mixed_tokens = mixed_tokens;
    options.trace = trace_.path();
    return options;
  }
  static Tokens Text(int64_t n, int32_t seed) {
    Tokens tokens;
    for (int64_t i = 0; i < n; ++i)
      tokens.push_back(static_cast<int32_t>((seed + 7 * i * i) % 256));
    return tokens;
  }
  std::unique_ptr<Session> Open(Engine* engine, const Tokens& prompt) {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    auto session = Session::Create(engine, options);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Append(prompt).ok());
    return *std::move(session);
  }
  Tokens Alone(Engine* engine, const Tokens& prompt, int64_t n) {
    const auto session = Open(engine, prompt);
    GenerateOptions options;
    options.max_tokens = n;
    Generation result;
    EXPECT_TRUE(Generate(session.get(), options, &result).ok());
    return result.tokens;
  }
  // Returns the passes of the first segment, in order.
  std::vector<SeenPass> Passes(Engine* engine) {
    EXPECT_TRUE(engine->WriteTrace().ok());
    std::ifstream in(trace_.path());
    const auto json = nlohmann::json::parse(in, nullptr, false);
    std::vector<SeenPass> passes;
    for (const auto& event : json["traceEvents"]) {
      if (event.value("name", "") != "pass") continue;
      const auto& args = event["args"];
      passes.push_back({args["pass"], args["tokens"], args["sequences"]});
    }
    const auto order = [](const SeenPass& a, const SeenPass& b) { return a.number < b.number; };
    std::sort(passes.begin(), passes.end(), order);
    const auto same = [](const SeenPass& a, const SeenPass& b) { return a.number == b.number; };
    passes.erase(std::unique(passes.begin(), passes.end(), same), passes.end());
    return passes;
  }

  struct Outcome {
    Tokens stream, prompt;
    std::vector<SeenPass> passes;
  };
  // One sequence decodes from the first pass on while another reads its prompt.
  Outcome Together(int64_t mixed_tokens) {
    const auto engine = MustLoad(Options(mixed_tokens));
    const auto a = Open(engine.get(), Text(1, 3)), b = Open(engine.get(), Text(kPrompt, 5));
    Session* const sessions[] = {a.get(), b.get()};
    std::vector<GenerateOptions> options(2);
    options[0].max_tokens = 40;
    options[1].max_tokens = 5;
    std::vector<Generation> results(2);
    EXPECT_TRUE(GenerateTogether(sessions, options, results).ok());
    return {results[0].tokens, results[1].tokens, Passes(engine.get())};
  }

  std::string split_ = "cpu:3";
  TempFile file_, trace_;
};

TEST_F(MixedPassTest, PassesInWhichSomeDecodeHaveTheirSize) {
  const auto engine = MustLoad(Options(0));
  const Tokens stream = Alone(engine.get(), Text(1, 3), 40);
  const Tokens prompt = Alone(engine.get(), Text(kPrompt, 5), 5);
  for (const int64_t limit : {kLimit, int64_t{1}}) {
    SCOPED_TRACE(limit);
    const Outcome outcome = Together(limit);
    EXPECT_EQ(outcome.stream, stream);
    EXPECT_EQ(outcome.prompt, prompt);
    int64_t pieces = 0;
    for (const SeenPass& pass : outcome.passes) {
      if (pass.sequences < 2) continue;
      EXPECT_LE(pass.tokens, std::max<int64_t>(limit, 2));  // one token for each at least
      if (pass.tokens > 2) ++pieces;
    }
    EXPECT_EQ(pieces, limit == kLimit ? kPrompt / (kLimit - 1) : 0);
  }
  const Outcome unlimited = Together(0);
  EXPECT_EQ(unlimited.stream, stream);
  EXPECT_EQ(unlimited.passes.front().sequences, 2);
  EXPECT_EQ(unlimited.passes.front().tokens, 128);
}

TEST_F(MixedPassTest, NobodyDecodesNobodyIsSpared) {
  const auto engine = MustLoad(Options(kLimit));
  const auto a = Open(engine.get(), Text(200, 3)), b = Open(engine.get(), Text(kPrompt, 5));
  Session* const sessions[] = {a.get(), b.get()};
  ASSERT_TRUE(EvaluateTogether(sessions).ok());
  const std::vector<SeenPass> passes = Passes(engine.get());
  ASSERT_EQ(passes.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(passes[i].tokens, 128);
}

TEST_F(MixedPassTest, OverSeveralDevices) {
  const auto engine = MustLoad(Options(0));
  const Tokens stream = Alone(engine.get(), Text(1, 3), 40);
  const Tokens prompt = Alone(engine.get(), Text(kPrompt, 5), 5);
  split_ = "several0:1,cpu:1,several1:1";
  const Outcome outcome = Together(kLimit);
  EXPECT_EQ(outcome.stream, stream);
  EXPECT_EQ(outcome.prompt, prompt);
  for (const SeenPass& pass : outcome.passes) EXPECT_LE(pass.tokens, kLimit);
}

// Each has a thread of its own: the decoding one comes back while the next pass is formed.
TEST_F(MixedPassTest, FromSeveralThreads) {
  const auto engine = MustLoad(Options(kLimit));
  std::vector<Tokens> prompts, answers, got(4);
  for (int32_t i = 0; i < 4; ++i) prompts.push_back(Text(i == 0 ? kPrompt - 30 : 1 + i, 40 + i));
  for (const Tokens& prompt : prompts) answers.push_back(Alone(engine.get(), prompt, 40));
  const size_t before = Passes(engine.get()).size();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { got[i] = Alone(engine.get(), prompts[i], 40); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, answers);
  const std::vector<SeenPass> passes = Passes(engine.get());
  int64_t tokens = 0;
  for (size_t i = before; i < passes.size(); ++i) tokens += passes[i].tokens;
  EXPECT_EQ(tokens, kPrompt - 30 + 2 + 3 + 4 + 4 * 39);
}

TEST_F(MixedPassTest, ALimitThatMakesNoSenseIsRefused) {
  EXPECT_EQ(Engine::Load(Options(-1)).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace trine
