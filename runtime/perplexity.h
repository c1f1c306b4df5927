// How well a model predicts a text: contexts one after the other, of each the second half scored,
// so that every scored token has at least half a context before it.
#ifndef TRINE_RUNTIME_PERPLEXITY_H_
#define TRINE_RUNTIME_PERPLEXITY_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/engine.h"

namespace trine {

struct PerplexityScore {
  double sum = 0;  // of -log p
  double squares = 0;
  int64_t count = 0;  // tokens scored

  double Perplexity() const;
  double Error() const;  // of the perplexity, from the deviation of the single tokens
};

// The first `contexts` contexts of the engine's size; `tokens` has that many. `on_context` is
// called after each with the score so far; false ends it with CANCELLED. Where the file asks for a
// BOS, it takes the place of each context's first token.
absl::StatusOr<PerplexityScore> MeasurePerplexity(
    Engine* engine, std::span<const int32_t> tokens, int64_t contexts,
    const std::function<bool(int64_t done, const PerplexityScore& score)>& on_context = nullptr);

}  // namespace trine

#endif  // TRINE_RUNTIME_PERPLEXITY_H_
