#include "tools/server/service/embedding_job.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/embed.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {

EmbeddingJob::EmbeddingJob(std::shared_ptr<const ServedModel> model, EmbeddingRequest request,
                           std::chrono::seconds time, std::unique_ptr<Reply> reply,
                           Metrics* metrics)
    : model_(std::move(model)),
      request_(std::move(request)),
      time_(time),
      reply_(std::move(reply)),
      metrics_(metrics) {}

void EmbeddingJob::Run() {
  absl::Status status;
  try {
    status = Interruption();
    if (status.ok()) status = Answer();
  } catch (const std::bad_alloc&) {
    status = absl::UnavailableError("the server is out of memory");
  } catch (const std::exception& e) {
    status = absl::InternalError(e.what());
  }
  if (!status.ok()) Refuse(status);
}

void EmbeddingJob::Refuse(const absl::Status& status) noexcept {
  try {
    reply_->Error(status);
  } catch (const std::exception&) {
    // There is no memory to say so with: the connection is cut.
  }
}

absl::Status EmbeddingJob::Answer() {
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
  reply_->Note("texts", static_cast<int64_t>(texts.size()));
  reply_->Note("prompt_tokens", n_tokens);
  reply_->Json(EmbeddingsBody(*vectors, request_.base64, model_->card().id, n_tokens));
  return absl::OkStatus();
}

absl::Status EmbeddingJob::Interruption() const {
  if (reply_->exchange().gone()) return absl::CancelledError("the client has gone");
  if (Reply::Clock::now() - reply_->begin() > time_) {
    return absl::DeadlineExceededError(absl::StrCat("the answer has taken longer than the ",
                                                    time_.count(), " s that one may take"));
  }
  return cancelled_ ? absl::UnavailableError("the server is stopping") : absl::OkStatus();
}

}  // namespace trine::server
