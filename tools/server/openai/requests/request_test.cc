// Right requests and what they are parsed into.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tools/server/openai/requests/request_test_util.h"

namespace trine::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GenerationRequest Chat(std::string_view body) {
  auto request = ParseChatRequest(body, TestDefaults());
  EXPECT_TRUE(request.ok()) << request.status() << "\n" << body;
  return request.ok() ? *request : GenerationRequest();
}

// Parses a request with one message and these fields.
GenerationRequest ChatWith(const std::string& fields) {
  return Chat(R"({"messages":[{"role":"user","content":"Hi"}],)" + fields + "}");
}

GenerationRequest Completion(std::string_view body) {
  auto request = ParseCompletionRequest(body, TestDefaults());
  EXPECT_TRUE(request.ok()) << request.status() << "\n" << body;
  return request.ok() ? *request : GenerationRequest();
}

TEST(ChatRequestTest, TakesEveryField) {
  const GenerationRequest r = Chat(kFullChat);
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.user, "u");
  EXPECT_FLOAT_EQ(r.sampler.temp, 0.7f);
  EXPECT_FLOAT_EQ(r.sampler.top_p, 0.9f);
  EXPECT_EQ(r.sampler.top_k, 20);
  EXPECT_FLOAT_EQ(r.sampler.min_p, 0.1f);
  EXPECT_FLOAT_EQ(r.sampler.typical_p, 0.8f);
  EXPECT_EQ(r.sampler.repeat_last_n, 32);
  EXPECT_FLOAT_EQ(r.sampler.repeat_penalty, 1.1f);
  EXPECT_FLOAT_EQ(r.sampler.frequency_penalty, 0.2f);
  EXPECT_FLOAT_EQ(r.sampler.presence_penalty, 0.3f);
  EXPECT_EQ(r.sampler.mirostat, 2);
  EXPECT_FLOAT_EQ(r.sampler.mirostat_tau, 4.0f);
  EXPECT_FLOAT_EQ(r.sampler.mirostat_eta, 0.2f);
  EXPECT_EQ(r.sampler.min_keep, 1);
  EXPECT_THAT(r.sampler.stages, ElementsAre(SamplerStage::kTopK, SamplerStage::kTemperature));
  ASSERT_EQ(r.sampler.logit_bias.size(), 2u);
  EXPECT_EQ(r.sampler.logit_bias[0].token, 12);
  EXPECT_EQ(r.sampler.logit_bias[0].bias, -5.0f);
  EXPECT_EQ(r.sampler.logit_bias[1].bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(r.seed, 7u);
  EXPECT_EQ(r.sampler.seed, 7u);
  EXPECT_THAT(r.stop, ElementsAre("END", "x"));
  EXPECT_EQ(r.max_tokens, 6);  // the newer name has precedence
  EXPECT_EQ(r.n, 2);
  EXPECT_EQ(r.top_logprobs, 3);
  EXPECT_TRUE(r.stream);
  EXPECT_TRUE(r.include_usage);
  EXPECT_FALSE(r.parallel_tool_calls);
  EXPECT_EQ(r.constraint.kind, ConstraintText::Kind::kNone);
}

TEST(ChatRequestTest, MessagesAreWrittenForTheTemplate) {
  const ChatPrompt prompt = *Chat(kFullChat).prompt.chat;
  EXPECT_EQ(prompt.messages_json,
            R"([{"role":"system","content":"Be terse."},)"
            R"({"role":"user","content":"Wie geht's?","name":"Ann"},)"
            R"({"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":)"
            R"({"name":"look","arguments":"{\"at\":1}"}}],"content":""},)"
            R"({"role":"tool","tool_call_id":"call_1","content":"rain"}])");
  EXPECT_EQ(prompt.variables_json, R"({"enable_thinking":false,"reasoning_effort":"low"})");
  EXPECT_EQ(prompt.tools_json,
            R"([{"type":"function","function":{"name":"look","description":"Looks.","strict":true,)"
            R"("parameters":{"type":"object","properties":{"at":{"type":"integer"}}}}}])");
}

// Templates only check whether a message has the member tool_calls.
TEST(ChatRequestTest, NoCallsAreNotTold) {
  for (const char* const calls : {"[]", "null"}) {
    const std::string message = R"({"role":"assistant","content":"Hi","tool_calls":)";
    EXPECT_EQ(Chat(R"({"messages":[)" + message + calls + "}]}").prompt.chat->messages_json,
              R"([{"role":"assistant","content":"Hi"}])");
  }
}

TEST(ChatRequestTest, LittleIsNeeded) {
  const GenerationRequest r = Chat(R"({"messages":[{"role":"user","content":""}]})");
  EXPECT_FLOAT_EQ(r.sampler.temp, 0.5f);  // the server's default
  EXPECT_FALSE(r.seed.has_value());
  EXPECT_FALSE(r.max_tokens.has_value());
  EXPECT_EQ(r.top_logprobs, -1);
  EXPECT_EQ(r.tool_choice.kind, ToolChoice::Kind::kNone);
  EXPECT_EQ(r.prompt.chat->tools_json, "");
  EXPECT_EQ(r.prompt.chat->variables_json, "");
}

TEST(ChatRequestTest, OldNamesAndOddNumbers) {
  EXPECT_EQ(ChatWith(R"("max_tokens":12)").max_tokens, 12);
  EXPECT_EQ(ChatWith(R"("max_tokens":12.0)").max_tokens, 12);
  EXPECT_EQ(ChatWith(R"("n_predict":9)").max_tokens, 9);
  EXPECT_FALSE(ChatWith(R"("max_tokens":-1)").max_tokens.has_value());
  EXPECT_FALSE(ChatWith(R"("seed":-1)").seed.has_value());
  EXPECT_EQ(ChatWith(R"("seed":18446744073709551615)").seed, 18446744073709551615u);
  EXPECT_EQ(ChatWith(R"("top_k":-1)").sampler.top_k, 0);
  EXPECT_THAT(ChatWith(R"("stop":"END")").stop, ElementsAre("END"));
  EXPECT_EQ(ChatWith(R"("logprobs":true)").top_logprobs, 0);
}

TEST(ChatRequestTest, FormsOfAnswers) {
  const auto form = [](const std::string& fields) { return ChatWith(fields).constraint; };
  EXPECT_EQ(form(R"("response_format":{"type":"text"})").kind, ConstraintText::Kind::kNone);
  ConstraintText text = form(R"("response_format":{"type":"json_object"})");
  EXPECT_EQ(text.kind, ConstraintText::Kind::kJsonSchema);
  EXPECT_EQ(text.text, R"({"type":"object"})");
  EXPECT_EQ(text.param, "response_format");
  // Properties keep their order.
  text = form(R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)"
              R"({"type":"object","properties":{"z":{},"a":{}}}}})");
  EXPECT_EQ(text.text, R"({"type":"object","properties":{"z":{},"a":{}}})");
  EXPECT_EQ(text.param, "response_format.json_schema.schema");
  EXPECT_EQ(form(R"("response_format":{"type":"json_object","schema":{"enum":[1]}})").text,
            R"({"enum":[1]})");
  EXPECT_EQ(form(R"("json_schema":{})").text, "{}");
  text = form(R"("grammar":"root ::= \"a\"")");
  EXPECT_EQ(text.kind, ConstraintText::Kind::kGbnf);
  EXPECT_EQ(text.text, "root ::= \"a\"");
}

TEST(ChatRequestTest, ToolsThatMayNotBeCalledAreNotTold) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  GenerationRequest r = ChatWith(tools);
  EXPECT_EQ(r.tool_choice.kind, ToolChoice::Kind::kAuto);
  EXPECT_EQ(r.prompt.chat->tools_json,
            R"([{"type":"function","function":{"name":"f","description":"","parameters":)"
            R"({"type":"object","properties":{},"additionalProperties":false}}}])");
  EXPECT_EQ(r.tools[0].parameters_json,
            R"({"type":"object","properties":{},"additionalProperties":false})");
  EXPECT_EQ(ChatWith(tools + R"(,"tool_choice":"required")").tool_choice.kind,
            ToolChoice::Kind::kRequired);
  r = ChatWith(tools + R"(,"tool_choice":"none")");
  EXPECT_EQ(r.tool_choice.kind, ToolChoice::Kind::kNone);
  EXPECT_EQ(r.prompt.chat->tools_json, "");
  // Clients send it without having tools.
  EXPECT_EQ(ChatWith(R"("tool_choice":"auto")").tool_choice.kind, ToolChoice::Kind::kNone);
}

TEST(CompletionRequestTest, ShapesOfPrompts) {
  const auto prompts = [](const std::string& prompt) {
    return Completion(R"({"prompt":)" + prompt + "}").prompt.plain;
  };
  using Tokens = std::vector<int32_t>;
  EXPECT_THAT(prompts(R"("a")"), ElementsAre(PlainPrompt("a")));
  EXPECT_THAT(prompts(R"("")"), ElementsAre(PlainPrompt("")));
  EXPECT_THAT(prompts(R"(["a","b"])"), ElementsAre(PlainPrompt("a"), PlainPrompt("b")));
  EXPECT_THAT(prompts("[1,999]"), ElementsAre(PlainPrompt(Tokens{1, 999})));
  EXPECT_THAT(prompts("[[1],[2,3]]"),
              ElementsAre(PlainPrompt(Tokens{1}), PlainPrompt(Tokens{2, 3})));
}

TEST(CompletionRequestTest, TakesEveryField) {
  const GenerationRequest r = Completion(kFullCompletion);
  EXPECT_EQ(r.prompt.plain.size(), 2u);
  EXPECT_FALSE(r.prompt.chat.has_value());
  EXPECT_EQ(r.max_tokens, 0);
  EXPECT_EQ(r.top_logprobs, 2);
  EXPECT_TRUE(r.echo);
  EXPECT_EQ(r.n, 2);
  EXPECT_EQ(r.sampler.logit_bias.size(), 2u);
  EXPECT_EQ(r.constraint.kind, ConstraintText::Kind::kGbnf);
}

TEST(ResponsesRequestTest, ItemsBecomeMessages) {
  const auto r = ParseResponsesRequest(kFullResponses, TestDefaults());
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->prompt.chat->messages_json,
            R"([{"role":"system","content":"Be terse."},{"role":"user","content":"Hi"},)"
            R"({"role":"assistant","content":"Yes?"},{"role":"user","content":"Go on."}])");
  EXPECT_EQ(r->max_tokens, 40);
  EXPECT_EQ(r->constraint.text, R"({"type":"object"})");
  EXPECT_EQ(r->constraint.param, "text.format.schema");
  const auto simple = ParseResponsesRequest(R"({"input":"Hi"})", TestDefaults());
  ASSERT_TRUE(simple.ok());
  EXPECT_EQ(simple->prompt.chat->messages_json, R"([{"role":"user","content":"Hi"}])");
}

TEST(EmbeddingRequestTest, Shapes) {
  const auto parse = [](std::string_view body) {
    return ParseEmbeddingRequest(body, TestDefaults());
  };
  EXPECT_TRUE(parse(kFullEmbedding)->base64);
  EXPECT_FALSE(parse(R"({"input":"a"})")->base64);
  EXPECT_EQ(parse(R"({"input":[[1,2],[3]]})")->inputs.size(), 2u);
  EXPECT_EQ(parse(R"({"input":[1,2]})")->inputs.size(), 1u);
}

TEST(TokenizeRequestTest, Fields) {
  const auto full = ParseTokenizeRequest(kFullTokenize);
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->text, "a b");
  EXPECT_TRUE(full->add_special && full->with_pieces);
  EXPECT_FALSE(full->parse_special);
  EXPECT_EQ(ParseTokenizeRequest(R"({"prompt":"x"})")->text, "x");
  EXPECT_THAT(ParseDetokenizeRequest(kFullDetokenize, 1000)->tokens, ElementsAre(1, 2, 999));
  EXPECT_TRUE(ParseDetokenizeRequest(R"({"tokens":[]})", 1000)->tokens.empty());
}

}  // namespace
}  // namespace trine::server
