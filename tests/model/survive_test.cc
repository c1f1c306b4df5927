// Devices that fail while a model is loaded and while it runs: the text is that of an undisturbed
// run, or no device is left.
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SurviveTest : public testing::Test {
 protected:
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
    options.tensor_split = "other0:1,cpu:2,other1:2,other2:1";
    options.threads = 2;
    options.context = 128;
    options.max_sequences = 4;
    options.batch_tokens = 48;
    options.faults = faults;
    options.use_mmap = use_mmap_;
    options.stage_limit = std::chrono::milliseconds(250);
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

  // Sequences of several lengths at once, twice: what is lost in the first round is lost in the
  // second.
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

  // The same as without a fault, or else what it is allowed to be.
  void Expect(const Outcome& outcome, const Outcome& undisturbed) {
    if (outcome.status.ok()) {
      EXPECT_EQ(outcome.texts, undisturbed.texts);
      EXPECT_EQ(outcome.hashes, undisturbed.hashes);
      return;
    }
    EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("no device is left"));
    for (size_t i = 0; i < outcome.texts.size(); ++i) {  // what was said before is right
      EXPECT_EQ(undisturbed.texts[i].rfind(outcome.texts[i], 0), 0u) << outcome.texts[i];
    }
  }

  bool use_mmap_ = true;
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
      const std::string faults = absl::StrCat("other1:", kind, "@", moment);
      SCOPED_TRACE(faults);
      const Outcome outcome = Generate(faults, 2);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      Expect(outcome, undisturbed);
    }
  }
}

TEST_F(SurviveTest, WhatIsLostIsSaid) {
  const Outcome outcome = Generate("other1:lost@token=4", 1);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.lost.size(), 1u);
  EXPECT_EQ(outcome.lost[0].name, "other1");
  EXPECT_THAT(outcome.lost[0].reason, HasSubstr("the device is lost"));
  EXPECT_THAT(log_, HasSubstr("other1 is lost ("));
  EXPECT_THAT(log_, HasSubstr("): its layers go to cpu"));
}

TEST_F(SurviveTest, WhatIsLostWhileLoadingIsSaidToo) {
  const Outcome outcome = Generate("other2:lost@plan=1", 1);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.lost.size(), 1u);
  EXPECT_EQ(outcome.lost[0].name, "other2");
}

// The memory of a file that was read, and not mapped, is given back once its weights are packed.
TEST_F(SurviveTest, AFileThatWasReadIsReadAgain) {
  use_mmap_ = false;
  const Outcome undisturbed = Generate("", 2);
  for (const char* faults : {"other1:lost@token=3", "other2:lost@plan=1", "cpu:oom@run=5"}) {
    SCOPED_TRACE(faults);
    const Outcome outcome = Generate(faults, 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.lost.size(), 1u);
    Expect(outcome, undisturbed);
  }
}

TEST_F(SurviveTest, GarbageAtABorderIsNoticed) {
  const Outcome undisturbed = Generate("", 2);
  for (const char* device : {"other0", "cpu", "other2"}) {  // first, in between, last
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
  for (const char* faults : {"other1:hang@token=3", "other2:hang@run=2,in=team",
                             "cpu:hang@token=2,in=team", "other0:hang@token=2;cpu:hang@token=4"}) {
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
    const std::string faults = absl::StrCat("other1:hang@", moment);
    SCOPED_TRACE(faults);
    const Outcome outcome = Generate(faults, 2);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    Expect(outcome, undisturbed);
    ASSERT_EQ(outcome.lost.size(), 1u);
    EXPECT_EQ(outcome.lost[0].name, "other1");
    EXPECT_THAT(log_, HasSubstr("other1 has not come back from "));
  }
  // All of them, until the CPU is left.
  const Outcome outcome = Generate("other0:hang@plan=1;other1:hang@alloc=1;other2:hang@open=1", 2);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  Expect(outcome, undisturbed);
  EXPECT_EQ(outcome.lost.size(), 3u);
}

TEST_F(SurviveTest, ADeviceThatHangsWhileItIsAskedIsPlannedWithout) {
  EngineOptions options = Options("other1:hang@query=1");
  options.tensor_split = "";
  options.devices = {"cpu", "other1"};
  const auto engine = Engine::Load(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_EQ((*engine)->model()->places().size(), 1u);
  EXPECT_EQ((*engine)->model()->places()[0].device_name, "cpu");
  EXPECT_THAT(log_, HasSubstr("other1 is not used: other1 has not come back from a call"));
}

TEST_F(SurviveTest, ADeviceThatHangsAtTheEndIsLeftBehind) {
  const Outcome undisturbed = Generate("", 1);
  const auto begin = std::chrono::steady_clock::now();
  Expect(Generate("other1:hang@shutdown", 1), undisturbed);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(SurviveTest, OneAfterTheOtherUntilNoneIsLeft) {
  const Outcome undisturbed = Generate("", 2, 20);
  std::string faults = "other0:lost@token=2;other2:lost@token=5;other1:oom@token=9";
  Outcome outcome = Generate(faults, 2, 20);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.lost.size(), 3u);
  Expect(outcome, undisturbed);
  // The CPU takes all of their layers, and then fails too.
  outcome = Generate(faults + ";cpu:lost@token=30", 2, 20);
  EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
  for (const char* device : {"other0: ", "other1: ", "other2: ", "cpu: "}) {
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr(device));
  }
  Expect(outcome, undisturbed);
}

// Up to three faults of any kind at any moment on any device.
TEST_F(SurviveTest, RandomSchedules) {
  const int count = std::getenv("TRINE_LONG") != nullptr ? 200 : 20;
  const Outcome one = Generate("", 1), four = Generate("", 4);
  std::mt19937 random(2026);
  const auto pick = [&](const std::vector<std::string>& list) {
    return list[random() % list.size()];
  };
  int survived = 0, ended = 0;
  for (int schedule = 0; schedule < count; ++schedule) {
    std::string faults;
    for (uint32_t n = 1 + random() % 3; n > 0; --n) {
      const std::string moment = pick({"alloc", "plan", "run", "token", "write", "read", "query"});
      std::string kind = pick(
          {"oom", "lost", "timeout=10", "garbage=status", "garbage=nan", "garbage=tiny", "hang"});
      const bool values = kind == "garbage=nan" || kind == "garbage=tiny";
      absl::StrAppend(&faults, faults.empty() ? "" : ";",
                      pick({"cpu", "other0", "other1", "other2"}), ":", kind, "@",
                      values ? "run" : moment, "=", 1 + random() % 25);
    }
    SCOPED_TRACE(faults);
    const bool batch = schedule % 2 == 1;
    const Outcome outcome = Generate(faults, batch ? 4 : 1);
    Expect(outcome, batch ? four : one);
    ++(outcome.status.ok() ? survived : ended);
    if (HasFailure()) return;
  }
  std::printf("  %d survived, %d ended with no device left\n", survived, ended);
}

}  // namespace
}  // namespace trine
