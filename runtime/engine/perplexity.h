// Measures how well a model predicts a text, context by context. The second half of each context is
// scored, so that every scored token has at least half a context before it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"

namespace trine {

struct PerplexityScore {
  double sum = 0;      // the sum of -log p
  double squares = 0;  // the sum of (log p)^2
  int64_t count = 0;   // the number of scored tokens

  double Perplexity() const;
  double Error() const;  // the standard error, from the deviation of single tokens
};

// Divides `tokens` into contexts of the engine's size and scores the first `contexts` of them;
// `tokens` must be long enough. Calls `on_context` after each context with the score so far. If it
// returns false, returns CANCELLED. If the file asks for a BOS, a BOS replaces the first token of
// each context.
absl::StatusOr<PerplexityScore> MeasurePerplexity(
    Engine* engine, std::span<const int32_t> tokens, int64_t contexts,
    const std::function<bool(int64_t done, const PerplexityScore& score)>& on_context = nullptr);

}  // namespace trine
