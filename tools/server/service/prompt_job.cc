#include "tools/server/service/prompt_job.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/generate.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {

PromptJob::PromptJob(std::shared_ptr<const ServedModel> model, What what, std::string space,
                     SessionShelf::Hold hold, std::chrono::seconds time,
                     std::unique_ptr<Reply> reply, Metrics* metrics)
    : Job(std::move(reply), time),
      model_(std::move(model)),
      what_(std::move(what)),
      space_(std::move(space)),
      metrics_(metrics),
      hold_(std::move(hold)) {
  if (const auto* request = std::get_if<GenerationRequest>(&what_)) {
    early_.emplace(model_.get(), Endpoint::kSession, request, &space_);
  }
}

bool PromptJob::prepares() const { return early_ && model_->engine().prefetches(); }

absl::StatusOr<bool> PromptJob::Work() {
  const absl::Status status = early_ ? Begin() : Append(std::get<PlainPrompt>(what_));
  if (!status.ok()) return status;
  return false;
}

absl::Status PromptJob::Begin() {
  const auto& request = std::get<GenerationRequest>(what_);
  const auto setup = early_->Take();
  if (!setup.ok()) return setup.status();
  const uint64_t seed = request.seed ? *request.seed : DrawSeed();
  auto session =
      Session::Create(&model_->engine(), SessionOptionsOf(request, *setup, seed, space_));
  if (!session.ok()) return session.status();
  if (absl::Status s = (*session)->Append(setup->prompts[0]); !s.ok()) return s;
  if (absl::Status s = Read(session->get()); !s.ok()) return s;
  hold_.Put(model_, seed, *std::move(session));
  return absl::OkStatus();
}

absl::Status PromptJob::Append(const PlainPrompt& prompt) {
  const auto tokens = model_->EncodePlain(prompt, /*begins=*/false);
  if (!tokens.ok()) return WithParam(tokens.status(), "prompt");
  Session& session = *hold_.session();
  Session::Place before = session.Here();
  bool whole = false;
  const absl::Cleanup settle = [&] {
    if (!whole) session.GoBack(std::move(before));
  };
  if (absl::Status s = session.Append(*tokens); !s.ok()) return WithParam(s, "prompt");
  if (absl::Status s = Read(&session); !s.ok()) return s;
  whole = true;
  return absl::OkStatus();
}

absl::Status PromptJob::Read(Session* session) {
  const absl::Cleanup end = [this] { running_.End(); };
  running_.Begin({session});
  if (absl::Status s = Interruption(); !s.ok()) return s;
  GenerateOptions options;
  options.max_tokens = 0;
  options.on_prompt = [this](int64_t, int64_t) {
    if (!Interruption().ok()) OnCancel();
  };
  Generation read;
  const absl::Status status = Generate(session, options, &read);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  if (!status.ok()) return status;
  read_tokens_ = read.prompt_tokens;
  cached_tokens_ = read.cached_tokens;
  return absl::OkStatus();
}

void PromptJob::Finish(const absl::Status& status) {
  metrics_->Prompt(read_tokens_, cached_tokens_);
  reply().Note("prompt_tokens", read_tokens_);
  reply().Note("cached_tokens", cached_tokens_);
  const SessionCard card = hold_.Card();
  hold_.Release();
  if (!status.ok()) return reply().Error(status);
  reply().Json(SessionBody(card));
}

}  // namespace trine::server
