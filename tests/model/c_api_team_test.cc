// Threads that a program lends, and OpenMP's, through libtrine's C header: the same bits as with
// the library's own threads, and a status for everything that a program can do wrong.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

using Work = void (*)(void* arg, uint32_t worker);

int32_t ForkAndJoin(Work work, void* arg, uint32_t workers) {
  std::vector<std::thread> threads;
  for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([=] { work(arg, w); });
  work(arg, 0);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// A program's threads, which it lends unless it has none.
struct Pool {
  std::atomic<int> runs{0};
  std::atomic<bool> has_none{false};
  trine_engine* called_inside = nullptr;  // an engine that parallel_run wrongly uses
  std::atomic<int32_t> status_inside{0};

  static int32_t Run(void* self, Work work, void* arg, uint32_t workers) {
    auto* pool = static_cast<Pool*>(self);
    ++pool->runs;
    if (pool->called_inside != nullptr) {
      trine_engine_info info{};
      info.struct_size = sizeof(info);
      pool->status_inside = trine_engine_describe(pool->called_inside, &info);
    }
    return pool->has_none ? 7 : ForkAndJoin(work, arg, workers);
  }
  trine_host_threads Threads(uint32_t workers) {
    trine_host_threads threads{};
    threads.struct_size = sizeof(threads);
    threads.workers = workers;
    threads.self = this;
    threads.parallel_run = Run;
    return threads;
  }
};

class CApiTeamTest : public testing::Test {
 protected:
  CApiTeamTest() : file_(MakeTinyModel(*TinyModelByName("qwen2")).ToBytes()) {}

  trine_engine_options Options() const {
    trine_engine_options options{};
    options.struct_size = sizeof(options);
    options.model = file_.path().c_str();
    options.context = 256;
    return options;
  }
  int32_t Open(const trine_engine_options& options, trine_engine** engine) {
    why_ = {};
    why_.struct_size = sizeof(why_);
    return trine_engine_open(&options, engine, &why_);
  }
  // Expects that no engine is opened, and returns the reason.
  std::string Refused(const trine_engine_options& options, int32_t status) {
    trine_engine* engine = nullptr;
    EXPECT_EQ(Open(options, &engine), status) << why_.message;
    EXPECT_EQ(engine, nullptr);
    return why_.message;
  }
  int32_t Generate(trine_session* session) {
    trine_generate_options options{};
    options.struct_size = sizeof(options);
    options.max_tokens = 12;
    why_ = {};
    why_.struct_size = sizeof(why_);
    return trine_generate(session, &options, nullptr, &why_);
  }
  static trine_session* OpenSession(trine_engine* engine) {
    trine_session_options options{};
    options.struct_size = sizeof(options);
    options.flags = TRINE_SESSION_IGNORE_END | TRINE_SESSION_LOGITS_HASH;
    trine_session* session = nullptr;
    EXPECT_EQ(trine_session_open(engine, &options, &session, nullptr), 0);
    EXPECT_EQ(trine_session_append_text(session, "the end", 7, 0, nullptr), 0);
    return session;
  }
  static std::string Hash(trine_session* session) {
    char hash[24] = {};
    EXPECT_EQ(trine_session_logits_hash(session, hash, sizeof(hash)), 0);
    return hash;
  }
  // Generates with an engine of these options, and returns its team with the hash of the logits.
  std::string TeamAndHash(const trine_engine_options& options) {
    trine_engine* engine = nullptr;
    if (Open(options, &engine) != 0) return why_.message;
    trine_engine_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(trine_engine_describe(engine, &info), 0);
    trine_session* session = OpenSession(engine);
    EXPECT_EQ(Generate(session), 0) << why_.message;
    std::string text = std::string(info.team) + " " + std::to_string(info.threads) + " ";
    text += Hash(session);
    trine_session_close(session);
    trine_engine_close(engine);
    return text;
  }

  TempFile file_;
  trine_failure why_{};
};

TEST_F(CApiTeamTest, EveryTeamGivesTheSameBits) {
  trine_engine_options options = Options();
  options.threads = 2;
  const std::string own = TeamAndHash(options);
  ASSERT_EQ(own.substr(0, 6), "own 2 ");
  const std::string hash = own.substr(6);
  options.team = "own";
  EXPECT_EQ(TeamAndHash(options), own);
  options.team = "";
  Pool pool;
  trine_host_threads threads = pool.Threads(2);
  options.host_threads = &threads;
  EXPECT_EQ(TeamAndHash(options), "host 2 " + hash);
  EXPECT_GT(pool.runs, 12);
  options.host_threads = nullptr;
  options.team = "openmp";
  const std::string openmp = TeamAndHash(options);
  if (openmp.find("this build has no OpenMP") != std::string::npos) GTEST_SKIP() << openmp;
  EXPECT_EQ(openmp, "openmp 2 " + hash);
}

TEST_F(CApiTeamTest, ThreadsThatAreMissingForAWhileFailThatCallAlone) {
  Pool pool;
  const trine_host_threads threads = pool.Threads(2);
  trine_engine_options options = Options();
  options.host_threads = &threads;
  trine_engine* engine = nullptr;
  ASSERT_EQ(Open(options, &engine), 0) << why_.message;
  trine_session* session = OpenSession(engine);
  trine_session* undisturbed = OpenSession(engine);
  ASSERT_EQ(Generate(undisturbed), 0) << why_.message;
  pool.has_none = true;
  EXPECT_EQ(Generate(session), kFailedPrecondition);
  EXPECT_THAT(why_.message, HasSubstr("parallel_run returned 7: it has no threads to lend"));
  pool.has_none = false;
  EXPECT_EQ(Generate(session), 0) << why_.message;
  EXPECT_EQ(Hash(session), Hash(undisturbed));
  trine_session_close(session);
  trine_session_close(undisturbed);
  trine_engine_close(engine);
}

TEST_F(CApiTeamTest, ParallelRunMustNotCallTheLibrary) {
  Pool pool;
  const trine_host_threads threads = pool.Threads(2);
  trine_engine_options options = Options();
  options.host_threads = &threads;
  trine_engine* engine = nullptr;
  ASSERT_EQ(Open(options, &engine), 0) << why_.message;
  pool.called_inside = engine;
  trine_session* session = OpenSession(engine);
  EXPECT_EQ(Generate(session), 0) << why_.message;
  EXPECT_EQ(pool.status_inside, kFailedPrecondition);
  trine_session_close(session);
  trine_engine_close(engine);
}

TEST_F(CApiTeamTest, WrongOptionsAreRefused) {
  trine_engine_options options = Options();
  options.team = "theirs";
  EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("team: 'theirs' is no team"));
  Pool pool;
  trine_host_threads threads = pool.Threads(2);
  options.host_threads = &threads;
  options.team = "own";
  EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("team and host_threads are both set"));
  options.team = nullptr;
  options.threads = 3;
  EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("lends 2 threads, and asks for 3"));
  options.threads = 0;
  for (uint32_t workers : {0u, 1025u}) {
    threads.workers = workers;
    EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("expected 1 to 1024"));
  }
  threads = pool.Threads(2);
  threads.parallel_run = nullptr;
  EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("parallel_run is NULL"));
  threads = pool.Threads(2);
  for (uint32_t size : {0u, 2u, 13u}) {
    threads.struct_size = size;
    EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("host_threads: struct_size"));
  }
  threads = pool.Threads(2);
  threads.struct_size = offsetof(trine_host_threads, parallel_run);  // it must not be read
  EXPECT_THAT(Refused(options, kInvalidArgument), HasSubstr("parallel_run is NULL"));
  EXPECT_EQ(pool.runs, 0);
  threads = pool.Threads(2);
  pool.has_none = true;
  EXPECT_THAT(Refused(options, kFailedPrecondition), HasSubstr("it has no threads to lend"));
}

TEST_F(CApiTeamTest, OlderProgramsHaveTheLibrarysThreads) {
  trine_engine_options options = Options();
  options.struct_size = offsetof(trine_engine_options, team);
  options.team = "must not be read";
  options.host_threads = reinterpret_cast<const trine_host_threads*>(16);
  trine_engine* engine = nullptr;
  ASSERT_EQ(Open(options, &engine), 0) << why_.message;
  trine_engine_info info{};
  info.struct_size = offsetof(trine_engine_info, team);
  std::strcpy(info.team, "unwritten");
  EXPECT_EQ(trine_engine_describe(engine, &info), 0);
  EXPECT_STREQ(info.team, "unwritten");
  trine_engine_close(engine);
}

}  // namespace
}  // namespace trine
