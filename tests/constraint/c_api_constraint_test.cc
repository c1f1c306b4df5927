// Constrained output through the C header.
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trine/trine.h"
#include "trine/trine.hpp"

namespace {

using ::testing::HasSubstr;

class CApiConstraintTest : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = trine::api::Engine::Open(TRINE_SHIPPED_MODEL);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_.emplace(std::move(*engine));
  }
  static trine_session_options Options(const char* grammar, const char* json_schema) {
    trine_session_options options{};
    options.struct_size = sizeof(options);
    options.grammar = grammar;
    options.json_schema = json_schema;
    return options;
  }
  std::string WhyNot(const char* grammar, const char* json_schema) {
    const auto session = engine_->OpenSession(Options(grammar, json_schema));
    return session.ok() ? "" : session.status().message();
  }

  std::optional<trine::api::Engine> engine_;
};

TEST_F(CApiConstraintTest, HoldsTheAnswerToTheForm) {
  auto session = engine_->OpenSession(Options("root ::= \"left\" | \"right\"", nullptr));
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(session->AppendText("Turn ").ok());
  std::string text;
  trine::api::GenerateOptions options;
  options.on_text = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  const auto result = session->Generate(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(text == "left" || text == "right") << text;
  EXPECT_EQ(result->complete, 1u);
  EXPECT_EQ(result->finish, static_cast<uint32_t>(TRINE_FINISH_END_OF_TEXT));
}

TEST_F(CApiConstraintTest, SaysThatItWasCut) {
  auto session = engine_->OpenSession(Options(nullptr, R"({"const":"a long and lonely road"})"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(session->AppendText("Say: ").ok());
  trine::api::GenerateOptions options;
  options.max_tokens = 1;
  const auto result = session->Generate(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->complete, 0u);
}

TEST_F(CApiConstraintTest, RefusesInOneLine) {
  EXPECT_THAT(WhyNot("root ::= nowhere", nullptr), HasSubstr("line 1, column 10"));
  EXPECT_THAT(WhyNot(nullptr, R"({"type":"array","contains":{}})"), HasSubstr("#: contains:"));
  EXPECT_THAT(WhyNot("root ::= \"a\"", "{}"), HasSubstr("both given"));
}

// A caller built before constraints asks for none, whatever bytes follow its struct.
TEST_F(CApiConstraintTest, OlderCallersHaveNone) {
  trine_session_options options = Options("root ::= \"a\"", nullptr);
  options.struct_size = offsetof(trine_session_options, grammar);
  trine_session* session = nullptr;
  ASSERT_EQ(trine_session_open(engine_->get(), &options, &session, nullptr), 0);
  ASSERT_EQ(trine_session_append_text(session, "Once", 4, 0, nullptr), 0);
  trine_generate_options generate{};
  generate.struct_size = sizeof(generate);
  generate.max_tokens = 4;
  trine_generate_result result;
  std::memset(&result, 0x5A, sizeof(result));
  result.struct_size = offsetof(trine_generate_result, complete);
  EXPECT_EQ(trine_generate(session, &generate, &result, nullptr), 0);
  EXPECT_EQ(result.generated_tokens, 4);
  EXPECT_EQ(result.complete, 0x5A5A5A5Au);
  trine_session_close(session);
}

}  // namespace
