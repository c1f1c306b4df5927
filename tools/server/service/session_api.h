// The endpoints of /v1/sessions (docs/server.md, "Sessions"). Each is a function of one request.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/service/access.h"
#include "tools/server/service/api.h"
#include "tools/server/service/generation_job.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

// A request for a new session, or a text to append to a session.
using SessionPrompt = std::variant<GenerationRequest, PlainPrompt>;

class SessionApi {
 public:
  // The arguments must outlive the SessionApi.
  SessionApi(const Access* access, JobDesk* desk, Metrics* metrics, SessionShelf* shelf,
             const GenerationJob::Limits& limits)
      : access_(access), desk_(desk), metrics_(metrics), shelf_(shelf), limits_(limits) {}

  void List(Api::Call call);
  void Post(Api::Call call);
  void Get(Api::Call call);
  void Delete(Api::Call call);
  void Append(Api::Call call);
  void Generate(Api::Call call);
  void Checkpoint(Api::Call call);
  void Regress(Api::Call call);
  void Forget(Api::Call call);
  void Fork(Api::Call call);

 private:
  // Takes the session that the request's path names.
  absl::StatusOr<SessionShelf::Hold> Take(const Api::Call& call) const;
  std::string OwnerOf(const Api::Call& call) const;
  // Passes a job that holds session `id` to the desk. Closing the session ends the job.
  void HandIn(const std::string& id, const std::shared_ptr<Job>& job, Exchange* exchange);
  void Read(SessionPrompt what, SessionShelf::Hold hold, Api::Call call);

  const Access* const access_;
  JobDesk* const desk_;
  Metrics* const metrics_;
  SessionShelf* const shelf_;
  const GenerationJob::Limits limits_;
};

}  // namespace trine::server
