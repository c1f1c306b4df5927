#include "tools/server/openai/chat_writer.h"

#include <utility>

#include "tools/server/openai/api_error.h"
#include "tools/server/openai/logprobs_json.h"

namespace trine::server {
namespace {

Json CallJson(const ToolCall& call) {
  Json json = Json::object();
  json["id"] = call.id;
  json["type"] = "function";
  json["function"] = Json{{"name", call.name}, {"arguments", call.arguments}};
  return json;
}

}  // namespace

ChatWriter::ChatWriter(const GenerationRequest& request, AnswerHead head, ToolFamily family,
                       const AnswerStart& start)
    : head_(std::move(head)),
      logprobs_(request.top_logprobs >= 0),
      parallel_calls_(request.parallel_tool_calls),
      include_usage_(request.include_usage),
      chunks_(head_, "chat.completion.chunk", include_usage_),
      choices_(static_cast<size_t>(request.n)) {
  for (Choice& choice : choices_) choice.reader = NewAnswerReader(family, request, start);
}

void ChatWriter::Begin(Frames* frames) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    Send(i, Json{{"role", "assistant"}, {"content", ""}}, Json(), Json(), frames);
  }
}

void ChatWriter::Text(size_t index, std::string_view text, std::span<const TokenInfo> tokens,
                      Frames* frames) {
  Choice& choice = choices_[index];
  if (logprobs_) choice.pending.insert(choice.pending.end(), tokens.begin(), tokens.end());
  if (choice.reader == nullptr) {
    if (!text.empty()) WriteContent(index, std::string(text), frames);
    return;
  }
  std::vector<AnswerPiece> pieces;
  choice.reader->Push(text, &pieces);
  for (AnswerPiece& piece : pieces) Write(index, std::move(piece), frames);
}

void ChatWriter::Finish(size_t index, AnswerEnd end, Frames* frames) {
  Choice& choice = choices_[index];
  choice.end = end;
  if (choice.reader != nullptr) {
    std::vector<AnswerPiece> pieces;
    choice.reader->Finish(&pieces);
    for (AnswerPiece& piece : pieces) Write(index, std::move(piece), frames);
  }
  Send(index, Json::object(), Json(), FinishReason(choice), frames);
}

void ChatWriter::End(const Usage& usage, Frames* frames) {
  if (frames == nullptr) return;
  if (include_usage_) frames->Data(chunks_.OfUsage(usage));
  frames->Done();
}

void ChatWriter::Fail(const absl::Status& status, Frames* frames) {
  if (frames != nullptr) frames->Data(ErrorBody(status));
}

bool ChatWriter::WantsMore(size_t choice) const {
  return parallel_calls_ || choices_[choice].n_calls == 0;
}

void ChatWriter::Write(size_t index, AnswerPiece piece, Frames* frames) {
  if (!WantsMore(index)) return;
  switch (piece.kind) {
    case AnswerPiece::Kind::kContent:
      return WriteContent(index, std::move(piece.text), frames);
    case AnswerPiece::Kind::kReasoning:
      return WriteReasoning(index, std::move(piece.text), frames);
    case AnswerPiece::Kind::kCall:
      return WriteCall(index, std::move(piece.call), frames);
  }
}

void ChatWriter::WriteContent(size_t index, std::string text, Frames* frames) {
  Choice& choice = choices_[index];
  const std::vector<TokenInfo> tokens = std::exchange(choice.pending, {});
  if (frames == nullptr) {
    choice.content += text;
    choice.tokens.insert(choice.tokens.end(), tokens.begin(), tokens.end());
    return;
  }
  Json logprobs;
  if (logprobs_) logprobs = Json{{"content", ChatLogprobs(tokens)}, {"refusal", nullptr}};
  Send(index, Json{{"content", std::move(text)}}, std::move(logprobs), Json(), frames);
}

// Log-probabilities are told of content alone.
void ChatWriter::WriteReasoning(size_t index, std::string text, Frames* frames) {
  choices_[index].pending.clear();
  if (frames == nullptr) {
    choices_[index].reasoning += text;
    return;
  }
  Send(index, Json{{"reasoning_content", std::move(text)}}, Json(), Json(), frames);
}

void ChatWriter::WriteCall(size_t index, ToolCall call, Frames* frames) {
  Choice& choice = choices_[index];
  choice.pending.clear();
  const size_t number = choice.n_calls++;
  choice.cut_call = call.cut;
  if (frames == nullptr) {
    choice.calls.push_back(std::move(call));
    return;
  }
  Json delta = Json::object();
  delta["index"] = number;
  delta.update(CallJson(call));
  Json calls = Json::array();
  calls.push_back(std::move(delta));
  Send(index, Json{{"tool_calls", std::move(calls)}}, Json(), Json(), frames);
}

void ChatWriter::Send(size_t index, Json delta, Json logprobs, Json finish_reason,
                      Frames* frames) const {
  if (frames == nullptr) return;
  Json choice = Json::object();
  choice["index"] = index;
  choice["delta"] = std::move(delta);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish_reason);
  frames->Data(chunks_.Of(choice));
}

Json ChatWriter::FinishReason(const Choice& choice) const {
  // Whoever is told of calls makes them: not of one whose arguments a stop string cut.
  const bool calls = choice.n_calls > 0 && !choice.cut_call;
  if (calls && choice.end == AnswerEnd::kStop) return "tool_calls";
  return FinishReasonText(choice.end);
}

Json ChatWriter::ChoiceJson(size_t index) const {
  const Choice& choice = choices_[index];
  Json message = Json::object();
  message["role"] = "assistant";
  const bool calls_alone = choice.content.empty() && !choice.calls.empty();
  message["content"] = calls_alone ? Json() : Json(choice.content);
  message["refusal"] = nullptr;
  if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
  if (!choice.calls.empty()) {
    Json calls = Json::array();
    for (const ToolCall& call : choice.calls) calls.push_back(CallJson(call));
    message["tool_calls"] = std::move(calls);
  }
  Json json = Json::object();
  json["index"] = index;
  json["message"] = std::move(message);
  json["logprobs"] = nullptr;
  if (logprobs_) {
    json["logprobs"] = Json{{"content", ChatLogprobs(choice.tokens)}, {"refusal", nullptr}};
  }
  json["finish_reason"] = FinishReason(choice);
  return json;
}

std::string ChatWriter::Body(const Usage& usage) {
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(ChoiceJson(i));
  return WholeAnswer(head_, "chat.completion", std::move(choices), usage);
}

std::unique_ptr<AnswerWriter> NewChatWriter(const GenerationRequest& request, AnswerHead head,
                                            ToolFamily family, const AnswerStart& start) {
  return std::make_unique<ChatWriter>(request, std::move(head), family, start);
}

}  // namespace trine::server
