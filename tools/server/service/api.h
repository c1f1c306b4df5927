// The API's endpoints that need a loaded model. Each is a function of one request.
#pragma once

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

// The path of a model's description, without the model's name at its end.
inline constexpr std::string_view kModelPath = "/v1/models/";

class Api {
 public:
  struct Call {
    std::shared_ptr<const ServedModel> model;
    std::unique_ptr<Reply> reply;
  };

  // The arguments must outlive the Api.
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
