// A request that generates, from its prompt to its last byte: on a thread of the queue's, with as
// many sequences at once as it has places.
#ifndef TRINE_TOOLS_SERVER_SERVICE_GENERATION_JOB_H_
#define TRINE_TOOLS_SERVER_SERVICE_GENERATION_JOB_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/generate.h"
#include "runtime/session.h"
#include "tools/server/openai/answer_writer.h"
#include "tools/server/openai/generation_request.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reply.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

enum class Endpoint { kChat, kCompletion, kResponses };

class GenerationJob {
 public:
  struct Limits {
    int64_t places = 1;              // sequences at once
    std::chrono::seconds time{600};  // from the request's arrival to its answer's end
  };

  // `space`: who may share what it has read.
  GenerationJob(std::shared_ptr<const ServedModel> model, Endpoint endpoint,
                GenerationRequest request, std::string space, const Limits& limits,
                std::unique_ptr<Reply> reply, Metrics* metrics);

  int64_t places() const;

  // A part of the answer, of as many choices as there are places. True: there is more to do, in
  // another run. Answers, whatever happens.
  bool Run(std::chrono::nanoseconds waited);
  // In place of a run.
  void Refuse(const absl::Status& status) noexcept;
  // From any thread: it ends soon.
  void Cancel();

 private:
  // One of the answer's choices.
  struct Choice {
    size_t prompt = 0;
    uint64_t seed_offset = 0;
    std::vector<TokenInfo> tokens;  // whose text is still to be told
    int64_t n_tokens = 0;
  };

  absl::Status Prepare();
  absl::Status ReadPrompts();
  absl::Status CheckPrompt(size_t index) const;
  absl::Status BeginAnswer();
  absl::Status RunGroup(size_t begin, size_t end);
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const Choice& choice) const;
  GenerateOptions OptionsFor(size_t choice);
  bool OnToken(size_t choice, const SampleResult& token);
  bool OnText(size_t choice, std::string_view text);
  absl::Status EndChoice(size_t choice, const Generation& result);
  void Echo(size_t choice);
  bool Send();
  bool GoesOn();
  absl::Status Interruption();  // why it does not go on
  void Finish(const absl::Status& status);
  void Count();
  bool logprobs() const { return request_.top_logprobs >= 0; }
  const char* prompt_param() const;

  const std::shared_ptr<const ServedModel> model_;
  const Endpoint endpoint_;
  const GenerationRequest request_;
  const std::string space_;
  const Limits limits_;
  const std::unique_ptr<Reply> reply_;
  Metrics* const metrics_;

  std::chrono::nanoseconds waited_{};
  size_t next_choice_ = 0;
  uint64_t seed_ = 0;
  std::shared_ptr<const Constraint> constraint_;
  bool show_special_ = false;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<Choice> choices_;
  std::unique_ptr<AnswerWriter> writer_;
  Frames frames_;
  Usage usage_;
  Reply::Clock::time_point first_token_{}, last_token_{};

  std::mutex mutex_;
  bool cancelled_ = false;  // guarded by mutex_, as is what follows
  std::vector<Session*> running_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_GENERATION_JOB_H_
