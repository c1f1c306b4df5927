// Handles that a host uses wrongly: closed, closed twice, in two threads, in their own callbacks,
// in a child process. Every call has a status; none may end the process or wait for ever.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.h"

namespace trine {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRounds = 100;
constexpr int32_t kInvalid = 3, kPrecondition = 9;

class CApiMisuseTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    file_ = new TempFile(MakeTinyModel(*TinyModelByName("qwen2")).ToBytes());
  }
  static void TearDownTestSuite() { delete file_; }

  static trine_engine_options WithModel(trine_engine_options options) {
    options.struct_size = sizeof(options);
    options.model = file_->path().c_str();
    options.context = 256;
    options.max_sequences = 4;
    if (options.threads == 0) options.threads = 1;
    return options;
  }
  static trine_engine* OpenEngine(trine_engine_options options = {}) {
    options = WithModel(options);
    trine_engine* engine = nullptr;
    EXPECT_EQ(trine_engine_open(&options, &engine, Why()), 0) << why_.message;
    return engine;
  }
  static trine_session* OpenSession(trine_engine* engine) {
    trine_session_options options{};
    options.struct_size = sizeof(options);
    options.flags = TRINE_SESSION_IGNORE_END;
    trine_session* session = nullptr;
    EXPECT_EQ(trine_session_open(engine, &options, &session, Why()), 0) << why_.message;
    EXPECT_EQ(trine_session_append_text(session, "the end", 7, 0, nullptr), 0);
    return session;
  }
  using OnToken = std::function<void()>;
  static int32_t Generate(trine_session* session, int64_t tokens, OnToken on_token = nullptr) {
    trine_generate_options options{};
    options.struct_size = sizeof(options);
    options.max_tokens = tokens;
    if (on_token) {
      options.user = &on_token;
      options.on_token = [](void* user, const trine_token_event*) -> int32_t {
        (*static_cast<OnToken*>(user))();
        return 0;
      };
    }
    return trine_generate(session, &options, nullptr, Why());
  }
  static trine_failure* Why() {
    why_ = {};
    why_.struct_size = sizeof(why_);
    return &why_;
  }
  static int32_t OpenInChild(const char* team);
  // Makes every call that a session has; each must fail with one of two statuses.
  static void ExpectRefused(trine_session* session) {
    const auto refused = AnyOf(kInvalid, kPrecondition);
    int32_t token = 0;
    int64_t t = 0;
    size_t count = 0;
    char text[64];
    trine_session* fork = nullptr;
    EXPECT_THAT(Generate(session, 1), refused);
    EXPECT_THAT(trine_session_append(session, &token, 1, nullptr), refused);
    EXPECT_THAT(trine_session_append_text(session, "x", 1, 0, nullptr), refused);
    EXPECT_THAT(trine_session_truncate(session, 0), refused);
    EXPECT_THAT(trine_session_erase(session, 0, 1, nullptr), refused);
    EXPECT_THAT(trine_session_checkpoint(session, &t, nullptr), refused);
    EXPECT_THAT(trine_session_regress(session, 0, nullptr), refused);
    EXPECT_THAT(trine_session_forget(session, 0, nullptr), refused);
    EXPECT_THAT(trine_session_fork(session, nullptr, &fork, nullptr), refused);
    EXPECT_EQ(fork, nullptr);
    EXPECT_THAT(trine_session_tokens(session, nullptr, 0, &count), refused);
    EXPECT_THAT(trine_evaluate(&session, 1, nullptr), refused);
    EXPECT_EQ(trine_session_logits(session), nullptr);
    EXPECT_THAT(trine_session_sample(session, &token, nullptr), refused);
    EXPECT_THAT(trine_session_logits_hash(session, text, sizeof(text)), refused);
  }

  static TempFile* file_;
  static thread_local trine_failure why_;
};
TempFile* CApiMisuseTest::file_ = nullptr;
thread_local trine_failure CApiMisuseTest::why_;

TEST_F(CApiMisuseTest, ClosedHandlesAreRefused) {
  trine_engine* engine = OpenEngine();
  for (int round = 0; round < kRounds; ++round) {
    trine_session* session = OpenSession(engine);
    trine_session_close(session);
    ExpectRefused(session);
    EXPECT_EQ(Generate(session, 1), kInvalid);
    EXPECT_THAT(why_.message, HasSubstr("the session is not open"));
    trine_session_cancel(session);
    trine_session_close(session);
  }
  trine_engine_close(engine);
  trine_engine_close(engine);
  trine_session* session = nullptr;
  EXPECT_EQ(trine_session_open(engine, nullptr, &session, Why()), kInvalid);
  EXPECT_THAT(why_.message, HasSubstr("the engine is not open"));
  EXPECT_EQ(trine_token_is_end(engine, 0), 0);
}

TEST_F(CApiMisuseTest, WhatNeverWasAHandleIsRefused) {
  int memory[64] = {};
  ExpectRefused(reinterpret_cast<trine_session*>(memory));
  ExpectRefused(reinterpret_cast<trine_session*>(16));
  trine_engine* engine = OpenEngine();
  ExpectRefused(reinterpret_cast<trine_session*>(engine));
  trine_session_close(reinterpret_cast<trine_session*>(engine));
  trine_session* session = OpenSession(engine);
  EXPECT_EQ(Generate(session, 3), 0) << why_.message;
  trine_session_close(session);
  trine_engine_close(engine);
}

TEST_F(CApiMisuseTest, AnEngineLivesAsLongAsItsSessions) {
  for (int round = 0; round < kRounds; ++round) {
    trine_engine* engine = OpenEngine();
    trine_session* session = OpenSession(engine);
    trine_engine_close(engine);
    EXPECT_EQ(Generate(session, 2), 0) << why_.message;
    trine_session* second = nullptr;
    EXPECT_EQ(trine_session_open(engine, nullptr, &second, Why()), kInvalid);
    trine_session_close(session);
  }
}

TEST_F(CApiMisuseTest, ClosingWhileAnotherThreadGeneratesEndsTheGeneration) {
  for (int round = 0; round < kRounds; ++round) {
    trine_engine* engine = OpenEngine();
    trine_session* session = OpenSession(engine);
    std::atomic<int> tokens = 0;
    std::thread generating(
        [&] { EXPECT_EQ(Generate(session, 200, [&] { ++tokens; }), 0) << why_.message; });
    while (tokens < 1 + round % 3) std::this_thread::yield();
    // In either order.
    if (round % 2 == 0) trine_engine_close(engine);
    trine_session_close(session);
    if (round % 2 != 0) trine_engine_close(engine);
    generating.join();
  }
}

TEST_F(CApiMisuseTest, TwoThreadsInOneSessionAreToldSo) {
  trine_engine* engine = OpenEngine();
  for (int round = 0; round < kRounds; ++round) {
    trine_session* session = OpenSession(engine);
    std::atomic<int> good = 0, refused = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 3; ++i) {
          const int32_t status = Generate(session, 5);
          if (status == 0) {
            ++good;
          } else {
            EXPECT_EQ(status, kPrecondition) << why_.message;
            EXPECT_THAT(why_.message, HasSubstr("another call is in the session"));
            ++refused;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good + refused, 12);
    EXPECT_GE(good, 1);
    trine_session_close(session);
  }
  trine_engine_close(engine);
}

// Threads that know nothing of one another share handles, and make any call with any of them.
TEST_F(CApiMisuseTest, AnyCallsFromManyThreads) {
  constexpr int kThreads = 4, kCalls = 60, kHandles = 6;
  for (int round = 0; round < kRounds / 10; ++round) {
    std::vector<trine_engine*> engines = {OpenEngine(), OpenEngine()};
    std::vector<std::atomic<trine_session*>> sessions(kHandles);
    for (int i = 0; i < kHandles; ++i) sessions[i] = OpenSession(engines[i % 2]);
    // Any status but that of a bug is good.
    const auto expect_answer = [](int32_t status) { EXPECT_NE(status, 13) << "INTERNAL"; };
    const auto call = [&](std::mt19937& random) {
      std::atomic<trine_session*>& place = sessions[random() % kHandles];
      trine_session* const session = place;
      trine_session* made = nullptr;
      int64_t t = 0;
      switch (random() % 12) {
        case 0:
          trine_session_close(session);
          return;
        case 1:
          trine_session_cancel(session);
          return;
        case 2:
          return expect_answer(trine_session_truncate(session, random() % 8));
        case 3:
          return expect_answer(trine_session_checkpoint(session, &t, nullptr));
        case 4:
          return expect_answer(trine_session_regress(session, 0, nullptr));
        case 5:
          return expect_answer(trine_session_erase(session, 1, 2, nullptr));
        case 6: {
          const int32_t status = trine_session_fork(session, nullptr, &made, nullptr);
          expect_answer(status);
          if (status == 0) trine_session_close(place.exchange(made));
          return;
        }
        case 7: {
          trine_session* pair[] = {session, sessions[random() % kHandles]};
          return expect_answer(trine_evaluate(pair, 2, nullptr));
        }
        case 8: {
          const int32_t status = trine_session_open(engines[random() % 2], nullptr, &made, nullptr);
          expect_answer(status);
          if (status == 0) trine_session_close(place.exchange(made));
          return;
        }
        case 9:
          if (random() % 20 == 0) trine_engine_close(engines[random() % 2]);
          return;
        case 10:
          return expect_answer(trine_session_append_text(session, "a b", 3, 0, nullptr));
        default:
          return expect_answer(Generate(session, 2, [&] { trine_session_truncate(session, 0); }));
      }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(static_cast<uint32_t>(round * kThreads + thread));
        for (int i = 0; i < kCalls; ++i) call(random);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::atomic<trine_session*>& session : sessions) trine_session_close(session);
    for (trine_engine* engine : engines) trine_engine_close(engine);
  }
}

TEST_F(CApiMisuseTest, ACallbackIsRefusedItsOwnSessionButNotAnother) {
  trine_engine* engine = OpenEngine();
  for (int round = 0; round < kRounds; ++round) {
    trine_session* session = OpenSession(engine);
    trine_session* other = OpenSession(engine);
    EXPECT_EQ(Generate(session, 2,
                       [&] {
                         ExpectRefused(session);
                         EXPECT_EQ(Generate(other, 1), 0) << why_.message;
                         EXPECT_EQ(trine_engine_readmit(engine, nullptr, Why()), kPrecondition);
                       }),
              0);
    trine_session_close(session);
    trine_session_close(other);
  }
  trine_engine_close(engine);
}

TEST_F(CApiMisuseTest, ACallbackMayCloseWhatItRunsFor) {
  for (int round = 0; round < kRounds; ++round) {
    trine_engine* engine = OpenEngine();
    trine_session* session = OpenSession(engine);
    EXPECT_EQ(Generate(session, 50,
                       [&] {
                         trine_engine_close(engine);
                         trine_session_close(session);
                       }),
              0);
    ExpectRefused(session);
  }
}

TEST_F(CApiMisuseTest, OnPromptIsRefusedItsOwnEngine) {
  struct User {
    trine_session* other;
    int32_t status = 0;
  };
  trine_engine* engine = OpenEngine();
  for (int round = 0; round < kRounds; ++round) {
    trine_session* session = OpenSession(engine);
    User user{OpenSession(engine)};
    trine_generate_options options{};
    options.struct_size = sizeof(options);
    options.max_tokens = 2;
    options.user = &user;
    options.on_prompt = [](void* given, int64_t, int64_t) {
      User& u = *static_cast<User*>(given);
      u.status = Generate(u.other, 1);
    };
    EXPECT_EQ(trine_generate(session, &options, nullptr, Why()), 0) << why_.message;
    EXPECT_EQ(user.status, kPrecondition);
    trine_session_close(session);
    trine_session_close(user.other);
  }
  trine_engine_close(engine);
}

// Plugins and the runtime log while a model is loaded, and while it is closed.
TEST_F(CApiMisuseTest, OnLogIsRefusedEverything) {
  struct User {
    trine_session* session = nullptr;
    trine_engine* engine = nullptr;
    int calls = 0;
  } user;
  trine_engine_options options{};
  options.user = &user;
  options.faults = "cpu:lost@run=100000";  // is told
  options.on_log = [](void* given, uint32_t, const char*) {
    User& u = *static_cast<User*>(given);
    ++u.calls;
    ExpectRefused(u.session);
    trine_engine_close(u.engine);
  };
  trine_engine* other = OpenEngine();
  user.session = OpenSession(other);
  trine_engine* engine = OpenEngine(options);
  user.engine = engine;
  trine_session* session = OpenSession(engine);
  EXPECT_EQ(Generate(session, 2), 0) << why_.message;
  trine_session_close(session);
  trine_engine_close(engine);
  trine_session_close(user.session);
  trine_engine_close(other);
}

// What an engine logs while it is destroyed reaches the host; later it is silent.
TEST_F(CApiMisuseTest, ClosingLogsToTheEnd) {
  std::string log;
  trine_engine_options options{};
  options.user = &log;
  options.faults = "cpu:lost@run=100000";
  options.on_log = [](void* user, uint32_t, const char* message) {
    *static_cast<std::string*>(user) += message;
  };
  trine_engine_close(OpenEngine(options));
  EXPECT_THAT(log, HasSubstr("fault 'cpu:lost@run=100000' never happened"));
  trine_engine* engine = OpenEngine(options);
  trine_session* session = OpenSession(engine);
  log.clear();                 // of what was said at the beginning, about the processor's level
  trine_engine_close(engine);  // the session keeps the engine
  trine_session_close(session);
  EXPECT_EQ(log, "");
}

TEST_F(CApiMisuseTest, AChildProcessIsToldToOpenItsOwnEngine) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow a fork with threads";
#endif
  trine_engine* engine = OpenEngine();
  trine_session* session = OpenSession(engine);
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a child that waits for ever is a failure
      bool good = Generate(session, 1) == kPrecondition &&
                  std::string(why_.message).find("fork()") != std::string::npos;
      good = good && trine_session_append_text(session, "x", 1, 0, nullptr) == kPrecondition;
      trine_session_cancel(session);
      trine_session_close(session);
      trine_engine_close(engine);
      _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0);
    ASSERT_EQ(Generate(session, 1), 0) << why_.message;
  }
  trine_session_close(session);
  trine_engine_close(engine);
}

// Opens an engine with this team in a child process of a thread that generates with it, and
// generates. Returns the status of opening, or 100 plus the status of generating if that fails.
int32_t CApiMisuseTest::OpenInChild(const char* team) {
  trine_engine_options options{};
  options.team = team;
  options.threads = 2;
  trine_engine* engine = OpenEngine(options);
  trine_session* session = OpenSession(engine);
  EXPECT_EQ(Generate(session, 1), 0) << why_.message;
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);  // opening takes long on a busy machine
    trine_engine* own = nullptr;
    trine_engine_options again = WithModel(options);
    const int32_t opened = trine_engine_open(&again, &own, Why());
    if (opened != 0) _exit(opened);
    trine_session* fresh = OpenSession(own);
    const int32_t generated = Generate(fresh, 2);
    trine_session_close(fresh);
    trine_engine_close(own);
    _exit(generated == 0 ? 0 : 100 + generated);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  trine_session_close(session);
  trine_engine_close(engine);
  return WEXITSTATUS(status);
}

TEST_F(CApiMisuseTest, AChildProcessCanOpenItsOwnEngine) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow a fork with threads";
#endif
  for (int round = 0; round < kRounds / 10; ++round) EXPECT_EQ(OpenInChild("own"), 0);
}

// The pool of the thread that forks lacks its threads in the child.
TEST_F(CApiMisuseTest, AChildProcessIsRefusedThePoolOfItsParent) {
  trine_engine_options options = WithModel({});
  options.team = "openmp";
  trine_engine* engine = nullptr;
  if (trine_engine_open(&options, &engine, Why()) != 0) GTEST_SKIP() << why_.message;
  trine_engine_close(engine);
  EXPECT_EQ(OpenInChild("openmp"), kPrecondition);
}

TEST_F(CApiMisuseTest, TruncatingBeyondTheEndIsRefused) {
  trine_engine* engine = OpenEngine();
  trine_session* session = OpenSession(engine);
  size_t count = 0;
  trine_session_tokens(session, nullptr, 0, &count);
  EXPECT_EQ(trine_session_truncate(session, static_cast<int64_t>(count) + 1), kInvalid);
  EXPECT_EQ(trine_session_truncate(session, -1), kInvalid);
  EXPECT_EQ(trine_session_truncate(session, static_cast<int64_t>(count)), 0);
  EXPECT_EQ(trine_session_truncate(session, 1), 0);
  trine_session_close(session);
  trine_engine_close(engine);
}

}  // namespace
}  // namespace trine
