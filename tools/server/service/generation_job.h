// A request that generates text, from its prompt to the last byte of its answer. Each choice of the
// answer is a part of the job, with a sequence and a place of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
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
  // Requests of the same space share blocks of the KV cache and constraints. `time` is the most
  // time from the request's arrival to its answer's end.
  GenerationJob(std::shared_ptr<const ServedModel> model, Endpoint endpoint,
                GenerationRequest request, std::string space, std::chrono::seconds time,
                std::unique_ptr<Reply> reply, Metrics* metrics);

  // Continues `session`, which is released before the answer ends.
  GenerationJob(std::shared_ptr<const ServedModel> model, GenerationRequest request,
                SessionShelf::Hold session, std::chrono::seconds time, std::unique_ptr<Reply> reply,
                Metrics* metrics);

  // Returns the number of prompts. The first choice of a prompt evaluates it and then adds the
  // other choices, which share its blocks.
  int64_t parts() const override;
  bool prepares() const override;
  void Prepare() override { early_.Prepare(); }

 private:
  struct Choice {
    size_t prompt = 0;
    uint64_t seed_offset = 0;
    std::vector<TokenInfo> tokens;  // tokens whose text has not been sent yet
    int64_t n_tokens = 0;
  };

  absl::Status Work(const AddParts& add) override;
  void Finish(const absl::Status& status) override;
  void OnCancel() override { running_.Cancel(); }

  // Takes the next choice that is ready to run. Begins the answer if this is the first one.
  absl::StatusOr<size_t> NextChoice();
  absl::Status BeginAnswer();
  // Runs a choice, which is the first of its prompt or one of the others.
  absl::Status RunChoice(size_t choice, Session* session, const AddParts& add);
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const Choice& choice);
  static bool IsFirstOfPrompt(const Choice& choice) { return choice.seed_offset == 0; }
  // Evaluates the prompt of a choice, before its first token is generated, and lets the other
  // choices of the prompt begin. Needed if there are others, or if the request wants its prompts
  // back with log-probabilities. Sets *cached to the number of tokens that were in the KV cache.
  absl::Status ReadPrompt(size_t choice, Session* session, const AddParts& add, int64_t* cached);
  void OnPromptRow(size_t prompt, int64_t position, std::span<const float> row);
  TokenInfo InfoOf(int32_t token, double logprob, std::span<const TokenLogprob> top) const;
  GenerateOptions OptionsFor(size_t choice);
  // The engine calls these two, so they lock mutex_.
  bool OnToken(size_t choice, const SampleResult& token);
  bool OnText(size_t choice, std::string_view text);
  // The callers of these three hold mutex_.
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
  Metrics* const metrics_;

  EarlySetup early_;
  std::mutex mutex_;  // guards what follows, because parts run at the same time
  uint64_t seed_ = 0;
  GenerationSetup setup_;
  std::vector<Choice> choices_;
  std::deque<size_t> ready_;  // choices that can begin
  // By prompt: its tokens with log-probabilities. Written by the prompt's first choice alone,
  // before the others begin.
  std::vector<std::vector<TokenInfo>> echoed_;
  Frames frames_;
  Usage usage_;
  Reply::Clock::time_point first_token_{}, last_token_{};

  SessionShelf::Hold held_;  // empty: each choice has its own session
  RunningSessions running_;
};

}  // namespace trine::server
