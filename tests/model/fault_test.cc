// Injects faults below a whole engine: without a fault nothing changes; with one there is an error
// that says what happened, and nothing worse.
#include <mutex>

#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
  }

  EngineOptions Options(const std::string& faults) {
    EngineOptions options = TestOptions(file_->path());
    options.context = 128;
    options.threads = 2;
    options.faults = faults;
    options.log = [this](uint32_t, const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_ += line + "\n";
    };
    return options;
  }

  // What was generated, and how it ended.
  struct Outcome {
    absl::Status status;
    std::vector<int32_t> tokens;
    std::string hash;
  };
  Outcome Generate(const std::string& faults, int64_t tokens = 8) {
    Outcome outcome;
    log_.clear();
    auto engine = Engine::Load(Options(faults));
    outcome.status = engine.status();
    if (!engine.ok()) return outcome;
    SessionOptions session_options;
    session_options.sampler.temp = 0;
    session_options.ignore_eos = true;
    session_options.logits_hash = true;
    auto session = Session::Create(engine->get(), session_options);
    outcome.status = session.status();
    if (!session.ok()) return outcome;
    outcome.status = (*session)->AppendText("in the end", {});
    if (!outcome.status.ok()) return outcome;
    GenerateOptions options;
    options.max_tokens = tokens;
    Generation result;
    outcome.status = trine::Generate(session->get(), options, &result);
    outcome.tokens = result.tokens;
    outcome.hash = (*session)->logits_hash().Text();
    return outcome;
  }

  std::unique_ptr<TempFile> file_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(FaultTest, FaultsThatDoNotComeChangeNothing) {
  const Outcome plain = Generate("");
  ASSERT_TRUE(plain.status.ok()) << plain.status;
  const Outcome wrapped = Generate("cpu:lost@run=1000;*:garbage@token=1000;cpu:slow=1@run=2");
  ASSERT_TRUE(wrapped.status.ok()) << wrapped.status;
  EXPECT_EQ(wrapped.tokens, plain.tokens);
  EXPECT_EQ(wrapped.hash, plain.hash);
  // A fault that was asked for is not silent. `slow` has happened.
  EXPECT_EQ(log_,
            "fault 'cpu:lost@run=1000' never happened: of the calls it waits for, cpu made 8\n"
            "fault '*:garbage@token=1000' never happened: of the calls it waits for, cpu made 7\n");
}

TEST_F(FaultTest, ABadSpecificationIsNoStart) {
  const Outcome outcome = Generate("cpu:lost@run=1;cpu:melts@run=2");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("faults: in 'cpu:melts@run=2': 'melts': no kind of fault"));
}

TEST_F(FaultTest, ADeviceThatIsNotThereIsAWarning) {
  const Outcome outcome = Generate("dgpu:lost@run=1;cpu:lost@run=1000");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(log_,
            "fault 'dgpu:lost@run=1': there is no such device\n"
            "fault 'cpu:lost@run=1000' never happened: of the calls it waits for, cpu made 8\n");
}

TEST_F(FaultTest, ALossInMidGenerationIsAnError) {
  const Outcome plain = Generate("");
  const Outcome lost = Generate("cpu:lost@token=3");
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.status.message()), HasSubstr("cpu:lost@token=3"));
  // The prompt's run gives the first token, so the third decode run would have given the fourth.
  ASSERT_EQ(lost.tokens.size(), 3u);
  EXPECT_TRUE(std::equal(lost.tokens.begin(), lost.tokens.end(), plain.tokens.begin()));
  EXPECT_THAT(log_, HasSubstr("injected fault on cpu: cpu:lost@token=3"));
}

TEST_F(FaultTest, ALossWhileLoadingIsNotTheFilesFault) {
  const Outcome lost = Generate("cpu:lost@plan=1");
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.status.message()),
              ::testing::StartsWith("no device is left: cpu: cpu: plan_create: "));
}

TEST_F(FaultTest, EveryMomentOfLoadingAndRunning) {
  for (const char* moment : {"open=1", "load", "alloc=1", "alloc=3", "query=1", "plan=1", "run=1",
                             "run=2", "token=1", "write=1", "read=1", "copy=1", "layout=1"}) {
    for (const char* kind : {"oom", "lost", "timeout=5", "garbage=status"}) {
      const std::string faults = std::string("cpu:") + kind + "@" + moment;
      SCOPED_TRACE(faults);
      const Outcome outcome = Generate(faults, 4);
      // A fault in something that the CPU tier never does, or can do without, causes no failure.
      // Any other is reported.
      if (outcome.status.ok()) {
        EXPECT_EQ(outcome.tokens.size(), 4u);
      } else {
        EXPECT_THAT(log_, HasSubstr("injected fault on cpu"));
        EXPECT_NE(outcome.status.message(), "");
      }
      const std::string at = moment;
      const bool essential = at == "open=1" || at == "load" || at == "plan=1" || at == "run=1" ||
                             at == "run=2" || at == "token=1" || at == "query=1";
      if (essential && kind != std::string("oom") && kind != std::string("garbage=status")) {
        EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable) << outcome.status;
      }
    }
  }
}

TEST_F(FaultTest, GarbageIsSurvivedByTheSampler) {
  for (const char* junk : {"nan", "inf", "huge", "tiny", "bits"}) {
    SCOPED_TRACE(junk);
    Generate(std::string("cpu:garbage=") + junk + "@run=2+");  // any answer is right but a crash
  }
  EXPECT_FALSE(Generate("cpu:garbage=size@query").status.ok());
}

TEST_F(FaultTest, RandomSchedulesReproduceAndEndInOrder) {
  for (int seed = 0; seed < 20; ++seed) {
    const std::string faults = "*:chaos@random,rate=0.05,seed=" + std::to_string(seed);
    SCOPED_TRACE(faults);
    const Outcome first = Generate(faults);
    const std::string log = log_;
    const Outcome again = Generate(faults);
    EXPECT_EQ(first.status, again.status);
    EXPECT_EQ(first.tokens, again.tokens);
    EXPECT_EQ(log, log_);
    if (!first.status.ok()) {
      EXPECT_THAT(log, HasSubstr("injected fault on cpu"));
    }
  }
}

}  // namespace
}  // namespace trine
