#include "tools/server/service/embedding_job.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/embed.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {

EmbeddingJob::EmbeddingJob(std::shared_ptr<const ServedModel> model, EmbeddingRequest request,
                           std::chrono::seconds time, std::unique_ptr<Reply> reply,
                           Metrics* metrics)
    : Job(std::move(reply), time),
      model_(std::move(model)),
      request_(std::move(request)),
      metrics_(metrics) {}

void EmbeddingJob::Finish(const absl::Status& status) {
  if (!status.ok()) reply().Error(status);
}

absl::StatusOr<bool> EmbeddingJob::Work() {
  std::vector<std::vector<int32_t>> texts;
  int64_t n_tokens = 0;
  const int64_t context = model_->engine().context();
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const std::string param =
        request_.inputs.size() == 1 ? "input" : absl::StrCat("input[", i, "]");
    auto tokens = model_->EncodePlain(request_.inputs[i]);
    if (!tokens.ok()) return WithParam(tokens.status(), param);
    const auto size = static_cast<int64_t>(tokens->size());
    if (size > context) {
      return WithParam(absl::OutOfRangeError(absl::StrCat("the text has ", size,
                                                          " tokens, the context holds ", context)),
                       param);
    }
    n_tokens += size;
    texts.push_back(*std::move(tokens));
  }
  EmbedOptions options;
  options.wanted = [this] { return Interruption().ok(); };
  options.on_progress = [this](int64_t, int64_t) { return Interruption().ok(); };
  const std::vector<TokenSpan> spans(texts.begin(), texts.end());
  const auto vectors = Embed(&model_->engine(), spans, options);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  if (!vectors.ok()) return vectors.status();
  metrics_->Embedded(n_tokens);
  reply().Note("texts", static_cast<int64_t>(texts.size()));
  reply().Note("prompt_tokens", n_tokens);
  reply().Json(EmbeddingsBody(*vectors, request_.base64, model_->card().id, n_tokens));
  return false;
}

}  // namespace trine::server
