// Calls that must be made: everything that the constraint allows is read as one call of a known
// tool, with arguments that match its schema.
#include "tools/server/openai/tools/answer_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/constraint/mask/constraint_test_util.h"
#include "tools/server/openai/requests/request_test_util.h"

namespace trine::server {
namespace {

constexpr ToolFamily kFamilies[] = {
    ToolFamily::kHermes, ToolFamily::kLlama3,   ToolFamily::kMistral, ToolFamily::kGranite,
    ToolFamily::kCoder,  ToolFamily::kDeepSeek, ToolFamily::kHarmony, ToolFamily::kGeneral};

// Schemas with definitions of their own, which must be found wherever the schema is moved.
GenerationRequest Request(const std::string& choice) {
  auto request = ParseChatRequest(
      R"({"messages":[{"role":"user","content":"Hi"}],"tools":[
        {"type":"function","function":{"name":"look","parameters":{"type":"object",
          "properties":{"at":{"$ref":"#/$defs/place"}},"required":["at"],"additionalProperties":false,
          "$defs":{"place":{"enum":["door","wall"]}}}}},
        {"type":"function","function":{"name":"wait"}}],"tool_choice":)" +
          choice + "}",
      TestDefaults());
  EXPECT_TRUE(request.ok()) << request.status();
  return *request;
}

// Returns a random text that the constraint allows, of a limited number of tokens.
std::string Walk(const std::shared_ptr<const Constraint>& constraint, std::mt19937* random) {
  ConstraintState state(constraint);
  std::vector<uint32_t> mask(constraint->mask_words());
  std::string text;
  for (int64_t left = 200; !state.MustEnd() && left > 0; --left) {
    state.Mask(left, mask);
    std::vector<int32_t> allowed;
    for (int32_t byte = 0; byte < 256; ++byte) {
      if (IsSet(mask, byte)) allowed.push_back(byte);
    }
    if (allowed.empty()) break;
    const int32_t byte = allowed[(*random)() % allowed.size()];
    EXPECT_TRUE(state.Accept(byte).ok());
    text.push_back(static_cast<char>(byte));
  }
  EXPECT_TRUE(state.IsComplete()) << text;
  return text;
}

TEST(AnswerPlanTest, WhatMustBeACallIsRead) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  std::mt19937 random(1);
  for (const char* const choice :
       {R"("required")", R"({"type":"function","function":{"name":"look"}})"}) {
    const GenerationRequest request = Request(choice);
    for (const ToolFamily family : kFamilies) {
      const AnswerPlan plan = PlanAnswer(request, family);
      ASSERT_EQ(plan.constraint.kind, ConstraintText::Kind::kJsonSchema);
      const auto constraint = MustMakeSchema(plan.constraint.text, vocabulary);
      ASSERT_NE(constraint, nullptr);
      bool waited = false;
      for (int round = 0; round < 40; ++round) {
        const std::string text = Walk(constraint, &random);
        const auto reader = NewAnswerReader(family, request, plan.start);
        std::vector<AnswerPiece> pieces;
        reader->Push(text, &pieces);
        reader->Finish(&pieces);
        ASSERT_EQ(pieces.size(), 1u) << static_cast<int>(family) << " " << text;
        ASSERT_EQ(pieces[0].kind, AnswerPiece::Kind::kCall) << text;
        const ToolCall& call = pieces[0].call;
        waited = waited || call.name == "wait";
        if (call.name == "look") {
          EXPECT_TRUE(call.arguments == R"({"at":"door"})" || call.arguments == R"({"at":"wall"})")
              << call.arguments;
        } else {
          EXPECT_EQ(call.name, "wait");
          EXPECT_EQ(call.arguments, "{}");
        }
      }
      EXPECT_EQ(waited, request.tool_choice.kind == ToolChoice::Kind::kRequired);
    }
  }
}

TEST(AnswerPlanTest, Openings) {
  const GenerationRequest any = Request(R"("required")");
  EXPECT_EQ(PlanAnswer(any, ToolFamily::kHermes).opening, "<tool_call>\n");
  EXPECT_EQ(PlanAnswer(any, ToolFamily::kLlama3).opening, "");
  EXPECT_EQ(PlanAnswer(any, ToolFamily::kMistral).opening, "[TOOL_CALLS]");
  EXPECT_EQ(PlanAnswer(any, ToolFamily::kGranite).opening, "<|tool_call|>");
  EXPECT_EQ(PlanAnswer(any, ToolFamily::kCoder).opening, "<tool_call>\n");
  EXPECT_EQ(PlanAnswer(any, ToolFamily::kDeepSeek).opening, "<｜tool▁calls▁begin｜>");
  const GenerationRequest named = Request(R"({"type":"function","function":{"name":"wait"}})");
  EXPECT_EQ(PlanAnswer(named, ToolFamily::kHarmony).opening,
            "<|channel|>commentary to=functions.wait <|constrain|>json<|message|>");
  EXPECT_EQ(PlanAnswer(named, ToolFamily::kLlama3).constraint.text,
            R"({"type":"object","properties":{"name":{"const":"wait"},"parameters":)"
            R"({"type":"object","properties":{},"additionalProperties":false}},)"
            R"("required":["name","parameters"],"additionalProperties":false})");
}

TEST(AnswerPlanTest, WithoutACallTheFormStays) {
  GenerationRequest request = Request(R"("auto")");
  AnswerPlan plan = PlanAnswer(request, ToolFamily::kHermes);
  EXPECT_EQ(plan.constraint.kind, ConstraintText::Kind::kNone);
  EXPECT_EQ(plan.start.kind, AnswerStart::Kind::kFree);
  request.constraint = {ConstraintText::Kind::kGbnf, "root ::= \"a\"", "grammar"};
  plan = PlanAnswer(request, ToolFamily::kHarmony);
  EXPECT_EQ(plan.opening, "<|channel|>final<|message|>");
  EXPECT_EQ(plan.constraint.text, "root ::= \"a\"");
  EXPECT_EQ(plan.start.kind, AnswerStart::Kind::kContent);
}

}  // namespace
}  // namespace trine::server
