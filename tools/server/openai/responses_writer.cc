#include "tools/server/openai/responses_writer.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/ids.h"

namespace trine::server {
namespace {

Json OrObject(const std::string& json, Json otherwise) {
  if (json.empty()) return otherwise;
  return ParseJson(json).value_or(std::move(otherwise));
}

// The number that was sent, as far as binary32 holds it: 0.8, not 0.800000011920929.
Json Number(float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  double number = value;
  std::from_chars(digits, end.ptr, number);
  return number;
}

// Clients' types want most of these to be there.
Json NewResponse(const GenerationRequest& request, const AnswerHead& head) {
  Json json = Json::object();
  json["id"] = head.id;
  json["object"] = "response";
  json["created_at"] = head.created;
  json["status"] = "in_progress";
  json["background"] = false;
  json["error"] = nullptr;
  json["incomplete_details"] = nullptr;
  json["instructions"] = request.instructions.empty() ? Json() : Json(request.instructions);
  json["max_output_tokens"] = request.max_tokens.has_value() ? Json(*request.max_tokens) : Json();
  json["model"] = head.model;
  json["output"] = Json::array();
  json["parallel_tool_calls"] = false;
  json["previous_response_id"] = nullptr;
  json["reasoning"] = Json{{"effort", nullptr}, {"summary", nullptr}};
  json["store"] = false;
  json["temperature"] = Number(request.sampler.temp);
  json["text"] = Json{{"format", OrObject(request.text_format_json, Json{{"type", "text"}})}};
  json["tool_choice"] = "none";
  json["tools"] = Json::array();
  json["top_p"] = Number(request.sampler.top_p);
  json["truncation"] = "disabled";
  json["usage"] = nullptr;
  json["user"] = request.user.empty() ? Json() : Json(request.user);
  json["metadata"] = OrObject(request.metadata_json, Json::object());
  return json;
}

Json ResponsesUsage(const Usage& usage) {
  Json json = Json::object();
  json["input_tokens"] = usage.prompt_tokens;
  json["input_tokens_details"] = Json{{"cached_tokens", usage.cached_tokens}};
  json["output_tokens"] = usage.completion_tokens;
  json["output_tokens_details"] = Json{{"reasoning_tokens", 0}};
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  return json;
}

}  // namespace

ResponsesWriter::ResponsesWriter(const GenerationRequest& request, const AnswerHead& head,
                                 ToolFamily family, const AnswerStart& start)
    : response_(NewResponse(request, head)),
      message_id_(RandomId("msg_")),
      reader_(NewAnswerReader(family, request, start)) {}

void ResponsesWriter::Begin(Frames* frames) {
  SendResponse("response.created", response_, frames);
  SendResponse("response.in_progress", response_, frames);
  Json item = Message("in_progress");
  item["content"] = Json::array();
  Send("response.output_item.added", Json{{"output_index", 0}, {"item", std::move(item)}}, frames);
  SendItem("response.content_part.added", Json{{"part", Part()}}, frames);
}

void ResponsesWriter::Text(size_t, std::string_view text, std::span<const TokenInfo>,
                           Frames* frames) {
  std::vector<AnswerPiece> pieces;
  if (reader_ != nullptr) {
    reader_->Push(text, &pieces);
  } else if (!text.empty()) {
    pieces.push_back({.kind = AnswerPiece::Kind::kContent, .text = std::string(text), .call = {}});
  }
  Write(pieces, frames);
}

void ResponsesWriter::Write(const std::vector<AnswerPiece>& pieces, Frames* frames) {
  for (const AnswerPiece& piece : pieces) {
    if (piece.kind != AnswerPiece::Kind::kContent) continue;
    text_ += piece.text;
    SendItem("response.output_text.delta", Json{{"delta", piece.text}, {"logprobs", Json::array()}},
             frames);
  }
}

void ResponsesWriter::Finish(size_t, AnswerEnd end, Frames* frames) {
  end_ = end;
  std::vector<AnswerPiece> pieces;
  if (reader_ != nullptr) reader_->Finish(&pieces);
  Write(pieces, frames);
  SendItem("response.output_text.done", Json{{"text", text_}, {"logprobs", Json::array()}}, frames);
  SendItem("response.content_part.done", Json{{"part", Part()}}, frames);
  Send("response.output_item.done", Json{{"output_index", 0}, {"item", Message(EndStatus())}},
       frames);
}

void ResponsesWriter::End(const Usage& usage, Frames* frames) {
  if (frames == nullptr) return;
  SendResponse(end_ == AnswerEnd::kStop ? "response.completed" : "response.incomplete",
               Ended(usage), frames);
}

void ResponsesWriter::Fail(const absl::Status& status, Frames* frames) {
  Json response = response_;
  const std::string code = ErrorCodeOf(status);
  response["status"] = "failed";
  response["error"] = Json{{"code", code.empty() ? "server_error" : code},
                           {"message", std::string(status.message())}};
  SendResponse("response.failed", std::move(response), frames);
}

std::string ResponsesWriter::Body(const Usage& usage) { return Dump(Ended(usage)); }

Json ResponsesWriter::Part() const {
  Json part = Json::object();
  part["type"] = "output_text";
  part["text"] = text_;
  part["annotations"] = Json::array();
  part["logprobs"] = Json::array();
  return part;
}

Json ResponsesWriter::Message(const char* status) const {
  Json content = Json::array();
  content.push_back(Part());
  Json item = Json::object();
  item["id"] = message_id_;
  item["type"] = "message";
  item["status"] = status;
  item["role"] = "assistant";
  item["content"] = std::move(content);
  return item;
}

Json ResponsesWriter::Ended(const Usage& usage) const {
  Json response = response_;
  response["status"] = EndStatus();
  if (end_ == AnswerEnd::kLength) {
    response["incomplete_details"] = Json{{"reason", "max_output_tokens"}};
  }
  response["output"].push_back(Message(EndStatus()));
  response["usage"] = ResponsesUsage(usage);
  return response;
}

void ResponsesWriter::SendResponse(const char* type, Json response, Frames* frames) {
  Send(type, Json{{"response", std::move(response)}}, frames);
}

void ResponsesWriter::SendItem(const char* type, Json event, Frames* frames) {
  event["item_id"] = message_id_;
  event["output_index"] = 0;
  event["content_index"] = 0;
  Send(type, std::move(event), frames);
}

void ResponsesWriter::Send(const char* type, Json event, Frames* frames) {
  if (frames == nullptr) return;
  Json json = Json::object();
  json["type"] = type;
  json["sequence_number"] = sequence_number_++;
  json.update(event);
  frames->Event(type, Dump(json));
}

std::unique_ptr<AnswerWriter> NewResponsesWriter(const GenerationRequest& request, AnswerHead head,
                                                 ToolFamily family, const AnswerStart& start) {
  return std::make_unique<ResponsesWriter>(request, head, family, start);
}

}  // namespace trine::server
