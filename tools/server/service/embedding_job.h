// A request for embeddings, on a thread of the queue's, in the place of one sequence.
#ifndef TRINE_TOOLS_SERVER_SERVICE_EMBEDDING_JOB_H_
#define TRINE_TOOLS_SERVER_SERVICE_EMBEDDING_JOB_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/openai/embedding_request.h"
#include "tools/server/service/job.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

class EmbeddingJob final : public Job {
 public:
  EmbeddingJob(std::shared_ptr<const ServedModel> model, EmbeddingRequest request,
               std::chrono::seconds time, std::unique_ptr<Reply> reply, Metrics* metrics);

 private:
  absl::StatusOr<bool> Work() override;
  void Finish(const absl::Status& status) override;

  const std::shared_ptr<const ServedModel> model_;
  const EmbeddingRequest request_;
  Metrics* const metrics_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_EMBEDDING_JOB_H_
