// The answer of POST /v1/completions.
#include <memory>
#include <utility>

#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/answers/chunks.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {
namespace {

constexpr char kObject[] = "text_completion";

class CompletionWriter : public AnswerWriter {
 public:
  CompletionWriter(const GenerationRequest& request, AnswerHead head)
      : head_(std::move(head)),
        logprobs_(request.top_logprobs >= 0),
        include_usage_(request.include_usage),
        chunks_(head_, kObject, include_usage_),
        choices_(request.prompt.plain.size() * static_cast<size_t>(request.n)) {}

  void Begin(Frames*) override {}

  void Text(size_t index, std::string_view text, std::span<const TokenInfo> tokens,
            Frames* frames) override {
    Choice& choice = choices_[index];
    if (logprobs_) choice.pending.insert(choice.pending.end(), tokens.begin(), tokens.end());
    if (text.empty()) return;
    const std::vector<TokenInfo> shown = std::exchange(choice.pending, {});
    if (frames == nullptr) {
      choice.text += text;
      choice.tokens.insert(choice.tokens.end(), shown.begin(), shown.end());
      return;
    }
    Json logprobs;
    if (logprobs_) logprobs = CompletionLogprobs(shown, &choice.offset);
    frames->Data(chunks_.Of(ChoiceJson(index, text, std::move(logprobs), Json())));
  }

  void Finish(size_t index, AnswerEnd end, Frames* frames) override {
    Choice& choice = choices_[index];
    choice.end = end;
    // Tokens that have no text of their own are written, too.
    const std::vector<TokenInfo> left = std::exchange(choice.pending, {});
    if (frames == nullptr) {
      choice.tokens.insert(choice.tokens.end(), left.begin(), left.end());
      return;
    }
    Json logprobs;
    if (!left.empty()) logprobs = CompletionLogprobs(left, &choice.offset);
    frames->Data(chunks_.Of(ChoiceJson(index, "", std::move(logprobs), FinishReasonText(end))));
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
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Choice& choice = choices_[i];
      int64_t offset = 0;
      Json logprobs;
      if (logprobs_) logprobs = CompletionLogprobs(choice.tokens, &offset);
      choices.push_back(
          ChoiceJson(i, choice.text, std::move(logprobs), FinishReasonText(choice.end)));
    }
    return WholeAnswer(head_, kObject, std::move(choices), usage);
  }

  bool WantsMore(size_t) const override { return true; }

 private:
  struct Choice {
    std::vector<TokenInfo> pending;  // tokens whose text has not been written yet
    int64_t offset = 0;              // characters of the tokens written so far
    AnswerEnd end = AnswerEnd::kStop;
    // Collected where the answer is not streamed:
    std::string text;
    std::vector<TokenInfo> tokens;
  };

  static Json ChoiceJson(size_t index, std::string_view text, Json logprobs, Json finish_reason) {
    return Json{{"text", text},
                {"index", index},
                {"logprobs", std::move(logprobs)},
                {"finish_reason", std::move(finish_reason)}};
  }

  const AnswerHead head_;
  const bool logprobs_;
  const bool include_usage_;
  const Chunks chunks_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> NewCompletionWriter(const GenerationRequest& request,
                                                  AnswerHead head) {
  return std::make_unique<CompletionWriter>(request, std::move(head));
}

}  // namespace trine::server
