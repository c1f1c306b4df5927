// The answer of POST /v1/chat/completions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/answers/chunks.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/tools/answer_reader.h"

namespace trine::server {
namespace {

Json CallJson(const ToolCall& call) {
  return Json{{"id", call.id},
              {"type", "function"},
              {"function", Json{{"name", call.name}, {"arguments", call.arguments}}}};
}

class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(const GenerationRequest& request, AnswerHead head, ToolFamily family,
             const AnswerStart& start)
      : head_(std::move(head)),
        logprobs_(request.top_logprobs >= 0),
        parallel_calls_(request.parallel_tool_calls),
        include_usage_(request.include_usage),
        chunks_(head_, "chat.completion.chunk", include_usage_),
        choices_(static_cast<size_t>(request.n)) {
    for (Choice& choice : choices_) choice.reader = NewAnswerReader(family, request, start);
  }

  void Begin(Frames* frames) override {
    for (size_t i = 0; i < choices_.size(); ++i) {
      Send(i, Json{{"role", "assistant"}, {"content", ""}}, Json(), Json(), frames);
    }
  }

  void Text(size_t index, std::string_view text, std::span<const TokenInfo> tokens,
            Frames* frames) override {
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

  void Finish(size_t index, AnswerEnd end, Frames* frames) override {
    Choice& choice = choices_[index];
    choice.end = end;
    if (choice.reader != nullptr) {
      std::vector<AnswerPiece> pieces;
      choice.reader->Finish(&pieces);
      for (AnswerPiece& piece : pieces) Write(index, std::move(piece), frames);
    }
    Send(index, Json::object(), Json(), FinishReason(choice), frames);
  }

  void End(const Usage& usage, Frames* frames) override {
    if (frames == nullptr) return;
    if (include_usage_) frames->Data(chunks_.OfUsage(usage));
    frames->Done();
  }

  void Fail(const absl::Status& status, Frames* frames) override {
    if (frames != nullptr) frames->Data(ErrorBody(status));
  }

  std::string Body(const Usage& usage) override {
    Json choices = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(ChoiceJson(i));
    return WholeAnswer(head_, "chat.completion", std::move(choices), usage);
  }

  bool WantsMore(size_t choice) const override {
    return parallel_calls_ || choices_[choice].n_calls == 0;
  }

 private:
  struct Choice {
    std::unique_ptr<AnswerReader> reader;  // null: all text is content
    std::vector<TokenInfo> pending;        // tokens whose text has not been written yet
    size_t n_calls = 0;
    bool cut_call = false;  // the last call is incomplete
    AnswerEnd end = AnswerEnd::kStop;
    // Collected where the answer is not streamed:
    std::string content, reasoning;
    std::vector<ToolCall> calls;
    std::vector<TokenInfo> tokens;
  };

  void Write(size_t index, AnswerPiece piece, Frames* frames) {
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

  void WriteContent(size_t index, std::string text, Frames* frames) {
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

  // Log-probabilities are written for content only.
  void WriteReasoning(size_t index, std::string text, Frames* frames) {
    choices_[index].pending.clear();
    if (frames == nullptr) {
      choices_[index].reasoning += text;
      return;
    }
    Send(index, Json{{"reasoning_content", std::move(text)}}, Json(), Json(), frames);
  }

  void WriteCall(size_t index, ToolCall call, Frames* frames) {
    Choice& choice = choices_[index];
    choice.pending.clear();
    const size_t number = choice.n_calls++;
    choice.cut_call = call.cut;
    if (frames == nullptr) {
      choice.calls.push_back(std::move(call));
      return;
    }
    Json delta{{"index", number}};
    delta.update(CallJson(call));
    Send(index, Json{{"tool_calls", Json::array({std::move(delta)})}}, Json(), Json(), frames);
  }

  void Send(size_t index, Json delta, Json logprobs, Json finish_reason, Frames* frames) const {
    if (frames == nullptr) return;
    frames->Data(chunks_.Of(Json{{"index", index},
                                 {"delta", std::move(delta)},
                                 {"logprobs", std::move(logprobs)},
                                 {"finish_reason", std::move(finish_reason)}}));
  }

  Json FinishReason(const Choice& choice) const {
    // Clients execute the calls that they are told of, so a call whose arguments were cut is not
    // announced.
    const bool calls = choice.n_calls > 0 && !choice.cut_call;
    if (calls && choice.end == AnswerEnd::kStop) return "tool_calls";
    return FinishReasonText(choice.end);
  }

  Json ChoiceJson(size_t index) const {
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

  const AnswerHead head_;
  const bool logprobs_;
  const bool parallel_calls_;
  const bool include_usage_;
  const Chunks chunks_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> NewChatWriter(const GenerationRequest& request, AnswerHead head,
                                            ToolFamily family, const AnswerStart& start) {
  return std::make_unique<ChatWriter>(request, std::move(head), family, start);
}

}  // namespace trine::server
