#include "runtime/engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "runtime/sampling/sampler.h"

namespace trine {

double PerplexityScore::Perplexity() const { return std::exp(sum / static_cast<double>(count)); }

double PerplexityScore::Error() const {
  if (count < 2) return 0;
  const double mean = sum / static_cast<double>(count);
  const double variance = squares / static_cast<double>(count) - mean * mean;
  return std::sqrt(std::max(0.0, variance) / static_cast<double>(count - 1)) * Perplexity();
}

absl::StatusOr<PerplexityScore> MeasurePerplexity(
    Engine* engine, std::span<const int32_t> tokens, int64_t contexts,
    const std::function<bool(int64_t, const PerplexityScore&)>& on_context) {
  if (engine->embeddings()) {
    return absl::FailedPreconditionError("the engine was opened for embeddings: it has no logits");
  }
  engine->BeginRequest();
  const int64_t width = engine->context();
  const Tokenizer& tokenizer = *engine->tokenizer();
  PerplexityScore score;
  for (int64_t c = 0; c < contexts; ++c) {
    const auto part = tokens.subspan(static_cast<size_t>(c * width), static_cast<size_t>(width));
    std::vector<int32_t> context(part.begin(), part.end());
    if (tokenizer.adds_bos() && tokenizer.bos() != kNoToken) context[0] = tokenizer.bos();
    const std::unique_ptr<Sequence> sequence = engine->NewSequence();
    const auto observe = [&](int64_t position, std::span<const float> row) {
      if (position + 1 >= width) return;
      const int32_t next = context[static_cast<size_t>(position) + 1];
      const double loss = -LogSoftmax(row).Of(row[static_cast<size_t>(next)]);
      score.sum += loss;
      score.squares += loss * loss;
      ++score.count;
    };
    sequence->set_row_observer(observe, width / 2);
    if (absl::Status s = sequence->Append(context); !s.ok()) return s;
    Sequence* const sequences[] = {sequence.get()};
    if (absl::Status s = engine->Evaluate(sequences); !s.ok()) return s;
    if (on_context && !on_context(c + 1, score)) {
      return absl::CancelledError("the measurement was cancelled");
    }
  }
  return score;
}

}  // namespace trine
