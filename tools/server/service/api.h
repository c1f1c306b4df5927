// The API's endpoints that need a loaded model. Each is a function of one request. Those of
// /v1/sessions (docs/server.md, "Sessions") are in session_api.cc.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/service/access.h"
#include "tools/server/service/generation_job.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reply.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

// The path of a model's description, without the model's name at its end.
inline constexpr std::string_view kModelPath = "/v1/models/";

// A request for a new session, or a text to append to a session.
using SessionPrompt = std::variant<GenerationRequest, PlainPrompt>;

class Api {
 public:
  struct Call {
    std::shared_ptr<const ServedModel> model;
    std::unique_ptr<Reply> reply;
  };

  // The arguments must outlive the Api.
  Api(const Access* access, JobDesk* desk, Metrics* metrics, SessionShelf* shelf,
      std::chrono::seconds request_time)
      : access_(access),
        desk_(desk),
        metrics_(metrics),
        shelf_(shelf),
        request_time_(request_time) {}

  void GetModels(Call call);
  void GetModel(Call call);
  void GetTrace(Call call);
  void GetPlan(Call call);
  void PostChat(Call call);
  void PostCompletion(Call call);
  void PostResponses(Call call);
  void PostEmbeddings(Call call);
  void PostTokenize(Call call);
  void PostDetokenize(Call call);

  void ListSessions(Call call);
  void PostSession(Call call);
  void GetSession(Call call);
  void DeleteSession(Call call);
  void PostAppend(Call call);
  void PostGenerate(Call call);
  void PostCheckpoint(Call call);
  void PostRegress(Call call);
  void DeleteCheckpoint(Call call);
  void PostFork(Call call);

 private:
  void Generate(Endpoint endpoint, absl::StatusOr<GenerationRequest> request, Call call);
  std::string OwnerOf(const Call& call) const { return access_->SpaceOf(call.reply->request()); }
  // Takes the session that the request's path names.
  absl::StatusOr<SessionShelf::Hold> Take(const Call& call) const;
  // Passes a job that holds session `id` to the desk. Closing the session ends the job.
  void HandIn(const std::string& id, const std::shared_ptr<Job>& job);
  void Read(SessionPrompt what, SessionShelf::Hold hold, Call call);

  const Access* const access_;
  JobDesk* const desk_;
  Metrics* const metrics_;
  SessionShelf* const shelf_;
  const std::chrono::seconds request_time_;
};

}  // namespace trine::server
