#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "tools/server/openai/answers/answer_test_util.h"
#include "tools/server/openai/answers/answer_writer.h"

namespace trine::server {
namespace {

TEST(ResponsesWriterTest, GoldenEvents) {
  GenerationRequest request;
  request.instructions = "Be terse.";
  request.max_tokens = 5;
  const auto writer = NewResponsesWriter(request, Head(), ToolFamily::kGeneral, {});
  Frames frames;
  writer->Begin(&frames);
  writer->Text(0, "Once", {}, &frames);
  writer->Text(0, " upon", {}, &frames);
  writer->Finish(0, AnswerEnd::kLength, &frames);
  writer->End(kUsage, &frames);
  const std::vector<Json> data = Data(frames);
  const char* const kTypes[] = {"response.created",           "response.in_progress",
                                "response.output_item.added", "response.content_part.added",
                                "response.output_text.delta", "response.output_text.delta",
                                "response.output_text.done",  "response.content_part.done",
                                "response.output_item.done",  "response.incomplete"};
  ASSERT_EQ(data.size(), std::size(kTypes));
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data[i]["type"], kTypes[i]);
    EXPECT_EQ(data[i]["sequence_number"], i);
    EXPECT_NE(frames.text().find("event: " + std::string(kTypes[i]) + "\ndata: "),
              std::string::npos);
  }
  const std::string item = data[2]["item"]["id"];
  EXPECT_EQ(data[0]["response"]["status"], "in_progress");
  EXPECT_EQ(data[2]["item"]["content"].dump(), "[]");
  EXPECT_EQ(data[4].dump(), R"({"type":"response.output_text.delta","sequence_number":4,)"
                            R"("delta":"Once","logprobs":[],"item_id":")" +
                                item + R"(","output_index":0,"content_index":0})");
  EXPECT_EQ(data[6]["text"], "Once upon");
  EXPECT_EQ(data[8]["item"].dump(),
            R"({"id":")" + item +
                R"(","type":"message","status":"incomplete","role":"assistant","content":)"
                R"([{"type":"output_text","text":"Once upon","annotations":[],"logprobs":[]}]})");
  const Json& response = data[9]["response"];
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(response["output"][0], data[8]["item"]);
  EXPECT_EQ(response["usage"].dump(),
            R"({"input_tokens":7,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,)"
            R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":9})");
  EXPECT_EQ(frames.text().find("[DONE]"), std::string::npos);
}

TEST(ResponsesWriterTest, NumbersAreTheOnesThatWereSent) {
  GenerationRequest request;
  request.sampler.temp = 0.8f;
  request.sampler.top_p = 0.95f;
  const auto writer = NewResponsesWriter(request, Head(), ToolFamily::kGeneral, {});
  writer->Finish(0, AnswerEnd::kStop, nullptr);
  const Json body = Json::parse(writer->Body(kUsage));
  EXPECT_EQ(body["temperature"].dump(), "0.8");
  EXPECT_EQ(body["top_p"].dump(), "0.95");
}

TEST(ResponsesWriterTest, BodyAndFailure) {
  GenerationRequest request;
  request.metadata_json = R"({"a":"b"})";
  const auto writer = NewResponsesWriter(request, Head(), ToolFamily::kGeneral, {});
  writer->Begin(nullptr);
  writer->Text(0, "Hi", {}, nullptr);
  writer->Finish(0, AnswerEnd::kStop, nullptr);
  const Json body = Json::parse(writer->Body(kUsage));
  EXPECT_EQ(body["object"], "response");
  EXPECT_EQ(body["status"], "completed");
  EXPECT_EQ(body["metadata"]["a"], "b");
  EXPECT_EQ(body["output"][0]["content"][0]["text"], "Hi");
  EXPECT_EQ(body["text"]["format"]["type"], "text");

  Frames frames;
  writer->Fail(absl::InternalError("oh"), &frames);
  const Json failed = Data(frames)[0];
  EXPECT_EQ(failed["type"], "response.failed");
  EXPECT_EQ(failed["response"]["status"], "failed");
  EXPECT_EQ(failed["response"]["error"].dump(), R"({"code":"internal_error","message":"oh"})");
}

}  // namespace
}  // namespace trine::server
