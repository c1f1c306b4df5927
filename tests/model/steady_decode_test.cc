// Tests what the host does between two tokens in steady state: it allocates nothing, and prepares
// the next pass while devices run the one before.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/trace.h"
#include "runtime/engine/generate.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "tests/model/engine_test_util.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRINE_COUNTS_ALLOCATIONS 0  // malloc is the sanitizer's
#else
#define TRINE_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<uint64_t> allocations{0};
}

#if TRINE_COUNTS_ALLOCATIONS
// Replaces the C library's functions, also for plugins: every allocation is counted.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(p, n);
}
void* memalign(size_t alignment, size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, n);
}
void* aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
  *p = memalign(alignment, n);
  return *p == nullptr ? ENOMEM : 0;
}
}
#endif

namespace trine {
namespace {

constexpr int64_t kModelLayers = 6;
// Tokens of an answer between which nothing is allocated. No table is due to double there.
constexpr int64_t kFrom = 140, kUntil = 250;

class SteadyDecodeTest : public testing::Test {
 protected:
  SteadyDecodeTest() : file_(Model()) {}
  void TearDown() override { unsetenv("TRINE_FIXTURE_SEVERAL"); }

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = kModelLayers;
    spec.n_ctx = 512;
    return MakeTinyModel(spec).ToBytes();
  }
  EngineOptions Options(const std::string& split) const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split);
    options.threads = 1;
    options.max_sequences = 4;
    return options;
  }

  struct Run {
    uint64_t allocated = 0;  // while each sequence had kFrom to kUntil tokens
    std::vector<std::string> hashes;
  };
  static SessionOptions Sampling() {
    SessionOptions options;
    options.ignore_eos = true;
    options.sampler.temp = 0.8F;
    options.sampler.top_k = 40;
    options.sampler.top_p = 0.9F;
    options.sampler.repeat_penalty = 1.1F;
    options.sampler.seed = 5;
    return options;
  }
  static Run Generate(Engine* engine, size_t n, SessionOptions session_options) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> options(n);
    std::vector<Generation> results(n);
    std::vector<int64_t> had(n, 0);
    Run run;
    uint64_t at_begin = 0;
    bool over = false;
    for (size_t i = 0; i < n; ++i) {
      session_options.sampler.seed += i;
      auto session = Session::Create(engine, session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      const int32_t prompt[] = {1, 2, static_cast<int32_t>(3 + i)};
      EXPECT_TRUE((*session)->Append(prompt).ok());
      pointers.push_back(session->get());
      sessions.push_back(*std::move(session));
      options[i].max_tokens = kUntil + 20;
      options[i].collect = false;
      options[i].on_token = [&, i](const SampleResult&) {
        ++had[i];
        const auto [least, most] = std::minmax_element(had.begin(), had.end());
        if (*least == kFrom && at_begin == 0) at_begin = allocations;
        if (*most == kUntil && !over) {
          over = true;
          run.allocated = allocations - at_begin;
        }
        return true;
      };
    }
    const absl::Status status = GenerateTogether(pointers, options, results);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(over);
    for (const auto& session : sessions) {
      if (session_options.logits_hash) run.hashes.push_back(session->logits_hash().Text());
    }
    return run;
  }

  TempFile file_;
};

TEST_F(SteadyDecodeTest, NothingIsAllocated) {
  if (!TRINE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "allocations are the sanitizer's";
  for (const char* split :
       {"cpu:100%", "several0:100%", "cpu:3,several0:3", "several0:2,cpu:2,several1:2"}) {
    for (const size_t sequences : {size_t{1}, size_t{4}}) {
      const auto engine = MustLoad(Options(split));
      ASSERT_NE(engine, nullptr);
      const Run run = Generate(engine.get(), sequences, Sampling());
      EXPECT_EQ(run.allocated, 0U) << split << ", " << sequences << " sequences";
    }
  }
}

// Nor where the experts that tokens choose are counted.
TEST_F(SteadyDecodeTest, CountingExpertsAllocatesNothing) {
  if (!TRINE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "allocations are the sanitizer's";
  const TempFile moe(*MakeModelBytes(*FindPreset("tiny-mixtral")));
  for (const char* split : {"cpu:100%", "several2:100%", "cpu:2,several0:1"}) {
    EngineOptions options = Options(split);
    options.model_path = moe.path();
    options.expert_stats = moe.path() + ".stats";
    auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(Generate(engine.get(), 1, Sampling()).allocated, 0U) << split;
    EXPECT_GT(engine->expert_hits().choices(), 0u);
    engine.reset();
    std::filesystem::remove(options.expert_stats);
  }
}

// Tests the counter itself.
TEST_F(SteadyDecodeTest, AllocationsAreCounted) {
  if (!TRINE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "allocations are the sanitizer's";
  const uint64_t before = allocations;
  const auto text = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(allocations - before, 2U) << *text;
}

// Passes made ahead equal passes made in time. The device takes long enough for the host to have
// time.
TEST_F(SteadyDecodeTest, PassesAheadHaveTheSameBits) {
  setenv("TRINE_FIXTURE_SEVERAL", "2000", 1);
  SessionOptions options = Sampling();
  options.logits_hash = true;
  const auto alone = MustLoad(Options("cpu:100%"));
  ASSERT_NE(alone, nullptr);
  const Run expected = Generate(alone.get(), 4, options);
  EXPECT_EQ(alone->host_times().passes_ahead, 0U);  // there is no time to
  for (const char* split : {"several0:100%", "cpu:3,several0:3", "several0:2,cpu:2,several1:2"}) {
    const auto engine = MustLoad(Options(split));
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(Generate(engine.get(), 4, options).hashes, expected.hashes) << split;
    const HostTimes times = engine->host_times();
    EXPECT_GT(times.passes_ahead, times.passes / 2) << split;
    EXPECT_GT(times.ahead_ns, 0U);
  }
}

// Forks, regressions and answers that end lead to other passes than those made ahead.
TEST_F(SteadyDecodeTest, WhatComesOtherwiseIsNotAffected) {
  const auto alone = MustLoad(Options("cpu:100%"));
  const auto split = MustLoad(Options("cpu:3,several0:3"));
  ASSERT_NE(alone, nullptr);
  ASSERT_NE(split, nullptr);
  std::vector<std::string> said[2];
  Engine* const engines[] = {alone.get(), split.get()};
  for (size_t e = 0; e < 2; ++e) {
    SessionOptions options = Sampling();
    options.logits_hash = true;
    auto session = Session::Create(engines[e], options);
    ASSERT_TRUE(session.ok()) << session.status();
    const int32_t prompt[] = {1, 2, 3};
    ASSERT_TRUE((*session)->Append(prompt).ok());
    const auto go_on = [&](Session* s, int64_t tokens) {
      GenerateOptions generate;
      generate.max_tokens = tokens;
      Generation result;
      ASSERT_TRUE(trine::Generate(s, generate, &result).ok());
      said[e].push_back(absl::StrCat(s->logits_hash().Text(), " ", result.text));
    };
    for (int round = 0; round < 20; ++round) {
      const auto t = (*session)->Checkpoint();
      ASSERT_TRUE(t.ok()) << t.status();
      go_on(session->get(), 3 + round % 5);
      auto fork = (*session)->Fork(100 + static_cast<uint64_t>(round));
      ASSERT_TRUE(fork.ok()) << fork.status();
      if (round % 3 != 0) {
        ASSERT_TRUE((*session)->Regress(*t).ok());
      }
      go_on(fork->get(), 20);
      go_on(session->get(), 7);
    }
  }
  EXPECT_EQ(said[0], said[1]);
  EXPECT_GT(split->host_times().passes_ahead, 0U);
}

// The trace shows the overlap: a pass is made ahead while a stage runs the pass before it.
TEST_F(SteadyDecodeTest, TheTraceShowsTheOverlap) {
  setenv("TRINE_FIXTURE_SEVERAL", "2000", 1);
  EngineOptions options = Options("several0:100%");
  options.trace_events = 100'000;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  Generate(engine.get(), 4, Sampling());
  std::map<int64_t, Trace::Shown> passes;
  std::vector<Trace::Shown> ahead;
  for (const Trace::Shown& event :
       engine->trace()->trace()->Since(Trace::Clock::time_point::min())) {
    if (std::string_view(event.name) == "pass") passes.emplace(event.arg("pass"), event);
    if (std::string_view(event.name) == "prepare ahead") ahead.push_back(event);
  }
  ASSERT_GT(ahead.size(), 100U);
  size_t within = 0;
  for (const Trace::Shown& event : ahead) {
    const auto pass = passes.find(event.arg("behind pass"));
    ASSERT_NE(pass, passes.end());
    within += event.begin < pass->second.end ? 1 : 0;
    EXPECT_EQ(event.arg("sequences"), pass->second.arg("sequences"));
  }
  // On a busy machine a pass may be late.
  EXPECT_GT(within, ahead.size() / 2);
}

}  // namespace
}  // namespace trine
