// Tests devices that fail while a model is loaded and while it runs: the text is that of an
// undisturbed run, or no device is left.
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SurviveTest : public testing::Test {
 protected:
  static constexpr char kSplit[] = "several0:1,cpu:2,several1:2,several2:1";

  SurviveTest() : file_(Model()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = 6;
    spec.type = quant::Type::kQ8_0;  // packed by the CPU backend,
    spec.n_embd = 128;
    spec.n_ff = 256;  // and larger than a page
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options(const std::string& faults) {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split_);
    options.placement.mode = mode_;
    options.placement.devices = devices_;
    options.threads = 2;
    options.context = 128;
    options.max_sequences = 4;
    options.batch_tokens = 48;
    options.faults = faults;
    options.use_mmap = use_mmap_;
    // The limit is short for tests that have to wait for it, and generous for all others.
    const bool waits = absl::StrContains(faults, "hang") || absl::StrContains(faults, "slow");
    options.stage_limit = std::chrono::milliseconds(waits ? 400 : 30'000);
    options.log = [this](uint32_t, const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_ += line + "\n";
    };
    return options;
  }

  struct Outcome {
    absl::Status status;
    std::vector<std::string> texts, hashes;
    std::vector<LostDevice> lost;
  };

  // Runs sequences of several lengths at once, in two rounds: a device lost in the first is lost in
  // the second.
  Outcome Generate(const std::string& faults, size_t n_sequences, int64_t n_tokens = 12) {
    Outcome outcome;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_.clear();
    }
    auto engine = Engine::Load(Options(faults));
    outcome.status = engine.status();
    if (!engine.ok()) return outcome;
    for (int round = 0; round < 2 && outcome.status.ok(); ++round) {
      std::vector<std::unique_ptr<Session>> sessions;
      std::vector<Session*> pointers;
      std::vector<GenerateOptions> options(n_sequences);
      std::vector<Generation> results(n_sequences);
      for (size_t i = 0; i < n_sequences; ++i) {
        SessionOptions session_options;
        session_options.sampler.seed = 3 + i;
        session_options.ignore_eos = true;
        session_options.logits_hash = i % 2 == 0;
        auto session = Session::Create(engine->get(), session_options);
        EXPECT_TRUE(session.ok()) << session.status();
        const std::vector<int32_t> prompt(3 + 9 * i, static_cast<int32_t>(40 + i));
        EXPECT_TRUE((*session)->Append(prompt).ok());
        sessions.push_back(*std::move(session));
        pointers.push_back(sessions.back().get());
        options[i].max_tokens = n_tokens;
      }
      outcome.status = GenerateTogether(pointers, options, results);
      for (size_t i = 0; i < n_sequences; ++i) {
        outcome.texts.push_back(results[i].text);
        outcome.hashes.push_back(sessions[i]->logits_hash().Text());
      }
    }
    outcome.lost = (*engine)->lost_devices();
    return outcome;
  }

  // Expects the same as without a fault, or else one of the allowed outcomes.
  void Expect(const Outcome& outcome, const Outcome& undisturbed) {
    if (outcome.status.ok()) {
      EXPECT_EQ(outcome.texts, undisturbed.texts);
      EXPECT_EQ(outcome.hashes, undisturbed.hashes);
      return;
    }
    EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("no device is left"));
    for (size_t i = 0; i < outcome.texts.size(); ++i) {  // what was generated before is right
      EXPECT_EQ(undisturbed.texts[i].rfind(outcome.texts[i], 0), 0u) << outcome.texts[i];
    }
  }

  bool use_mmap_ = true;
  std::string split_ = kSplit;
  SplitMode mode_ = SplitMode::kLayer;
  std::vector<std::string> devices_;
  TempFile file_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(SurviveTest, EveryKindAtEveryMoment) {
  const Outcome undisturbed = Generate("", 2);
  ASSERT_TRUE(undisturbed.status.ok()) << undisturbed.status;
  ASSERT_THAT(undisturbed.lost, IsEmpty());
  for (const char* moment : {"open=1", "load", "alloc=2", "alloc=5", "plan=1", "run=1", "run=4",
                             "token=1", "token=5", "write=3", "read=2"}) {
    for (const char* kind : {"oom", "lost", "timeout=5", "garbage=status"}) {
      const std::string faults = absl::StrCat("several1:", kind, "@", moment);
      SCOPED_TRACE(faults);
      const Outcome outcome = Generate(faults, 2);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      Expect(outcome, undisturbed);
    }
  }
}

TEST_F(SurviveTest, WhatIsLostIsSaid) {
  const Outcome outcome = Generate("several1:lost@token=4", 1);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.lost.size(), 1u);
  EXPECT_EQ(outcome.lost[0].name, "several1");
  EXPECT_THAT(outcome.lost[0].reason, HasSubstr("the device is lost"));
  EXPECT_THAT(log_, HasSubstr("several1 is lost ("));
  EXPECT_THAT(log_, HasSubstr("): its layers go to cpu"));
}

TEST_F(SurviveTest, WhatIsLostWhileLoadingIsSaidToo) {
  const Outcome outcome = Generate("several2:lost@plan=1", 1);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.lost.size(), 1u);
  EXPECT_EQ(outcome.lost[0].name, "several2");
}

// Memory of a file that was read, not mapped, is freed once its weights are packed.
TEST_F(SurviveTest, AFileThatWasReadIsReadAgain) {
  use_mmap_ = false;
  const Outcome undisturbed = Generate("", 2);
  for (const char* faults : {"several1:lost@token=3", "several2:lost@plan=1", "cpu:oom@run=5"}) {
    SCOPED_TRACE(faults);
    const Outcome outcome = Generate(faults, 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.lost.size(), 1u);
    Expect(outcome, undisturbed);
  }
}

TEST_F(SurviveTest, GarbageAtABorderIsNoticed) {
  const Outcome undisturbed = Generate("", 2);
  for (const char* device : {"several0", "cpu", "several2"}) {  // first, in between, last
    for (const char* junk : {"nan", "inf", "huge", "tiny"}) {
      const std::string faults = absl::StrCat(device, ":garbage=", junk, "@token=3");
      SCOPED_TRACE(faults);
      const Outcome outcome = Generate(faults, 2);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
      Expect(outcome, undisturbed);
      EXPECT_EQ(outcome.lost.size(), 1u);
    }
  }
}

TEST_F(SurviveTest, ADeviceThatHangsIsLeftBehind) {
  const Outcome undisturbed = Generate("", 3);
  for (const char* faults :
       {"several1:hang@token=3", "several2:hang@run=2,in=team", "cpu:hang@token=2,in=team",
        "several0:hang@token=2;cpu:hang@token=4"}) {
    SCOPED_TRACE(faults);
    const Outcome outcome = Generate(faults, 3);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, undisturbed);
    EXPECT_FALSE(outcome.lost.empty());
    EXPECT_THAT(log_, HasSubstr("has not come back from a pass"));
  }
}

TEST_F(SurviveTest, ADeviceThatHangsWhileTheModelIsLoadedIsLeftBehind) {
  const Outcome undisturbed = Generate("", 2);
  for (const char* moment : {"open=1", "load", "alloc=3", "import=1", "query=1", "layout=1",
                             "plan=1", "plan=1,in=team"}) {
    const std::string faults = absl::StrCat("several1:hang@", moment);
    SCOPED_TRACE(faults);
    const Outcome outcome = Generate(faults, 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, undisturbed);
    ASSERT_EQ(outcome.lost.size(), 1u);
    EXPECT_EQ(outcome.lost[0].name, "several1");
    EXPECT_THAT(outcome.lost[0].reason, HasSubstr("several1 has not come back from "));
  }
  // All other devices hang, until only the CPU is left.
  const Outcome outcome =
      Generate("several0:hang@plan=1;several1:hang@alloc=1;several2:hang@open=1", 2);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  Expect(outcome, undisturbed);
  EXPECT_EQ(outcome.lost.size(), 3u);
}

TEST_F(SurviveTest, ADeviceThatHangsWhileItIsAskedIsPlannedWithout) {
  EngineOptions options = Options("several1:hang@query=1");
  options.placement.split = {};
  options.placement.devices = {"cpu", "several1"};
  const auto engine = Engine::Load(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_EQ((*engine)->model()->places().size(), 1u);
  EXPECT_EQ((*engine)->model()->places()[0].device_name, "cpu");
  EXPECT_THAT(log_, HasSubstr("several1 is not used: several1 has not come back from a call"));
  EXPECT_THAT(log_, Not(HasSubstr("cpu is not used")));
}

// The device returns when the engine has gone on without it, or is gone.
TEST_F(SurviveTest, ADeviceThatComesBackTooLateFindsNobody) {
  const Outcome undisturbed = Generate("", 2);
  for (const char* moment : {"open=1", "load", "alloc=3", "query=1", "layout=1", "plan=1", "run=2",
                             "token=3", "free=1", "shutdown"}) {
    const std::string faults = absl::StrCat("several1:slow=900@", moment);
    SCOPED_TRACE(faults);
    const Outcome outcome = Generate(faults, 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, undisturbed);
    const bool at_the_end = faults.ends_with("free=1") || faults.ends_with("shutdown");
    EXPECT_EQ(outcome.lost.size(), at_the_end ? 0u : 1u);
    // The engine ends at once.
    EXPECT_TRUE(Engine::Load(Options(faults)).ok());
  }
}

TEST_F(SurviveTest, DevicesThatFailWhileTheyAreAskedArePlannedWithout) {
  const Outcome undisturbed = Generate("", 2);
  split_ = "";
  for (const char* fault : {"hang@query=1", "lost@query=1", "lost@open", "hang@open",
                            "garbage=size@query", "garbage=status@query", "slow=900@query"}) {
    SCOPED_TRACE(fault);
    // One is lost, with another to go to; then all that were asked for: the CPU takes over.
    devices_ = {"cpu", "several1"};
    Outcome outcome = Generate(absl::StrCat("several1:", fault), 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, undisturbed);
    ASSERT_EQ(outcome.lost.size(), 1u);
    EXPECT_EQ(outcome.lost[0].name, "several1");
    EXPECT_THAT(log_, HasSubstr("several1 is not used: "));
    devices_ = {"several1", "several2"};
    outcome = Generate(absl::StrCat("several1:", fault, ";several2:", fault), 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, undisturbed);
    EXPECT_EQ(outcome.lost.size(), 2u);
    devices_ = {"cpu", "several1"};
    outcome = Generate(absl::StrCat("*:", fault), 2);
    EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("no device is left: cpu: "));
  }
}

TEST_F(SurviveTest, OneThatFailedWhileItWasAskedIsTakenInAgain) {
  EngineOptions options = Options("several1:lost@query=1,back=0;several2:lost@open=1,back=0");
  options.placement.split = {};
  options.placement.devices = {"several1", "several2"};
  const auto engine = Engine::Load(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_EQ((*engine)->lost_devices().size(), 2u);
  EXPECT_EQ((*engine)->model()->places()[0].device_name, "cpu");
  ASSERT_TRUE((*engine)->Readmit("").ok());
  EXPECT_THAT((*engine)->lost_devices(), IsEmpty());
  for (const SegmentPlace& place : (*engine)->model()->places()) {
    EXPECT_THAT(place.device_name, HasSubstr("several"));
  }
}

TEST_F(SurviveTest, SizesThatCannotBeAreAFault) {
  const Outcome undisturbed = Generate("", 2);
  const Outcome outcome = Generate("several1:garbage=size@query", 2);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  Expect(outcome, undisturbed);
  ASSERT_EQ(outcome.lost.size(), 1u);
  EXPECT_THAT(outcome.lost[0].reason, HasSubstr("bytes of scratch, which can't be"));
}

TEST_F(SurviveTest, ADeviceThatHangsAtTheEndIsLeftBehind) {
  const Outcome undisturbed = Generate("", 1);
  for (const char* fault : {"several1:hang@free=1", "several1:hang@shutdown",
                            "several1:lost@token=3;cpu:hang@free=2", "*:hang@free=1"}) {
    SCOPED_TRACE(fault);
    const auto begin = std::chrono::steady_clock::now();
    Expect(Generate(fault, 1), undisturbed);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_THAT(log_, HasSubstr("hang@"));
  }
}

TEST_F(SurviveTest, OneAfterTheOtherUntilNoneIsLeft) {
  const Outcome undisturbed = Generate("", 2, 20);
  std::string faults = "several0:lost@token=2;several2:lost@token=5;several1:oom@token=9";
  Outcome outcome = Generate(faults, 2, 20);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.lost.size(), 3u);
  Expect(outcome, undisturbed);
  // The CPU takes all of their layers, and then fails, too.
  outcome = Generate(faults + ";cpu:lost@token=30", 2, 20);
  EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
  for (const char* device : {"several0: ", "several1: ", "several2: ", "cpu: "}) {
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr(device));
  }
  Expect(outcome, undisturbed);
}

// Up to three faults of any kind, at any moment, on any of four devices: one device is left.
TEST_F(SurviveTest, RandomSchedules) {
  const int count = std::getenv("TRINE_LONG") != nullptr ? 200 : 10;
  const Outcome one = Generate("", 1), four = Generate("", 4);
  std::mt19937 random(2026);
  const auto pick = [&](const std::vector<std::string>& list) {
    return list[random() % list.size()];
  };
  for (int schedule = 0; schedule < count; ++schedule) {
    std::string faults;
    for (uint32_t n = 1 + random() % 3; n > 0; --n) {
      std::string moment = pick({"open", "alloc", "import", "layout", "plan", "run", "token",
                                 "write", "read", "query", "free"});
      std::string kind = pick({"oom", "lost", "timeout=10", "slow=650", "garbage=status",
                               "garbage=nan", "garbage=tiny", "garbage=size", "hang"});
      std::string option;
      if (kind == "garbage=nan" || kind == "garbage=tiny") moment = "run";
      if (kind == "garbage=size") moment = pick({"query", "layout"});
      if (moment == "free" && kind != "hang" && kind != "slow=650") kind = "lost";
      const bool in_a_plan = moment == "plan" || moment == "run" || moment == "token";
      if (kind == "hang" && in_a_plan && random() % 2 == 0) option = ",in=team";
      if ((kind == "lost" || kind == "hang") && random() % 4 == 0) option += ",back=1";
      const int most = moment == "open" || moment == "query" ? 2 : 25;
      absl::StrAppend(&faults, faults.empty() ? "" : ";",
                      pick({"cpu", "several0", "several1", "several2"}), ":", kind, "@", moment,
                      "=", 1 + random() % most, option);
    }
    // The placement makes no difference to the text.
    const std::string way = pick({"split", "split", "split", "rows", "plan"});
    split_ = way == "plan" ? "" : kSplit;
    mode_ = way == "rows" ? SplitMode::kRow : SplitMode::kLayer;
    devices_.clear();
    if (way == "plan") devices_ = {"cpu", "several0", "several1", "several2"};
    SCOPED_TRACE(absl::StrCat(schedule, ", ", way, ": ", faults));
    const bool batch = schedule % 2 == 1;
    const Outcome outcome = Generate(faults, batch ? 4 : 1);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, batch ? four : one);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace trine
