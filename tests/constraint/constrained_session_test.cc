// Tests sessions with a constraint: where answers begin and end, limits, truncation.
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/generate.h"
#include "runtime/engine/set_tokens.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kList = R"({"type":"array","items":{"type":"string"},"minItems":2})";

class ConstrainedSessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineOptions options = TestOptions(ShippedModel());
    options.context = 128;
    options.threads = 1;
    engine_ = MustLoad(options).release();
    ASSERT_NE(engine_, nullptr);
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }

  static SessionOptions Constrained(absl::StatusOr<std::shared_ptr<const Constraint>> constraint) {
    SessionOptions options;
    EXPECT_TRUE(constraint.ok()) << constraint.status();
    if (constraint.ok()) options.constraint = *std::move(constraint);
    options.sampler.temp = 1.5f;
    options.sampler.seed = 7;
    return options;
  }
  static SessionOptions Grammar(std::string_view text) {
    return Constrained(Constraint::FromGbnf(text, engine_->constraint_vocabulary()));
  }
  static SessionOptions Schema(std::string_view text) {
    return Constrained(Constraint::FromJsonSchema(text, engine_->constraint_vocabulary()));
  }
  static std::unique_ptr<Session> Open(const SessionOptions& options) {
    auto session = Session::Create(engine_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->AppendText("The answer is: ", {}).ok());
    return *std::move(session);
  }
  static Generation Run(Session* session, int64_t max_tokens, bool more_follows = false) {
    GenerateOptions options;
    options.max_tokens = max_tokens;
    options.more_follows = more_follows;
    Generation result;
    const absl::Status status = Generate(session, options, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }

  static Engine* engine_;
};

Engine* ConstrainedSessionTest::engine_ = nullptr;

TEST_F(ConstrainedSessionTest, EndsWhereTheGrammarEnds) {
  const auto session = Open(Grammar("root ::= \"yes\" | \"no\""));
  for (int turn = 0; turn < 3; ++turn) {
    const Generation g = Run(session.get(), 50);
    EXPECT_THAT(g.text, AnyOf("yes", "no"));
    EXPECT_EQ(g.finish, FinishReason::kEndOfText);
    EXPECT_TRUE(g.complete);
    // Another answer after another prompt, and after no prompt.
    if (turn == 0) {
      ASSERT_TRUE(session->AppendText(" And now? ", {}).ok());
    }
  }
}

TEST_F(ConstrainedSessionTest, ClosesInTime) {
  for (const int64_t limit : {7, 8, 13, 40}) {
    const Generation g = Run(Open(Schema(kList)).get(), limit);
    EXPECT_TRUE(g.complete) << g.text;
    EXPECT_LE(g.tokens.size(), static_cast<size_t>(limit));
    EXPECT_TRUE(nlohmann::json::accept(g.text)) << g.text;
  }
}

TEST_F(ConstrainedSessionTest, ClosesBeforeTheContextIsFull) {
  const Generation g = Run(Open(Grammar("root ::= \"(\" [a-z ]+ \")\"")).get(), -1);
  EXPECT_TRUE(g.complete);
  EXPECT_EQ(g.text.back(), ')');
}

TEST_F(ConstrainedSessionTest, SaysThatItWasCut) {
  const auto session = Open(Schema(kList));
  const Generation g = Run(session.get(), 2);
  EXPECT_EQ(g.finish, FinishReason::kLength);
  EXPECT_FALSE(g.complete);
  // The second run continues the answer.
  const Generation rest = Run(session.get(), 40);
  EXPECT_TRUE(rest.complete);
  EXPECT_TRUE(nlohmann::json::accept(g.text + rest.text)) << g.text << rest.text;
}

TEST_F(ConstrainedSessionTest, RoundsAreOneText) {
  const auto session = Open(Schema(kList));
  std::string text;
  for (int round = 0; round < 4; ++round) text += Run(session.get(), 5, true).text;
  EXPECT_FALSE(nlohmann::json::accept(text)) << "it did not hurry: " << text;
  const Generation last = Run(session.get(), 40);
  EXPECT_TRUE(last.complete);
  EXPECT_TRUE(nlohmann::json::accept(text + last.text)) << text << last.text;
}

TEST_F(ConstrainedSessionTest, GoesBack) {
  const auto session = Open(Schema(kList));
  const int64_t prompt = session->sequence().size();
  const Generation first = Run(session.get(), 30);
  for (const int64_t kept : {5, 1, 0}) {
    session->Truncate(prompt + kept);
    std::string text;
    for (int64_t i = 0; i < kept; ++i) {
      text += engine_->tokenizer()->TokenBytes(first.tokens[static_cast<size_t>(i)]);
    }
    const Generation again = Run(session.get(), 30);
    EXPECT_TRUE(again.complete);
    EXPECT_TRUE(nlohmann::json::accept(text + again.text)) << text << again.text;
  }
  // Truncate into the prompt: the answer begins there.
  session->Truncate(prompt - 1);
  const Generation other = Run(session.get(), 30);
  EXPECT_TRUE(nlohmann::json::accept(other.text)) << other.text;
}

TEST_F(ConstrainedSessionTest, SetTokensBeginsAnAnswerWhereverTheyEnd) {
  const auto session = Open(Schema(kList));
  const int64_t prompt = session->sequence().size();
  Run(session.get(), 30);
  // Truncate inside the answer, at its end, and at the end of the prompt: nothing need be appended.
  const std::vector<int32_t> all = session->sequence().tokens();
  for (const int64_t kept : {session->sequence().size(), prompt + 3, prompt}) {
    ASSERT_TRUE(SetTokens(session.get(), std::span(all).first(static_cast<size_t>(kept))).ok());
    ASSERT_EQ(session->sequence().size(), kept);
    const Generation other = Run(session.get(), 30);
    EXPECT_TRUE(other.complete);
    EXPECT_TRUE(nlohmann::json::accept(other.text)) << other.text;
  }
}

TEST_F(ConstrainedSessionTest, StopStringsCut) {
  SessionOptions options = Grammar("root ::= \"abc\" \"def\"");
  options.stop = {"de"};
  const Generation g = Run(Open(options).get(), 30);
  EXPECT_EQ(g.finish, FinishReason::kStopString);
  EXPECT_EQ(g.text, "abc");
  EXPECT_FALSE(g.complete);
}

TEST_F(ConstrainedSessionTest, TokenByToken) {
  const auto session = Open(Grammar("root ::= [0-9]{4}"));
  std::string text;
  for (;;) {
    ASSERT_TRUE(session->Evaluate().ok());
    const auto token = session->Sample();
    ASSERT_TRUE(token.ok()) << token.status();
    if (engine_->tokenizer()->IsEndOfGeneration(*token)) break;
    text += engine_->tokenizer()->TokenBytes(*token);
  }
  EXPECT_EQ(text.size(), 4u);
  EXPECT_EQ(text.find_first_not_of("0123456789"), text.npos);
}

TEST_F(ConstrainedSessionTest, RefusesWhatContradictsIt) {
  SessionOptions options = Grammar("root ::= \"a\"");
  options.ignore_eos = true;
  const auto endless = Session::Create(engine_, options);
  ASSERT_FALSE(endless.ok());
  EXPECT_THAT(std::string(endless.status().message()), HasSubstr("where the text ends"));

  const auto file = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
  const auto other = MustLoad(TestOptions(file->path()));
  ASSERT_NE(other, nullptr);
  const auto foreign = Session::Create(other.get(), Grammar("root ::= \"a\""));
  ASSERT_FALSE(foreign.ok());
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("another engine's vocabulary"));

  // Everything the grammar allows is banned.
  SessionOptions banned = Grammar("root ::= \"\\x01\"");
  for (int32_t id = 0; id < engine_->tokenizer()->vocab_size(); ++id) {
    if (engine_->tokenizer()->TokenBytes(id) == "\x01") {
      banned.sampler.logit_bias.push_back({id, -std::numeric_limits<float>::infinity()});
    }
  }
  const auto session = Open(banned);
  Generation g;
  const absl::Status status = Generate(session.get(), {}, &g);
  EXPECT_THAT(std::string(status.message()), StartsWith("no token is allowed"));
}

}  // namespace
}  // namespace trine
