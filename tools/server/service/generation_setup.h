// What a request that generates needs before its first token: prompts in tokens, the constraint of
// its answer, and who writes that.
#ifndef TRINE_TOOLS_SERVER_SERVICE_GENERATION_SETUP_H_
#define TRINE_TOOLS_SERVER_SERVICE_GENERATION_SETUP_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/block_prefetcher.h"
#include "runtime/session.h"
#include "tools/server/openai/answer_writer.h"
#include "tools/server/openai/generation_request.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

enum class Endpoint { kChat, kCompletion, kResponses, kSession };

struct GenerationSetup {
  std::vector<std::vector<int32_t>> prompts = {};
  int64_t prompt_tokens = 0;  // of all of them
  int64_t cached_tokens = 0;  // of those, that a session has read already
  std::shared_ptr<const Constraint> constraint = nullptr;
  bool show_special = false;  // the writer reads special tokens
  std::unique_ptr<AnswerWriter> writer = nullptr;
  // Of the prompts, if it was made while the request waited: blocks that are there when their first
  // pass wants them. Null for those of which nothing is kept.
  std::vector<std::unique_ptr<BlockPrefetcher::Prefetch>> prefetches = {};
};

// `space`: who may share constraints.
absl::StatusOr<GenerationSetup> SetUpGeneration(const ServedModel& model, Endpoint endpoint,
                                                const GenerationRequest& request,
                                                const std::string& space);

// One that is made while its request waits, if somebody has the time for it; else when it is taken.
// Thread-safe.
class EarlySetup {
 public:
  // All of them outlive it, as for SetUpGeneration.
  EarlySetup(const ServedModel* model, Endpoint endpoint, const GenerationRequest* request,
             const std::string* space)
      : model_(model), endpoint_(endpoint), request_(request), space_(space) {}

  // Makes it, and lets what is kept of its prompts be brought into memory. Nothing, once it has
  // been taken.
  void Prepare();
  absl::StatusOr<GenerationSetup> Take();

 private:
  const ServedModel* const model_;
  const Endpoint endpoint_;
  const GenerationRequest* const request_;
  const std::string* const space_;
  std::mutex mutex_;
  bool taken_ = false;                                   // guarded by mutex_
  std::optional<absl::StatusOr<GenerationSetup>> made_;  // likewise
};

// The same for what goes on where a session stands. OUT_OF_RANGE where its context is full.
absl::StatusOr<GenerationSetup> SetUpContinuation(const ServedModel& model,
                                                  const GenerationRequest& request,
                                                  const Session& session);

SessionOptions SessionOptionsOf(const GenerationRequest& request, const GenerationSetup& setup,
                                uint64_t seed, const std::string& space);

// For a request that names none.
uint64_t DrawSeed();

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_GENERATION_SETUP_H_
