// The answer of POST /v1/chat/completions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/answers/chunks.h"
#include "tools/server/openai/tools/answer_reader.h"

namespace trine::server {
namespace {

Json CallJson(const ToolCall& call) {
  return Json{{"id", call.id},
              {"type", "function"},
              {"function", Json{{"name", call.name}, {"arguments", call.arguments}}}};
}

class ChatWriter : public ChunkWriter {
 public:
  ChatWriter(const GenerationRequest& request, AnswerHead head, ToolFamily family,
             const AnswerStart& start)
      : ChunkWriter(request, std::move(head), "chat.completion.chunk", "chat.completion",
                    static_cast<size_t>(request.n)),
        parallel_calls_(request.parallel_tool_calls),
        choices_(static_cast<size_t>(request.n)) {
    for (ChatChoice& choice : choices_) choice.reader = NewAnswerReader(family, request, start);
  }

  void Begin(Frames* frames) override {
    for (size_t i = 0; i < choices_.size(); ++i) {
      SendDelta(i, Json{{"role", "assistant"}, {"content", ""}}, Json(), Json(), frames);
    }
  }

  void Text(size_t index, std::string_view text, std::span<const TokenInfo> tokens,
            Frames* frames) override {
    ChatChoice& choice = choices_[index];
    if (logprobs_) choice.pending.insert(choice.pending.end(), tokens.begin(), tokens.end());
    std::vector<AnswerPiece> pieces;
    choice.reader->Push(text, &pieces);
    for (AnswerPiece& piece : pieces) Write(index, std::move(piece), frames);
  }

  void Finish(size_t index, AnswerEnd end, Frames* frames) override {
    ChatChoice& choice = choices_[index];
    choice.end = end;
    std::vector<AnswerPiece> pieces;
    choice.reader->Finish(&pieces);
    for (AnswerPiece& piece : pieces) Write(index, std::move(piece), frames);
    SendDelta(index, Json::object(), Json(), FinishReason(choice), frames);
  }

  bool WantsMore(size_t choice) const override {
    return parallel_calls_ || choices_[choice].n_calls == 0;
  }

 private:
  struct ChatChoice : Choice {
    std::unique_ptr<AnswerReader> reader;
    size_t n_calls = 0;
    bool cut_call = false;  // the last call is incomplete
    // Collected where the answer is not streamed:
    std::string content, reasoning;
    std::vector<ToolCall> calls;
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
    const std::vector<TokenInfo> tokens = TakePending(&choices_[index], frames);
    if (frames == nullptr) {
      choices_[index].content += text;
      return;
    }
    SendDelta(index, Json{{"content", std::move(text)}}, Logprobs(tokens), Json(), frames);
  }

  // Log-probabilities are written for content only.
  void WriteReasoning(size_t index, std::string text, Frames* frames) {
    choices_[index].pending.clear();
    if (frames == nullptr) {
      choices_[index].reasoning += text;
      return;
    }
    SendDelta(index, Json{{"reasoning_content", std::move(text)}}, Json(), Json(), frames);
  }

  void WriteCall(size_t index, ToolCall call, Frames* frames) {
    ChatChoice& choice = choices_[index];
    choice.pending.clear();
    const size_t number = choice.n_calls++;
    choice.cut_call = call.cut;
    if (frames == nullptr) {
      choice.calls.push_back(std::move(call));
      return;
    }
    Json delta{{"index", number}};
    delta.update(CallJson(call));
    SendDelta(index, Json{{"tool_calls", Json::array({std::move(delta)})}}, Json(), Json(), frames);
  }

  void SendDelta(size_t index, Json delta, Json logprobs, Json finish_reason,
                 Frames* frames) const {
    Send(Json{{"index", index},
              {"delta", std::move(delta)},
              {"logprobs", std::move(logprobs)},
              {"finish_reason", std::move(finish_reason)}},
         frames);
  }

  Json Logprobs(const std::vector<TokenInfo>& tokens) const {
    if (!logprobs_) return Json();
    return Json{{"content", ChatLogprobs(tokens)}, {"refusal", nullptr}};
  }

  Json FinishReason(const ChatChoice& choice) const {
    // Clients execute the calls that they are told of, so a call whose arguments were cut is not
    // announced.
    const bool calls = choice.n_calls > 0 && !choice.cut_call;
    if (calls && choice.end == AnswerEnd::kStop) return "tool_calls";
    return FinishReasonText(choice.end);
  }

  Json WholeChoice(size_t index) const override {
    const ChatChoice& choice = choices_[index];
    const bool calls_alone = choice.content.empty() && !choice.calls.empty();
    Json message{{"role", "assistant"},
                 {"content", calls_alone ? Json() : Json(choice.content)},
                 {"refusal", nullptr}};
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    for (const ToolCall& call : choice.calls) message["tool_calls"].push_back(CallJson(call));
    return Json{{"index", index},
                {"message", std::move(message)},
                {"logprobs", Logprobs(choice.tokens)},
                {"finish_reason", FinishReason(choice)}};
  }

  const bool parallel_calls_;
  std::vector<ChatChoice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> NewChatWriter(const GenerationRequest& request, AnswerHead head,
                                            ToolFamily family, const AnswerStart& start) {
  return std::make_unique<ChatWriter>(request, std::move(head), family, start);
}

}  // namespace trine::server
