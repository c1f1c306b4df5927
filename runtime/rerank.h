// Reranking while text is generated: before each token its likeliest candidates are read, all in
// one batch, as forks of the sequence; a head says how good the text is with each of them, and the
// sampler chooses from logits that know of it (docs/branching.md, "Reranking tokens"). The fork
// that has read the chosen token is what the sequence goes on with.
#ifndef TRINE_RUNTIME_RERANK_H_
#define TRINE_RUNTIME_RERANK_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine.h"
#include "runtime/head/token_reranker.h"
#include "runtime/head/value_head.h"
#include "runtime/sampling/sampler_options.h"
#include "runtime/sequence.h"

namespace trine {

// By which head, and how. Immutable; any number of generations at once. The engine outlives it.
class Rerank {
 public:
  // FAILED_PRECONDITION for a head of another model, and for an engine that gives no rows of the
  // hidden state (EngineOptions::hidden_rows) or whose cache has no room for as many forks as there
  // are candidates (EngineOptions::branches).
  static absl::StatusOr<std::shared_ptr<const Rerank>> Create(const Engine& engine, Head head,
                                                              const RerankOptions& options);
  // The same for a head that is known to be the engine's.
  static absl::StatusOr<std::shared_ptr<const Rerank>> Create(const Engine& engine, ValueHead head,
                                                              const RerankOptions& options);

  const Engine& engine() const { return engine_; }
  const ValueHead& head() const { return head_; }
  const RerankOptions& options() const { return options_; }

 private:
  Rerank(const Engine& engine, ValueHead head, const RerankOptions& options)
      : engine_(engine), head_(std::move(head)), options_(options) {}

  const Engine& engine_;
  const ValueHead head_;
  const RerankOptions options_;
};

// The candidates of one sequence, token after token: Begin, EvaluateCandidates, a token is sampled
// from logits() and appended, GoOn. One thread at a time; the sequence outlives it.
class RerankStep {
 public:
  RerankStep(std::shared_ptr<const Rerank> rerank, Sequence* sequence);

  // Forks the sequence, whose logits are there, for each of its likeliest tokens: of those that are
  // allowed, with the biases that the sampler is going to add.
  absl::Status Begin(std::span<const uint32_t> allowed, std::span<const LogitBias> biases);
  // To sample from; empty where there was nothing to choose from.
  std::span<const float> logits() const;
  // Where the token that has been appended is one of the candidates, the sequence has read it now.
  // Lets go of the forks.
  void GoOn();

  size_t candidates() const { return candidates_.size(); }

 private:
  friend absl::Status EvaluateCandidates(Engine* engine, std::span<RerankStep* const> steps);
  absl::Status ForkAll();
  absl::Status Weigh();

  std::shared_ptr<const Rerank> rerank_;
  Sequence* sequence_;
  TokenReranker reranker_;
  std::vector<int32_t> candidates_;
  std::vector<std::unique_ptr<Sequence>> forks_;  // of each candidate
  std::vector<double> log_odds_;
  std::vector<float> row_;
  bool weighed_ = false;
};

// Reads the candidates of all of these, of one engine, together, and weighs them. A sequence that
// is cancelled meanwhile has no logits to sample from then; that is no error.
absl::Status EvaluateCandidates(Engine* engine, std::span<RerankStep* const> steps);

}  // namespace trine

#endif  // TRINE_RUNTIME_RERANK_H_
