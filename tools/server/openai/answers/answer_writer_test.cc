// Frames and bodies, as clients read them.
#include "tools/server/openai/answers/answer_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tools/server/openai/answers/answer_test_util.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

TokenInfo Token(std::string bytes, double logprob) {
  return {.bytes = bytes, .logprob = logprob, .top = {{bytes, logprob}, {"\xC3", -3}}};
}

TEST(ChatWriterTest, GoldenStream) {
  GenerationRequest request;
  request.include_usage = true;
  const auto writer = NewChatWriter(request, Head(), ToolFamily::kGeneral, {});
  Frames frames;
  writer->Begin(&frames);
  writer->Text(0, "Once \"up\"", {}, &frames);
  writer->Text(0, "", {}, &frames);
  writer->Text(0, "\xC3\xA9\n", {}, &frames);
  writer->Finish(0, AnswerEnd::kLength, &frames);
  writer->End(kUsage, &frames);
  const std::string head =
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"tales","choices":[)";
  const std::string tail = "],\"usage\":null}\n\n";
  EXPECT_EQ(
      frames.text(),
      head + R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)" +
          R"("finish_reason":null})" + tail + head +
          R"({"index":0,"delta":{"content":"Once \"up\""},"logprobs":null,"finish_reason":null})" +
          tail + head +
          "{\"index\":0,\"delta\":{\"content\":\"\xC3\xA9\\n\"},\"logprobs\":null,"
          "\"finish_reason\":null}" +
          tail + head + R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length"})" +
          tail + head + R"(],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,)" +
          "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n");
}

TEST(ChatWriterTest, EveryChoiceHasItsRoleAndEnd) {
  GenerationRequest request;
  request.n = 2;
  const auto writer = NewChatWriter(request, Head(), ToolFamily::kGeneral, {});
  Frames frames;
  writer->Begin(&frames);
  writer->Text(1, "b", {}, &frames);
  writer->Text(0, "a", {}, &frames);
  writer->Finish(1, AnswerEnd::kStop, &frames);
  writer->Finish(0, AnswerEnd::kStop, &frames);
  writer->End(kUsage, &frames);
  const std::vector<Json> data = Data(frames);
  ASSERT_EQ(data.size(), 6u);  // no usage
  std::string seen;
  for (const Json& chunk : data) {
    EXPECT_EQ(chunk["id"], "chatcmpl-1");
    EXPECT_EQ(chunk["choices"].size(), 1u);
    EXPECT_FALSE(chunk.contains("usage"));
    const Json& choice = chunk["choices"][0];
    seen += choice["index"].dump() + choice["delta"].value("content", "!");
    // Only the first chunk of each choice has a role.
    EXPECT_EQ(choice["delta"].value("role", ""),
              chunk == data[0] || chunk == data[1] ? "assistant" : "");
  }
  EXPECT_EQ(seen, "011b0a1!0!");
}

TEST(ChatWriterTest, GoldenCalls) {
  GenerationRequest request;
  request.tools = {{"look", "{}"}};
  request.tool_choice.kind = ToolChoice::Kind::kAuto;
  const std::string text =
      "So:<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":1}}</tool_call>"
      "<tool_call>{\"name\":\"look\"}</tool_call>";
  const auto writer = NewChatWriter(request, Head(), ToolFamily::kHermes, {});
  Frames frames;
  writer->Begin(&frames);
  writer->Text(0, text, {}, &frames);
  writer->Finish(0, AnswerEnd::kStop, &frames);
  const std::vector<Json> data = Data(frames);
  ASSERT_EQ(data.size(), 5u);
  EXPECT_EQ(data[1]["choices"][0]["delta"].dump(), R"({"content":"So:"})");
  Json call = data[2]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(call["id"].get<std::string>().size(), 29u);
  call["id"] = "ID";
  EXPECT_EQ(call.dump(), R"({"index":0,"id":"ID","type":"function","function":)"
                         R"({"name":"look","arguments":"{\"at\":1}"}})");
  EXPECT_EQ(data[3]["choices"][0]["delta"]["tool_calls"][0]["index"], 1);
  EXPECT_EQ(data[3]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"], "{}");
  EXPECT_EQ(data[4]["choices"][0]["finish_reason"], "tool_calls");

  // The same without streaming.
  const auto whole = NewChatWriter(request, Head(), ToolFamily::kHermes, {});
  whole->Begin(nullptr);
  whole->Text(0, text.substr(3), {}, nullptr);
  whole->Finish(0, AnswerEnd::kStop, nullptr);
  const Json choice = Json::parse(whole->Body(kUsage))["choices"][0];
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 2u);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"at\":1}");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

// Streamed or not: the content has no markup, and the arguments are as far as they came.
TEST(ChatWriterTest, ACallThatIsCutShort) {
  GenerationRequest request;
  request.tools = {{"look", "{}"}};
  request.tool_choice.kind = ToolChoice::Kind::kAuto;
  struct {
    const char* text;
    AnswerEnd end;
    const char* arguments;  // null: no call
    const char* reason;
  } const kCases[] = {
      {"<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":", AnswerEnd::kLength,
       "{\"at\":", "length"},
      {"<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":", AnswerEnd::kStop,
       "{\"at\":", "stop"},
      {"<tool_call>{\"name\":\"look\",\"arguments\":{}}", AnswerEnd::kLength, "{}", "length"},
      {"<tool_call>{\"na", AnswerEnd::kLength, nullptr, "length"}};
  for (const auto& c : kCases) {
    Frames frames;
    const auto writer = NewChatWriter(request, Head(), ToolFamily::kHermes, {});
    writer->Text(0, c.text, {}, &frames);
    writer->Finish(0, c.end, &frames);
    const auto whole = NewChatWriter(request, Head(), ToolFamily::kHermes, {});
    whole->Text(0, c.text, {}, nullptr);
    whole->Finish(0, c.end, nullptr);
    const Json choice = Json::parse(whole->Body(kUsage))["choices"][0];
    const std::vector<Json> data = Data(frames);
    ASSERT_EQ(data.size(), c.arguments == nullptr ? 1u : 2u) << frames.text();
    EXPECT_EQ(data.back()["choices"][0]["finish_reason"], c.reason);
    EXPECT_EQ(choice["finish_reason"], c.reason);
    if (c.arguments == nullptr) {
      EXPECT_EQ(choice["message"]["content"], "");
      EXPECT_FALSE(choice["message"].contains("tool_calls"));
      continue;
    }
    const Json delta = data[0]["choices"][0]["delta"];
    EXPECT_FALSE(delta.contains("content"));
    EXPECT_EQ(delta["tool_calls"][0]["function"]["arguments"], c.arguments);
    EXPECT_TRUE(choice["message"]["content"].is_null());
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"], delta["tool_calls"][0]["function"]);
  }
}

TEST(ChatWriterTest, OneCallWhereNoMoreMayBe) {
  GenerationRequest request;
  request.tools = {{"look", "{}"}};
  request.tool_choice.kind = ToolChoice::Kind::kAuto;
  request.parallel_tool_calls = false;
  const auto writer = NewChatWriter(request, Head(), ToolFamily::kHermes, {});
  EXPECT_TRUE(writer->WantsMore(0));
  writer->Text(0, "<tool_call>{\"name\":\"look\"}</tool_call>", {}, nullptr);
  EXPECT_FALSE(writer->WantsMore(0));
  writer->Text(0, "<tool_call>{\"name\":\"look\"}</tool_call> more", {}, nullptr);
  writer->Finish(0, AnswerEnd::kStop, nullptr);
  const Json message = Json::parse(writer->Body(kUsage))["choices"][0]["message"];
  EXPECT_EQ(message["tool_calls"].size(), 1u);
  EXPECT_TRUE(message["content"].is_null());
}

TEST(ChatWriterTest, GoldenBodyWithLogprobs) {
  GenerationRequest request;
  request.top_logprobs = 2;
  const auto writer = NewChatWriter(request, Head(), ToolFamily::kGeneral, {});
  writer->Begin(nullptr);
  const TokenInfo half[] = {Token("\xC3", -0.5)}, rest[] = {Token("\xA9", -INFINITY)};
  writer->Text(0, "", half, nullptr);
  writer->Text(0, "\xC3\xA9", rest, nullptr);
  writer->Finish(0, AnswerEnd::kStop, nullptr);
  EXPECT_EQ(
      writer->Body(kUsage),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"tales",)"
      "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"\xC3\xA9\","
      "\"refusal\":null},\"logprobs\":{\"content\":["
      "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-0.5,\"bytes\":[195],\"top_logprobs\":["
      "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-0.5,\"bytes\":[195]},"
      "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-3.0,\"bytes\":[195]}]},"
      "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-9999.0,\"bytes\":[169],\"top_logprobs\":["
      "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-9999.0,\"bytes\":[169]},"
      "{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-3.0,\"bytes\":[195]}]}],\"refusal\":null},"
      "\"finish_reason\":\"stop\"}],"
      R"("usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,)"
      R"("prompt_tokens_details":{"cached_tokens":4}}})");
}

TEST(ChatWriterTest, ReasoningStandsBesideContent) {
  const auto writer = NewChatWriter({}, Head(), ToolFamily::kHarmony, {});
  Frames frames;
  writer->Text(0, "<|channel|>analysis<|message|>Hm.<|end|>", {}, &frames);
  writer->Text(0, "<|start|>assistant<|channel|>final<|message|>Yes.", {}, &frames);
  const std::vector<Json> data = Data(frames);
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0]["choices"][0]["delta"].dump(), R"({"reasoning_content":"Hm."})");
  EXPECT_EQ(data[1]["choices"][0]["delta"].dump(), R"({"content":"Yes."})");
}

TEST(ChatWriterTest, ErrorsInMidStream) {
  const auto writer = NewChatWriter({}, Head(), ToolFamily::kGeneral, {});
  Frames frames;
  writer->Fail(absl::InternalError("the device is gone"), &frames);
  EXPECT_EQ(frames.text(),
            "data: {\"error\":{\"message\":\"the device is gone\",\"type\":\"server_error\","
            "\"param\":null,\"code\":\"internal_error\"}}\n\n");
}

TEST(CompletionWriterTest, GoldenStreamAndBody) {
  GenerationRequest request;
  request.prompt.plain = {"a", "b"};
  request.top_logprobs = 1;
  const TokenInfo first[] = {{.bytes = "\xC3\xA9t", .logprob = std::nullopt, .top = {}},
                             {.bytes = "\xE2\x80", .logprob = -1, .top = {{"\xE2\x80", -1}}}};
  const TokenInfo second[] = {{.bytes = "\xA6", .logprob = -2, .top = {{"x", -1}, {"x", -4}}}};
  const std::string logprobs =
      "{\"tokens\":[\"\xC3\xA9t\",\"bytes:\\\\xe2\\\\x80\",\"bytes:\\\\xa6\"],"
      "\"token_logprobs\":[null,-1.0,-2.0],"
      "\"top_logprobs\":[null,{\"bytes:\\\\xe2\\\\x80\":-1.0},"
      "{\"x\":-1.0,\"bytes:\\\\xa6\":-2.0}],"
      "\"text_offset\":[0,2,3]}";
  const auto whole = NewCompletionWriter(request, Head());
  whole->Text(1, "\xC3\xA9t", first, nullptr);
  whole->Text(1, "\xE2\x80\xA6", second, nullptr);
  whole->Finish(1, AnswerEnd::kStop, nullptr);
  whole->Finish(0, AnswerEnd::kLength, nullptr);
  const Json body = Json::parse(whole->Body(kUsage));
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["choices"][1]["text"], "\xC3\xA9t\xE2\x80\xA6");
  EXPECT_EQ(body["choices"][1]["logprobs"].dump(), logprobs);

  const auto writer = NewCompletionWriter(request, Head());
  Frames frames;
  writer->Begin(&frames);
  writer->Text(1, "\xC3\xA9t", first, &frames);
  writer->Text(1, "\xE2\x80\xA6", second, &frames);
  writer->Finish(1, AnswerEnd::kStop, &frames);
  writer->End(kUsage, &frames);
  const std::vector<Json> data = Data(frames);
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[1].dump(),
            R"({"id":"chatcmpl-1","object":"text_completion","created":1700000000,"model":"tales",)"
            "\"choices\":[{\"text\":\"\xE2\x80\xA6\",\"index\":1,\"logprobs\":{\"tokens\":"
            "[\"bytes:\\\\xa6\"],\"token_logprobs\":[-2.0],\"top_logprobs\":"
            "[{\"x\":-1.0,\"bytes:\\\\xa6\":-2.0}],"
            "\"text_offset\":[3]},\"finish_reason\":null}]}");
  EXPECT_EQ(data[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(frames.text().ends_with("\n\ndata: [DONE]\n\n"));
}

TEST(CompletionWriterTest, TokensWaitForTheirText) {
  GenerationRequest request;
  request.prompt.plain = {"a"};
  request.top_logprobs = 0;
  const TokenInfo half[] = {Token("\xC3", -1)}, rest[] = {Token("\xA9", -1)};
  const auto writer = NewCompletionWriter(request, Head());
  Frames frames;
  writer->Text(0, "", half, &frames);
  EXPECT_TRUE(frames.empty());
  writer->Text(0, "\xC3\xA9", rest, &frames);
  EXPECT_EQ(Data(frames)[0]["choices"][0]["logprobs"]["tokens"].size(), 2u);
}

}  // namespace
}  // namespace trine::server
