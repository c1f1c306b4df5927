// A prompt that is read into a session: a new one, or one that is there. Whole, or not at all.
#ifndef TRINE_TOOLS_SERVER_SERVICE_PROMPT_JOB_H_
#define TRINE_TOOLS_SERVER_SERVICE_PROMPT_JOB_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/openai/generation_request.h"
#include "tools/server/service/generation_setup.h"
#include "tools/server/service/job.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/running_sessions.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

class PromptJob final : public Job {
 public:
  // What a new session is made of, or what goes behind one's text.
  using What = std::variant<GenerationRequest, PlainPrompt>;

  // `space`: who may share what it has read.
  PromptJob(std::shared_ptr<const ServedModel> model, What what, std::string space,
            SessionShelf::Hold hold, std::chrono::seconds time, std::unique_ptr<Reply> reply,
            Metrics* metrics);

 private:
  bool prepares() const override;
  void Prepare() override { early_->Prepare(); }
  absl::StatusOr<bool> Work() override;
  void Finish(const absl::Status& status) override;
  void OnCancel() override { running_.Cancel(); }

  absl::Status Begin();
  absl::Status Append(const PlainPrompt& prompt);
  absl::Status Read(Session* session);

  const std::shared_ptr<const ServedModel> model_;
  const What what_;
  const std::string space_;
  Metrics* const metrics_;
  std::optional<EarlySetup> early_;  // of a new session
  SessionShelf::Hold hold_;
  int64_t read_tokens_ = 0, cached_tokens_ = 0;
  RunningSessions running_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_PROMPT_JOB_H_
