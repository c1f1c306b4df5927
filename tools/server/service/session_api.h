// The endpoints of /v1/sessions, each a function of a request (docs/server.md, "Sessions").
#ifndef TRINE_TOOLS_SERVER_SERVICE_SESSION_API_H_
#define TRINE_TOOLS_SERVER_SERVICE_SESSION_API_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/server/service/access.h"
#include "tools/server/service/api.h"
#include "tools/server/service/generation_job.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/prompt_job.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

class SessionApi {
 public:
  // All of them outlive it.
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
  // The session that a request's path names.
  absl::StatusOr<SessionShelf::Hold> Take(const Api::Call& call) const;
  std::string OwnerOf(const Api::Call& call) const;
  // What holds a session, which ends when that is closed.
  void HandIn(const std::string& id, const std::shared_ptr<Job>& job, Exchange* exchange);
  void Read(PromptJob::What what, SessionShelf::Hold hold, Api::Call call);

  const Access* const access_;
  JobDesk* const desk_;
  Metrics* const metrics_;
  SessionShelf* const shelf_;
  const GenerationJob::Limits limits_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_SESSION_API_H_
