// A request for embeddings, on a thread of the queue's, in the place of one sequence.
#ifndef TRINE_TOOLS_SERVER_SERVICE_EMBEDDING_JOB_H_
#define TRINE_TOOLS_SERVER_SERVICE_EMBEDDING_JOB_H_

#include <atomic>
#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "tools/server/openai/embedding_request.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reply.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

class EmbeddingJob {
 public:
  EmbeddingJob(std::shared_ptr<const ServedModel> model, EmbeddingRequest request,
               std::chrono::seconds time, std::unique_ptr<Reply> reply, Metrics* metrics);

  // Answers, whatever happens.
  void Run();
  void Refuse(const absl::Status& status) noexcept;
  // From any thread: it ends soon.
  void Cancel() { cancelled_ = true; }

 private:
  absl::Status Answer();
  absl::Status Interruption() const;

  const std::shared_ptr<const ServedModel> model_;
  const EmbeddingRequest request_;
  const std::chrono::seconds time_;
  const std::unique_ptr<Reply> reply_;
  Metrics* const metrics_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_EMBEDDING_JOB_H_
