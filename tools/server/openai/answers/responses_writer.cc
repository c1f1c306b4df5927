// The answer of POST /v1/responses: one message of text, as an object or as the events of a stream.
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/ids.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

Json OrObject(const std::string& json, Json otherwise) {
  if (json.empty()) return otherwise;
  return ParseJson(json).value_or(std::move(otherwise));
}

// Returns the number that was sent, as exactly as binary32 holds it: 0.8, not 0.800000011920929.
Json Number(float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  double number = value;
  std::from_chars(digits, end.ptr, number);
  return number;
}

// Most of these members are required by the types of client libraries.
Json NewResponse(const GenerationRequest& request, const AnswerHead& head) {
  return Json{
      {"id", head.id},
      {"object", "response"},
      {"created_at", head.created},
      {"status", "in_progress"},
      {"background", false},
      {"error", nullptr},
      {"incomplete_details", nullptr},
      {"instructions", request.instructions.empty() ? Json() : Json(request.instructions)},
      {"max_output_tokens", request.max_tokens.has_value() ? Json(*request.max_tokens) : Json()},
      {"model", head.model},
      {"output", Json::array()},
      {"parallel_tool_calls", false},
      {"previous_response_id", nullptr},
      {"reasoning", Json{{"effort", nullptr}, {"summary", nullptr}}},
      {"store", false},
      {"temperature", Number(request.sampler.temp)},
      {"text", Json{{"format", OrObject(request.text_format_json, Json{{"type", "text"}})}}},
      {"tool_choice", "none"},
      {"tools", Json::array()},
      {"top_p", Number(request.sampler.top_p)},
      {"truncation", "disabled"},
      {"usage", nullptr},
      {"user", request.user.empty() ? Json() : Json(request.user)},
      {"metadata", OrObject(request.metadata_json, Json::object())}};
}

Json ResponsesUsage(const Usage& usage) {
  return Json{{"input_tokens", usage.prompt_tokens},
              {"input_tokens_details", Json{{"cached_tokens", usage.cached_tokens}}},
              {"output_tokens", usage.completion_tokens},
              {"output_tokens_details", Json{{"reasoning_tokens", 0}}},
              {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

class ResponsesWriter : public AnswerWriter {
 public:
  ResponsesWriter(const GenerationRequest& request, const AnswerHead& head, ToolFamily family,
                  const AnswerStart& start)
      : response_(NewResponse(request, head)),
        message_id_(RandomId("msg_")),
        reader_(NewAnswerReader(family, request, start)) {}

  void Begin(Frames* frames) override {
    SendResponse("response.created", response_, frames);
    SendResponse("response.in_progress", response_, frames);
    Json item = Message("in_progress");
    item["content"] = Json::array();
    Send("response.output_item.added", Json{{"output_index", 0}, {"item", std::move(item)}},
         frames);
    SendItem("response.content_part.added", Json{{"part", Part()}}, frames);
  }

  void Text(size_t, std::string_view text, std::span<const TokenInfo>, Frames* frames) override {
    std::vector<AnswerPiece> pieces;
    reader_->Push(text, &pieces);
    Write(pieces, frames);
  }

  void Finish(size_t, AnswerEnd end, Frames* frames) override {
    end_ = end;
    std::vector<AnswerPiece> pieces;
    reader_->Finish(&pieces);
    Write(pieces, frames);
    SendItem("response.output_text.done", Json{{"text", text_}, {"logprobs", Json::array()}},
             frames);
    SendItem("response.content_part.done", Json{{"part", Part()}}, frames);
    Send("response.output_item.done", Json{{"output_index", 0}, {"item", Message(EndStatus())}},
         frames);
  }

  void End(const Usage& usage, Frames* frames) override {
    if (frames == nullptr) return;
    SendResponse(end_ == AnswerEnd::kStop ? "response.completed" : "response.incomplete",
                 Ended(usage), frames);
  }

  void Fail(const absl::Status& status, Frames* frames) override {
    Json response = response_;
    const std::string code = ErrorCodeOf(status);
    response["status"] = "failed";
    response["error"] = Json{{"code", code.empty() ? "server_error" : code},
                             {"message", std::string(status.message())}};
    SendResponse("response.failed", std::move(response), frames);
  }

  std::string Body(const Usage& usage) override { return Dump(Ended(usage)); }
  bool WantsMore(size_t) const override { return true; }

 private:
  // Send an event about the response as a whole, or about its message.
  void SendResponse(const char* type, Json response, Frames* frames) {
    Send(type, Json{{"response", std::move(response)}}, frames);
  }

  void SendItem(const char* type, Json event, Frames* frames) {
    event["item_id"] = message_id_;
    event["output_index"] = 0;
    event["content_index"] = 0;
    Send(type, std::move(event), frames);
  }

  void Send(const char* type, Json event, Frames* frames) {
    if (frames == nullptr) return;
    Json json{{"type", type}, {"sequence_number", sequence_number_++}};
    json.update(event);
    frames->Event(type, Dump(json));
  }

  void Write(const std::vector<AnswerPiece>& pieces, Frames* frames) {
    for (const AnswerPiece& piece : pieces) {
      if (piece.kind != AnswerPiece::Kind::kContent) continue;
      text_ += piece.text;
      SendItem("response.output_text.delta",
               Json{{"delta", piece.text}, {"logprobs", Json::array()}}, frames);
    }
  }

  const char* EndStatus() const { return end_ == AnswerEnd::kStop ? "completed" : "incomplete"; }
  Json Part() const {
    return Json{{"type", "output_text"},
                {"text", text_},
                {"annotations", Json::array()},
                {"logprobs", Json::array()}};
  }

  Json Message(const char* status) const {
    return Json{{"id", message_id_},
                {"type", "message"},
                {"status", status},
                {"role", "assistant"},
                {"content", Json::array({Part()})}};
  }

  Json Ended(const Usage& usage) const {
    Json response = response_;
    response["status"] = EndStatus();
    if (end_ == AnswerEnd::kLength) {
      response["incomplete_details"] = Json{{"reason", "max_output_tokens"}};
    }
    response["output"].push_back(Message(EndStatus()));
    response["usage"] = ResponsesUsage(usage);
    return response;
  }

  Json response_;  // as it is at the start
  const std::string message_id_;
  std::unique_ptr<AnswerReader> reader_;
  std::string text_;
  AnswerEnd end_ = AnswerEnd::kStop;
  int64_t sequence_number_ = 0;
};

}  // namespace

std::unique_ptr<AnswerWriter> NewResponsesWriter(const GenerationRequest& request, AnswerHead head,
                                                 ToolFamily family, const AnswerStart& start) {
  return std::make_unique<ResponsesWriter>(request, head, family, start);
}

}  // namespace trine::server
