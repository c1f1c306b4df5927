// The endpoints of /v1/sessions.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/engine/generate.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/requests/plain_requests.h"
#include "tools/server/service/api.h"
#include "tools/server/service/generation_setup.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {
namespace {

// Reads a prompt into a session, a new one or one that exists. Reads it whole or leaves the session
// as it was.
class PromptJob final : public Job {
 public:
  // `space`: requests of the same space share blocks of the KV cache and constraints.
  PromptJob(std::shared_ptr<const ServedModel> model, SessionPrompt what, std::string space,
            SessionShelf::Hold hold, std::chrono::seconds time, std::unique_ptr<Reply> reply,
            Metrics* metrics)
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

 private:
  bool prepares() const override { return early_ && model_->engine().prefetches(); }
  void Prepare() override { early_->Prepare(); }
  absl::Status Work(const AddParts&) override {
    return early_ ? Begin() : Append(std::get<PlainPrompt>(what_));
  }

  void Finish(const absl::Status& status) override {
    metrics_->Prompt(read_tokens_, cached_tokens_);
    reply().Note("prompt_tokens", read_tokens_);
    reply().Note("cached_tokens", cached_tokens_);
    const SessionCard card = hold_.Card();
    hold_.Release();
    if (!status.ok()) return reply().Error(status);
    reply().Json(SessionBody(card));
  }

  void OnCancel() override { running_.Cancel(); }

  absl::Status Begin() {
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

  absl::Status Append(const PlainPrompt& prompt) {
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

  absl::Status Read(Session* session) {
    const absl::Cleanup end = [this, session] { running_.End(session); };
    running_.Begin(session);
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

  const std::shared_ptr<const ServedModel> model_;
  const SessionPrompt what_;
  const std::string space_;
  Metrics* const metrics_;
  std::optional<EarlySetup> early_;  // set for a new session
  SessionShelf::Hold hold_;
  int64_t read_tokens_ = 0, cached_tokens_ = 0;
  RunningSessions running_;
};

// A checkpoint may keep a row of logits, which is as long as the vocabulary.
constexpr size_t kMostCheckpoints = 64;

// Returns the path's part with that number. In /v1/sessions/ID/checkpoints/T, part 3 is ID and part
// 5 is T.
std::string Part(const Api::Call& call, size_t number) {
  const std::vector<std::string> parts = absl::StrSplit(call.reply->request().path, '/');
  return number < parts.size() ? parts[number] : "";
}

std::string IdOf(const Api::Call& call) { return Part(call, 3); }

// Turns NOT_FOUND into the API's error for an unknown checkpoint.
absl::Status NoCheckpoint(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return WithParam(HttpError(404, std::string(status.message()), "checkpoint_not_found"), "t");
}

}  // namespace

absl::StatusOr<SessionShelf::Hold> Api::Take(const Call& call) const {
  return shelf_->Take(OwnerOf(call), IdOf(call));
}

void Api::ListSessions(Call call) { call.reply->Json(SessionsBody(shelf_->List(OwnerOf(call)))); }

void Api::GetSession(Call call) {
  const std::string text = call.reply->request().QueryValue("text").value_or("false");
  if (text != "true" && text != "false") {
    return call.reply->Error(ParamError("text", "true or false is expected"));
  }
  if (text == "false") {
    const auto card = shelf_->Look(OwnerOf(call), IdOf(call));
    return card.ok() ? call.reply->Json(SessionBody(*card)) : call.reply->Error(card.status());
  }
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  SessionCard card = hold->Card();
  card.token_ids = hold->session()->sequence().tokens();
  hold->Release();
  Detokenizer detokenizer(call.model->engine().tokenizer(), {.special = SpecialText::kShow});
  card.text.emplace();
  for (const int32_t token : card.token_ids) detokenizer.Push(token, &*card.text);
  *card.text += detokenizer.Flush();
  call.reply->Json(SessionBody(card));
}

void Api::DeleteSession(Call call) {
  if (absl::Status s = shelf_->Close(OwnerOf(call), IdOf(call)); !s.ok()) {
    return call.reply->Error(s);
  }
  call.reply->Json(DeletedBody(IdOf(call), "session"));
}

void Api::PostSession(Call call) {
  auto request = ParseSessionRequest(call.reply->request().body, call.model->defaults());
  if (!request.ok()) return call.reply->Error(request.status());
  auto holds = shelf_->Open(OwnerOf(call), 1);
  if (!holds.ok()) return call.reply->Error(holds.status());
  Read(*std::move(request), std::move((*holds)[0]), std::move(call));
}

void Api::PostAppend(Call call) {
  auto prompt = ParseAppendRequest(call.reply->request().body, call.model->defaults());
  if (!prompt.ok()) return call.reply->Error(prompt.status());
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  Read(*std::move(prompt), *std::move(hold), std::move(call));
}

void Api::Read(SessionPrompt what, SessionShelf::Hold hold, Call call) {
  const std::string id = hold.id();
  HandIn(id, std::make_shared<PromptJob>(std::move(call.model), std::move(what), OwnerOf(call),
                                         std::move(hold), request_time_, std::move(call.reply),
                                         metrics_));
}

void Api::HandIn(const std::string& id, const std::shared_ptr<Job>& job) {
  shelf_->OnClose(id, [desk = desk_, weak = std::weak_ptr<Job>(job)] {
    desk->LetGo(weak, HttpError(409, "the session was closed meanwhile", "session_closed"));
  });
  desk_->Take(access_->ClientOf(job->exchange().request()), job);
}

void Api::PostGenerate(Call call) {
  auto request = ParseContinueRequest(call.reply->request().body);
  if (!request.ok()) return call.reply->Error(request.status());
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  const std::string id = hold->id();
  HandIn(id, std::make_shared<GenerationJob>(std::move(call.model), *std::move(request),
                                             *std::move(hold), request_time_, std::move(call.reply),
                                             metrics_));
}

void Api::PostCheckpoint(Call call) {
  if (absl::Status s = ParseCheckpointRequest(call.reply->request().body); !s.ok()) {
    return call.reply->Error(s);
  }
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  if (hold->session()->checkpoints() >= kMostCheckpoints) {
    hold->Release();
    return call.reply->Error(
        ParamError("",
                   absl::StrCat("the session has ", kMostCheckpoints,
                                " checkpoints, and may have no more: forget some"),
                   "too_many_checkpoints"));
  }
  const auto t = hold->session()->Checkpoint();
  const int64_t tokens = hold->session()->sequence().size();
  hold->Release();
  if (!t.ok()) return call.reply->Error(t.status());
  shelf_->CountCheckpoint();
  call.reply->Json(CheckpointBody(*t, tokens));
}

void Api::PostRegress(Call call) {
  const auto t = ParseRegressRequest(call.reply->request().body);
  if (!t.ok()) return call.reply->Error(t.status());
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  const absl::Status status = hold->session()->Regress(*t);
  const SessionCard card = hold->Card();
  hold->Release();
  if (!status.ok()) return call.reply->Error(NoCheckpoint(status));
  call.reply->Json(SessionBody(card));
}

void Api::DeleteCheckpoint(Call call) {
  int64_t t = 0;
  if (!absl::SimpleAtoi(Part(call, 5), &t) || t < 0) {
    return call.reply->Error(ParamError("t", "a checkpoint is a whole number, 0 or more"));
  }
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  const absl::Status status = hold->session()->Forget(t);
  const std::string name = absl::StrCat(hold->id(), "/checkpoints/", t);
  hold->Release();
  if (!status.ok()) return call.reply->Error(NoCheckpoint(status));
  call.reply->Json(DeletedBody(name, "session.checkpoint"));
}

void Api::PostFork(Call call) {
  auto request = ParseForkRequest(call.reply->request().body, call.model->defaults());
  if (!request.ok()) return call.reply->Error(request.status());
  if (request->any_seed) request->seed = DrawSeed();
  auto origin = Take(call);
  if (!origin.ok()) return call.reply->Error(origin.status());
  const auto n = static_cast<size_t>(request->n);
  auto holds = shelf_->Open(OwnerOf(call), n);
  absl::Status status = holds.status();
  std::vector<std::unique_ptr<Session>> forks;
  while (status.ok() && forks.size() < n) {
    std::optional<uint64_t> seed = request->seed;
    if (seed) *seed += forks.size();
    auto fork = origin->session()->Fork(seed);
    status = fork.status();
    if (fork.ok()) forks.push_back(*std::move(fork));
  }
  const uint64_t own_seed = origin->seed();
  origin->Release();
  if (!status.ok()) return call.reply->Error(status);
  std::vector<SessionCard> cards;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t seed = request->seed ? *request->seed + i : own_seed;
    (*holds)[i].Put(call.model, seed, std::move(forks[i]));
    cards.push_back((*holds)[i].Card());
  }
  shelf_->CountForks(n);
  holds->clear();
  call.reply->Json(SessionsBody(cards));
}

}  // namespace trine::server
