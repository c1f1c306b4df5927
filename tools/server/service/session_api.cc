#include "tools/server/service/session_api.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/session_request.h"
#include "tools/server/service/generation_setup.h"

namespace trine::server {
namespace {

// Each may keep a row of logits, which is as long as the vocabulary.
constexpr size_t kMostCheckpoints = 64;

// /v1/sessions/ID/checkpoints/T: of the path's parts, the one with that number.
std::string Part(const Api::Call& call, size_t number) {
  const std::vector<std::string> parts = absl::StrSplit(call.reply->request().path, '/');
  return number < parts.size() ? parts[number] : "";
}

std::string IdOf(const Api::Call& call) { return Part(call, 3); }

// For a point that there is not.
absl::Status NoCheckpoint(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return WithParam(HttpError(404, std::string(status.message()), "checkpoint_not_found"), "t");
}

}  // namespace

std::string SessionApi::OwnerOf(const Api::Call& call) const {
  return access_->SpaceOf(call.reply->request());
}

absl::StatusOr<SessionShelf::Hold> SessionApi::Take(const Api::Call& call) const {
  return shelf_->Take(OwnerOf(call), IdOf(call));
}

void SessionApi::List(Api::Call call) {
  call.reply->Json(SessionsBody(shelf_->List(OwnerOf(call))));
}

void SessionApi::Get(Api::Call call) {
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

void SessionApi::Delete(Api::Call call) {
  if (absl::Status s = shelf_->Close(OwnerOf(call), IdOf(call)); !s.ok()) {
    return call.reply->Error(s);
  }
  call.reply->Json(DeletedBody(IdOf(call), "session"));
}

void SessionApi::Post(Api::Call call) {
  auto request = ParseSessionRequest(call.reply->request().body, call.model->defaults());
  if (!request.ok()) return call.reply->Error(request.status());
  auto holds = shelf_->Open(OwnerOf(call), 1);
  if (!holds.ok()) return call.reply->Error(holds.status());
  Read(*std::move(request), std::move((*holds)[0]), std::move(call));
}

void SessionApi::Append(Api::Call call) {
  auto prompt = ParseAppendRequest(call.reply->request().body, call.model->defaults());
  if (!prompt.ok()) return call.reply->Error(prompt.status());
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  Read(*std::move(prompt), *std::move(hold), std::move(call));
}

void SessionApi::Read(PromptJob::What what, SessionShelf::Hold hold, Api::Call call) {
  Exchange* const exchange = &call.reply->exchange();
  exchange->ForgetBody();
  const std::string id = hold.id();
  HandIn(id,
         std::make_shared<PromptJob>(std::move(call.model), std::move(what),
                                     access_->SpaceOf(exchange->request()), std::move(hold),
                                     limits_.time, std::move(call.reply), metrics_),
         exchange);
}

void SessionApi::HandIn(const std::string& id, const std::shared_ptr<Job>& job,
                        Exchange* exchange) {
  shelf_->OnClose(id, [desk = desk_, weak = std::weak_ptr<Job>(job)] {
    desk->LetGo(weak, HttpError(409, "the session was closed meanwhile", "session_closed"));
  });
  desk_->Take(access_->ClientOf(exchange->request()), job, exchange);
}

void SessionApi::Generate(Api::Call call) {
  auto request = ParseContinueRequest(call.reply->request().body);
  if (!request.ok()) return call.reply->Error(request.status());
  auto hold = Take(call);
  if (!hold.ok()) return call.reply->Error(hold.status());
  Exchange* const exchange = &call.reply->exchange();
  exchange->ForgetBody();
  const std::string id = hold->id();
  HandIn(
      id,
      std::make_shared<GenerationJob>(std::move(call.model), *std::move(request), *std::move(hold),
                                      limits_, std::move(call.reply), metrics_),
      exchange);
}

void SessionApi::Checkpoint(Api::Call call) {
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

void SessionApi::Regress(Api::Call call) {
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

void SessionApi::Forget(Api::Call call) {
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

void SessionApi::Fork(Api::Call call) {
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
