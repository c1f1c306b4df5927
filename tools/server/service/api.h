// The API's endpoints, each a function of a request: what needs a model that is loaded.
#ifndef TRINE_TOOLS_SERVER_SERVICE_API_H_
#define TRINE_TOOLS_SERVER_SERVICE_API_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/server/service/access.h"
#include "tools/server/service/generation_job.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reply.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

// One model's description is at this and its name.
inline constexpr std::string_view kModelPath = "/v1/models/";

class Api {
 public:
  struct Call {
    std::shared_ptr<const ServedModel> model;
    std::unique_ptr<Reply> reply;
  };

  // All of them outlive it.
  Api(const Access* access, JobDesk* desk, Metrics* metrics, const GenerationJob::Limits& limits)
      : access_(access), desk_(desk), metrics_(metrics), limits_(limits) {}

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

 private:
  void Generate(Endpoint endpoint, absl::StatusOr<GenerationRequest> request, Call call);

  const Access* const access_;
  JobDesk* const desk_;
  Metrics* const metrics_;
  const GenerationJob::Limits limits_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_API_H_
