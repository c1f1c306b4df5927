// A request that generates text, from its prompt to the last byte of its answer. Runs on a thread
// of the job queue, with one sequence in each of its places.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/generate.h"
#include "runtime/engine/session.h"
#include "tools/server/service/generation_setup.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

class GenerationJob final : public Job {
 public:
  struct Limits {
    int64_t places = 1;              // the most places that a job takes
    std::chrono::seconds time{600};  // the most time from the request's arrival to its answer's end
  };

  // Requests of the same space share blocks of the KV cache and constraints.
  GenerationJob(std::shared_ptr<const ServedModel> model, Endpoint endpoint,
                GenerationRequest request, std::string space, const Limits& limits,
                std::unique_ptr<Reply> reply, Metrics* metrics);

  // Continues `session`, which is released before the answer ends.
  GenerationJob(std::shared_ptr<const ServedModel> model, GenerationRequest request,
                SessionShelf::Hold session, const Limits& limits, std::unique_ptr<Reply> reply,
                Metrics* metrics);

  // Returns the number of choices, but at most Limits::places. If there are more choices, each run
  // generates some of them.
  int64_t places() const override;
  bool prepares() const override;
  void Prepare() override { early_.Prepare(); }

 private:
  struct Choice {
    size_t prompt = 0;
    uint64_t seed_offset = 0;
    std::vector<TokenInfo> tokens;  // tokens whose text has not been sent yet
    int64_t n_tokens = 0;
  };

  absl::StatusOr<bool> Work() override;
  void Finish(const absl::Status& status) override;
  void OnCancel() override { running_.Cancel(); }

  absl::Status BeginAnswer();
  absl::Status RunGroup(size_t begin, size_t end);
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const Choice& choice);
  // Evaluates the prompts before the first token is generated. Needed if the request wants its
  // prompts back with log-probabilities.
  absl::Status ReadPrompts(std::span<Session* const> sessions,
                           std::span<const GenerateOptions> options);
  void OnPromptRow(size_t prompt, int64_t position, std::span<const float> row);
  TokenInfo InfoOf(int32_t token, double logprob, std::span<const TokenLogprob> top) const;
  GenerateOptions OptionsFor(size_t choice);
  bool OnToken(size_t choice, const SampleResult& token);
  bool OnText(size_t choice, std::string_view text);
  absl::Status EndChoice(size_t choice, const Generation& result);
  void Echo(size_t choice);
  bool Send();
  void Count();
  bool tells_prompts() const { return request_.echo && request_.top_logprobs >= 0; }
  Frames* frames() { return request_.stream ? &frames_ : nullptr; }

  const std::shared_ptr<const ServedModel> model_;
  const Endpoint endpoint_;
  const GenerationRequest request_;
  const std::string space_;
  const int64_t most_places_;
  Metrics* const metrics_;

  EarlySetup early_;
  uint64_t seed_ = 0;
  GenerationSetup setup_;
  std::vector<Choice> choices_;
  std::vector<std::vector<TokenInfo>> echoed_;  // by prompt: its tokens with log-probabilities
  size_t next_choice_ = 0;
  Frames frames_;
  Usage usage_;
  Reply::Clock::time_point first_token_{}, last_token_{};

  SessionShelf::Hold held_;  // empty: each choice has its own session
  RunningSessions running_;
};

}  // namespace trine::server
