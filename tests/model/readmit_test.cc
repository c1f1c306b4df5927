// Tests devices that were lost and come back: the model returns to the placement that was asked
// for, and the text is that of an undisturbed run.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kAsked[] = "several0:0-2 cpu:2-4 several1:4-6 ";
constexpr char kWithout[] = "several0:0-2 cpu:2-6 ";

class ReadmitTest : public testing::Test {
 protected:
  ReadmitTest() : file_(Model()), path_(file_.path()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = 6;
    return MakeTinyModel(spec).ToBytes();
  }

  // Loads an engine that readmits devices only when the test says so.
  std::unique_ptr<Engine> Load(const std::string& faults) {
    EngineOptions options = TestOptions(path_);
    options.use_mmap = use_mmap_;
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split_);
    options.threads = 1;
    options.context = 256;
    options.max_sequences = 3;
    options.faults = faults;
    options.stage_limit = stage_limit_;
    options.readmission = readmission_;
    return MustLoad(options);
  }

  static std::unique_ptr<Session> Open(Engine* engine) {
    SessionOptions options;
    options.sampler.seed = 11;
    options.ignore_eos = true;
    options.logits_hash = true;
    auto session = Session::Create(engine, options);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Append(std::vector<int32_t>(9, 41)).ok());
    return *std::move(session);
  }

  static std::string Say(Session* session, int64_t n_tokens, bool more_follows = false) {
    GenerateOptions options;
    options.max_tokens = n_tokens;
    options.more_follows = more_follows;
    Generation result;
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result.text;
  }

  // Returns tokens and logits of an answer in two halves.
  static std::string Told(const Session& session) {
    return absl::StrCat(session.logits_hash().Text(), " ", session.sequence().size());
  }

  std::string Undisturbed() {
    auto engine = Load("");
    auto session = Open(engine.get());
    Say(session.get(), 6);
    Say(session.get(), 6);
    return Told(*session);
  }

  static std::string Places(const Engine& engine) {
    std::string text;
    for (const SegmentPlace& p : engine.model()->places()) {
      absl::StrAppend(&text, p.device_name, ":", p.span.begin, "-", p.span.end, " ");
    }
    return text;
  }

  std::string split_ = "several0:2,cpu:2,several1:2";
  ReadmissionOptions readmission_{.automatic = false};
  bool use_mmap_ = true;
  // Generous, for slow machines and sanitizers.
  std::chrono::milliseconds stage_limit_ = std::chrono::seconds(30);
  TempFile file_;
  std::string path_;
};

TEST_F(ReadmitTest, ADeviceThatIsBackIsUsedAgain) {
  const std::string undisturbed = Undisturbed();
  auto engine = Load("several1:lost@token=3,back=0");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
  EXPECT_EQ(Places(*engine), kWithout);
  const absl::Status status = engine->Readmit("several1");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(engine->lost_devices(), IsEmpty());
  EXPECT_EQ(Places(*engine), kAsked);
  Say(session.get(), 6);
  EXPECT_EQ(Told(*session), undisturbed);
  ASSERT_THAT(engine->segments(), SizeIs(3));
  EXPECT_EQ(engine->segments()[2].placement, 3u);
  EXPECT_EQ(engine->segments()[2].stage.jobs, engine->segments()[0].stage.jobs);
  EXPECT_GE(engine->segments()[2].tokens, 9u + 6 + 5);  // all of them again
}

// Passes that finish while their owners are away belong to the placement they were made for. They
// are collected later, and nothing of them is used for passes of the next placement, which has more
// stages here.
TEST_F(ReadmitTest, PassesOfAnotherPlacementAreNotUsedAgain) {
  auto engine = Load("several1:lost@token=3,back=0");
  ASSERT_NE(engine, nullptr);
  std::unique_ptr<Session> sessions[] = {Open(engine.get()), Open(engine.get())};
  Say(sessions[0].get(), 6);
  ASSERT_EQ(Places(*engine), kWithout);
  std::vector<std::unique_ptr<Sequence>> owned;
  std::vector<Sequence*> both;
  for (int i = 0; i < 2; ++i) {
    owned.push_back(engine->NewSequence());
    ASSERT_TRUE(owned.back()->Append(std::vector<int32_t>(5, 40 + i)).ok());
    both.push_back(owned.back().get());
  }
  const auto step = [&] {
    const int32_t token = 42;
    for (Sequence* s : both) {
      if (s->pending() != 0) continue;
      EXPECT_TRUE(s->Append(std::span(&token, 1)).ok());
    }
    EXPECT_TRUE(engine->EvaluateSome(both).ok());
  };
  // Wait until one of them is away: on a busy machine both may have come back before this looks.
  const auto one_is_away = [&] { return (both[0]->pending() == 0) != (both[1]->pending() == 0); };
  setenv("TRINE_FIXTURE_SEVERAL", "2000", 1);
  for (int i = 0; i < 10 || (i < 1000 && !one_is_away()); ++i) step();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other one's pass lands
  unsetenv("TRINE_FIXTURE_SEVERAL");
  ASSERT_TRUE(engine->Readmit("several1").ok());
  ASSERT_EQ(Places(*engine), kAsked);
  ASSERT_TRUE(one_is_away());
  // The one that is back goes on, and while its pass is in flight the other comes for its result.
  const bool first_is_home = both[0]->pending() == 0;
  Sequence* const home = both[first_is_home ? 0 : 1];
  Sequence* const away = both[first_is_home ? 1 : 0];
  const int32_t token = 42;
  ASSERT_TRUE(home->Append(std::span(&token, 1)).ok());
  setenv("TRINE_FIXTURE_SEVERAL", "50000", 1);
  std::thread slow([&] { EXPECT_TRUE(engine->Evaluate(std::span(&home, 1)).ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(engine->Evaluate(std::span(&away, 1)).ok());
  slow.join();
  unsetenv("TRINE_FIXTURE_SEVERAL");
  // From here on a pass has one token, and each is counted on the current placement.
  const auto before = engine->segments();
  Say(sessions[1].get(), 1);
  const auto read = engine->segments();
  Say(sessions[1].get(), 30);
  const auto after = engine->segments();
  ASSERT_THAT(after, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GT(read[i].tokens, before[i].tokens);
    EXPECT_EQ(after[i].tokens - read[i].tokens, after[i].stage.jobs - read[i].stage.jobs) << i;
  }
}

TEST_F(ReadmitTest, OneThatIsNotBackChangesNothing) {
  const std::string undisturbed = Undisturbed();
  auto engine = Load("several1:lost@token=3");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  const auto before = engine->segments();
  for (const char* name : {"several1", ""}) {
    const absl::Status status = engine->Readmit(name);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("several1: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("the device is gone"));
  }
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
  EXPECT_EQ(Places(*engine), kWithout);
  EXPECT_EQ(engine->segments()[0].placement, before[0].placement);
  EXPECT_EQ(engine->segments()[0].stage.jobs, before[0].stage.jobs);
  Say(session.get(), 6);
  EXPECT_EQ(Told(*session), undisturbed);
}

TEST_F(ReadmitTest, OneThatIsNotLostIsRefused) {
  auto engine = Load("");
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->Readmit("").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(engine->Readmit("several1")));
  EXPECT_FALSE(engine->Readmit("dgpu7").ok());
}

TEST_F(ReadmitTest, OneThatFailsAgainIsLostAgain) {
  const std::string undisturbed = Undisturbed();
  auto engine = Load("several1:lost@token=3,back=0;several1:oom@plan=2");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  const absl::Status status = engine->Readmit("several1");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("oom@plan=2"));
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
  EXPECT_EQ(Places(*engine), kWithout);
  EXPECT_TRUE(engine->Readmit("").ok());
  EXPECT_EQ(Places(*engine), kAsked);
  Say(session.get(), 6);
  EXPECT_EQ(Told(*session), undisturbed);
}

// A working model is not given up for one that can't be loaded.
TEST_F(ReadmitTest, NotWhenTheFileIsGone) {
  use_mmap_ = false;
  TempFile copy(Model());
  path_ = copy.path();
  auto engine = Load("several1:lost@token=3,back=0");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  std::filesystem::rename(path_, path_ + ".away");
  const absl::Status status = engine->Readmit("several1");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("can't be read again"));
  EXPECT_EQ(Places(*engine), kWithout);
  Say(session.get(), 6);
  std::filesystem::rename(path_ + ".away", path_);
  EXPECT_TRUE(engine->Readmit("several1").ok());
  EXPECT_EQ(Places(*engine), kAsked);
}

TEST_F(ReadmitTest, SizesThatCannotBeAreAsGoodAsALoss) {
  const std::string undisturbed = Undisturbed();
  auto engine = Load("several1:lost@token=3,back=0;several1:garbage=size@query=2+");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  const absl::Status status = engine->Readmit("several1");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(Places(*engine), kWithout);
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
  Say(session.get(), 6);
  EXPECT_EQ(Told(*session), undisturbed);
}

// The call hangs for longer than a stage may take, and returns with the device lost.
TEST_F(ReadmitTest, NotWhileAPassHangsInIt) {
  stage_limit_ = std::chrono::milliseconds(200);
  const std::string undisturbed = Undisturbed();
  auto engine = Load("several1:timeout=1200ms@token=3,back=0");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  absl::Status status = engine->Readmit("several1");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("still in it"));
  EXPECT_EQ(Places(*engine), kWithout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!status.ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = engine->Readmit("several1");
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Places(*engine), kAsked);
  Say(session.get(), 6);
  EXPECT_EQ(Told(*session), undisturbed);
}

TEST_F(ReadmitTest, TheLastOneTakesUpWhereItEnded) {
  split_ = "several1:6";
  const std::string undisturbed = Undisturbed();
  auto engine = Load(
      "several1:lost@token=3,back=0;*:lost@open=2,back=0;cpu:lost@open,back=0;"
      "several0:lost@open;several2:lost@open;several3:lost@open");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  GenerateOptions options;
  options.max_tokens = 6;
  Generation result;
  absl::Status status = Generate(session.get(), options, &result);
  ASSERT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no device is left"));
  EXPECT_THAT(engine->segments(), IsEmpty());
  EXPECT_TRUE(absl::IsUnavailable(engine->Readmit("several1")));  // its second loss, by the faults
  status = engine->Readmit("several1");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Places(*engine), "several1:0-6 ");
  Say(session.get(), 12 - result.n_tokens);
  EXPECT_EQ(Told(*session), undisturbed);
}

TEST_F(ReadmitTest, ByItselfWhenARequestBeginsAndNotBefore) {
  const std::string undisturbed = Undisturbed();
  readmission_ = {.automatic = true, .first = std::chrono::milliseconds(0)};
  auto engine = Load("several1:lost@token=3,back=0");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 4, /*more_follows=*/true);
  EXPECT_EQ(Places(*engine), kWithout);
  Say(session.get(), 2);  // the answer goes on
  EXPECT_EQ(Places(*engine), kWithout);
  Say(session.get(), 6);
  EXPECT_EQ(Places(*engine), kAsked);
  EXPECT_THAT(engine->lost_devices(), IsEmpty());
  EXPECT_EQ(Told(*session), undisturbed);
}

// A model that did not fit would not fit again.
TEST_F(ReadmitTest, NotByItselfForWantOfMemory) {
  readmission_ = {.automatic = true, .first = std::chrono::milliseconds(0)};
  auto engine = Load("several1:oom@plan=1");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 2);
  Say(session.get(), 2);
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
  EXPECT_EQ(Places(*engine), kWithout);
  EXPECT_TRUE(engine->Readmit("several1").ok());
  EXPECT_EQ(Places(*engine), kAsked);
}

TEST_F(ReadmitTest, NotByItselfBeforeItsTime) {
  readmission_ = {.automatic = true, .first = std::chrono::hours(1)};
  auto engine = Load("several1:lost@token=3,back=0");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 6);
  Say(session.get(), 6);
  EXPECT_EQ(Places(*engine), kWithout);
  EXPECT_TRUE(engine->Readmit("").ok());  // the caller need not wait
  EXPECT_EQ(Places(*engine), kAsked);
}

TEST_F(ReadmitTest, AttemptsThatFailComeLessOften) {
  readmission_ = {
      .automatic = true, .first = std::chrono::milliseconds(1), .longest = std::chrono::hours(1)};
  auto engine = Load("several1:lost@token=1,back@open=4");
  ASSERT_NE(engine, nullptr);
  auto session = Open(engine.get());
  Say(session.get(), 3);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100 && Places(*engine) != kAsked; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Say(session.get(), 1);
  }
  EXPECT_EQ(Places(*engine), kAsked);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2 + 4 + 8));
}

// Others keep the engine busy without a pause, and still make way.
TEST_F(ReadmitTest, NeedsNoPauseOfTheOthers) {
  setenv("TRINE_FIXTURE_SEVERAL", "2000", 1);
  auto engine = Load("several1:lost@run=5,back=0");
  ASSERT_NE(engine, nullptr);
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        auto sequence = engine->NewSequence();
        EXPECT_TRUE(sequence->Append(std::vector<int32_t>(60, 41)).ok());
        Sequence* const one[] = {sequence.get()};
        const absl::Status status = engine->Evaluate(one);
        EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  while (engine->lost_devices().empty()) std::this_thread::yield();
  std::future<absl::Status> back =
      std::async(std::launch::async, [&] { return engine->Readmit("several1"); });
  EXPECT_EQ(back.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  over = true;
  for (std::thread& reader : readers) reader.join();
  unsetenv("TRINE_FIXTURE_SEVERAL");
  EXPECT_TRUE(back.get().ok());
  EXPECT_EQ(Places(*engine), kAsked);
}

// Threads generate while a device is lost and readmitted, and others read its state.
TEST_F(ReadmitTest, NobodyNoticesADeviceThatComesAndGoes) {
  const std::string undisturbed = Undisturbed();
  std::string faults;
  for (int run = 5; run < 400; run += 9) {
    absl::StrAppend(&faults, run == 5 ? "" : ";", "several1:lost@run=", run, ",back=0");
  }
  auto engine = Load(faults);
  ASSERT_NE(engine, nullptr);
  std::atomic<bool> over = false;
  std::atomic<int> again = 0;
  std::thread readmitter([&] {
    while (!over) {
      if (!engine->lost_devices().empty() && engine->Readmit("").ok()) ++again;
      for (const SegmentCounters& s : engine->segments()) EXPECT_LE(s.busy_ratio(), 1.0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> speakers;
  for (int i = 0; i < 3; ++i) {
    speakers.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        auto session = Open(engine.get());
        Say(session.get(), 6);
        Say(session.get(), 6);
        EXPECT_EQ(Told(*session), undisturbed);
      }
    });
  }
  for (std::thread& speaker : speakers) speaker.join();
  over = true;
  readmitter.join();
  EXPECT_GE(again, 2);
}

}  // namespace
}  // namespace trine
