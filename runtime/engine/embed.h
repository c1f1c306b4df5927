// Turns texts into vectors. Needs an engine with EngineOptions::embeddings or hidden_rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/embedding/pooling.h"
#include "runtime/engine/engine.h"

namespace trine {

using TokenSpan = std::span<const int32_t>;

struct EmbedOptions {
  std::optional<Pooling> pooling;  // nullopt: DefaultPooling
  int32_t normalize = kNormalizeEuclidean;
  // Called on the calling thread with the number of texts done and the number of all texts. If it
  // returns false, Embed returns CANCELLED.
  std::function<bool(int64_t done, int64_t total)> on_progress;
  // Called between passes, on any thread. If it returns false, Embed returns CANCELLED.
  std::function<bool()> wanted;
};

// Returns the pooling that the file names (ARCH.pooling_type), or kLast if it names none: attention
// is causal in these models, so only the last token has seen the whole text. Returns UNIMPLEMENTED
// for the file of a reranking model.
absl::StatusOr<Pooling> DefaultPooling(const Engine& engine);

// Returns INVALID_ARGUMENT if a text is empty or has a token outside the vocabulary, OUT_OF_RANGE
// if a text is longer than the context, and FAILED_PRECONDITION if the engine can only generate.
absl::Status CheckTexts(const Engine& engine, std::span<const TokenSpan> texts);

// Returns one vector of n_embd values for each text; with Pooling::kNone, n_embd values for each of
// its tokens. Texts share passes, also with texts of concurrent calls, but a text's vector does not
// depend on other texts. All texts are checked before any is computed. On an engine that also
// generates, a call takes no more of the KV cache than one sequence.
absl::StatusOr<std::vector<std::vector<float>>> Embed(Engine* engine,
                                                      std::span<const TokenSpan> texts,
                                                      const EmbedOptions& options = {});

}  // namespace trine
