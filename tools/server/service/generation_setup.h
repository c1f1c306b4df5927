// Prepares a request that generates: the tokens of its prompts, the constraint of its answer, and
// the answer's writer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/session.h"
#include "runtime/kv/block_prefetcher.h"
#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

enum class Endpoint { kChat, kCompletion, kResponses, kSession };

struct GenerationSetup {
  std::vector<std::vector<int32_t>> prompts = {};
  int64_t prompt_tokens = 0;  // the number of tokens of all prompts
  int64_t cached_tokens = 0;  // how many of them the session has evaluated already
  std::shared_ptr<const Constraint> constraint = nullptr;
  bool show_special = false;  // true: the writer needs the text of special tokens
  std::unique_ptr<AnswerWriter> writer = nullptr;
  // One entry for each prompt if the setup was made while the request waited, otherwise empty.
  // Brings kept blocks into memory before the prompt's first pass needs them. Null for a prompt
  // without kept blocks.
  std::vector<std::unique_ptr<BlockPrefetcher::Prefetch>> prefetches = {};
};

// Sets up a request for a new answer. Requests of the same space share constraints.
absl::StatusOr<GenerationSetup> SetUpGeneration(const ServedModel& model, Endpoint endpoint,
                                                const GenerationRequest& request,
                                                const std::string& space);

// Makes a setup early, while its request waits, or at the latest in Take. Thread-safe.
class EarlySetup {
 public:
  // The arguments are those of SetUpGeneration and must outlive the EarlySetup.
  EarlySetup(const ServedModel* model, Endpoint endpoint, const GenerationRequest* request,
             const std::string* space)
      : model_(model), endpoint_(endpoint), request_(request), space_(space) {}

  // Makes the setup and starts to bring kept blocks of its prompts into memory. Does nothing if the
  // setup has been made or taken already.
  void Prepare();
  // Returns the setup, and makes it if Prepare has not. May be called once.
  absl::StatusOr<GenerationSetup> Take();

 private:
  const ServedModel* const model_;
  const Endpoint endpoint_;
  const GenerationRequest* const request_;
  const std::string* const space_;
  std::mutex mutex_;
  bool taken_ = false;                                   // guarded by mutex_
  std::optional<absl::StatusOr<GenerationSetup>> made_;  // guarded by mutex_
};

// Sets up a request that continues `session`. Returns OUT_OF_RANGE if the session's context is
// full.
absl::StatusOr<GenerationSetup> SetUpContinuation(const ServedModel& model,
                                                  const GenerationRequest& request,
                                                  const Session& session);

SessionOptions SessionOptionsOf(const GenerationRequest& request, const GenerationSetup& setup,
                                uint64_t seed, const std::string& space);

// Draws a seed for a request that names none.
uint64_t DrawSeed();

}  // namespace trine::server
