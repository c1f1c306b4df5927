// Texts as vectors. The engine was loaded for it (EngineOptions::embeddings or hidden_rows).
#ifndef TRINE_RUNTIME_EMBED_H_
#define TRINE_RUNTIME_EMBED_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/embedding/pooling.h"
#include "runtime/engine.h"

namespace trine {

using TokenSpan = std::span<const int32_t>;

struct EmbedOptions {
  std::optional<Pooling> pooling;  // absent: DefaultPooling
  int32_t normalize = kNormalizeEuclidean;
  // Texts done and in all, on the calling thread. False ends it: CANCELLED.
  std::function<bool(int64_t done, int64_t total)> on_progress;
  // Asked between passes, from any thread. False ends it likewise.
  std::function<bool()> wanted;
};

// What the file says (ARCH.pooling_type), or else kLast: the models here attend to what comes
// before alone, so the last token is the one that has seen the whole text. UNIMPLEMENTED for a
// reranker's file.
absl::StatusOr<Pooling> DefaultPooling(const Engine& engine);

// INVALID_ARGUMENT for a text that is empty or has a token outside the vocabulary, OUT_OF_RANGE for
// one longer than the context, FAILED_PRECONDITION for an engine that was loaded to generate alone.
absl::Status CheckTexts(const Engine& engine, std::span<const TokenSpan> texts);

// One vector per text, of n_embd values, or with Pooling::kNone of n_embd values for each of its
// tokens. Texts share passes, and so do calls of several threads; a text's vector does not depend
// on the company. All texts are checked before any is computed. On an engine that generates too, a
// call takes no more of the cache than one sequence.
absl::StatusOr<std::vector<std::vector<float>>> Embed(Engine* engine,
                                                      std::span<const TokenSpan> texts,
                                                      const EmbedOptions& options = {});

}  // namespace trine

#endif  // TRINE_RUNTIME_EMBED_H_
