// The answer of POST /v1/completions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/answers/chunks.h"

namespace trine::server {
namespace {

class CompletionWriter : public ChunkWriter {
 public:
  CompletionWriter(const GenerationRequest& request, AnswerHead head, size_t choices)
      : ChunkWriter(request, std::move(head), "text_completion", "text_completion", choices),
        choices_(choices) {}

  void Begin(Frames*) override {}

  void Text(size_t index, std::string_view text, std::span<const TokenInfo> tokens,
            Frames* frames) override {
    TextChoice& choice = choices_[index];
    if (logprobs_) choice.pending.insert(choice.pending.end(), tokens.begin(), tokens.end());
    if (text.empty()) return;
    const std::vector<TokenInfo> shown = TakePending(&choice, frames);
    if (frames == nullptr) {
      choice.text += text;
      return;
    }
    Send(ChoiceJson(index, text, Logprobs(shown, &choice.offset), Json()), frames);
  }

  void Finish(size_t index, AnswerEnd end, Frames* frames) override {
    TextChoice& choice = choices_[index];
    choice.end = end;
    // Tokens that have no text of their own are written, too.
    const std::vector<TokenInfo> left = TakePending(&choice, frames);
    Json logprobs;
    if (!left.empty()) logprobs = Logprobs(left, &choice.offset);
    Send(ChoiceJson(index, "", std::move(logprobs), FinishReasonText(end)), frames);
  }

  bool WantsMore(size_t) const override { return true; }

 private:
  struct TextChoice : Choice {
    int64_t offset = 0;  // characters of the tokens written so far
    std::string text;    // collected where the answer is not streamed
  };

  Json WholeChoice(size_t index) const override {
    const TextChoice& choice = choices_[index];
    int64_t offset = 0;
    return ChoiceJson(index, choice.text, Logprobs(choice.tokens, &offset),
                      FinishReasonText(choice.end));
  }

  Json Logprobs(const std::vector<TokenInfo>& tokens, int64_t* offset) const {
    return logprobs_ ? CompletionLogprobs(tokens, offset) : Json();
  }

  static Json ChoiceJson(size_t index, std::string_view text, Json logprobs, Json finish_reason) {
    return Json{{"text", text},
                {"index", index},
                {"logprobs", std::move(logprobs)},
                {"finish_reason", std::move(finish_reason)}};
  }

  std::vector<TextChoice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> NewCompletionWriter(const GenerationRequest& request,
                                                  AnswerHead head) {
  return std::make_unique<CompletionWriter>(
      request, std::move(head), request.prompt.plain.size() * static_cast<size_t>(request.n));
}

}  // namespace trine::server
