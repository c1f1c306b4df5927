// Reranking during generation (docs/branching.md, "Reranking tokens"). Before each token, its
// likeliest candidates are evaluated in one batch, each in a fork of the sequence. A head rates the
// text with each of them, and the sampler chooses from logits that include the ratings. The
// sequence takes over the fork of the chosen token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/batch/sequence.h"
#include "runtime/engine/engine.h"
#include "runtime/head/head.h"
#include "runtime/head/token_reranker.h"
#include "runtime/sampling/sampler_options.h"

namespace trine {

// A head and how to use it. Immutable; any number of generations may use it at once. The engine
// must outlive it.
class Rerank {
 public:
  // Returns FAILED_PRECONDITION for a head of another model, and for an engine that gives no rows
  // of the hidden state (EngineOptions::hidden_rows) or has no room for a fork per candidate
  // (EngineOptions::branches).
  static absl::StatusOr<std::shared_ptr<const Rerank>> Create(const Engine& engine, Head head,
                                                              const RerankOptions& options);
  // Makes a Rerank from a head that has been checked against the engine's model already.
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

// The candidates for the next token of one sequence. For each token the caller calls Begin and
// EvaluateCandidates, samples from logits(), appends the token, and calls GoOn. For one thread at a
// time; the sequence must outlive it.
class RerankStep {
 public:
  RerankStep(std::shared_ptr<const Rerank> rerank, Sequence* sequence);

  // Forks the sequence once for each of the likeliest allowed tokens. Orders tokens by the
  // sequence's logits, plus the biases that the sampler is going to add. REQUIRES: the sequence has
  // logits.
  absl::Status Begin(std::span<const uint32_t> allowed, std::span<const LogitBias> biases);
  // Returns the logits to sample from, or an empty span if there are no candidates.
  std::span<const float> logits() const;
  // Takes over the fork of the appended token, if it was a candidate, so that it need not be
  // evaluated again. Destroys the forks.
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
  std::vector<std::unique_ptr<Sequence>> forks_;  // one per candidate
  std::vector<double> log_odds_;
  std::vector<float> row_;
  bool weighed_ = false;
};

// Evaluates the candidates of all steps together and rates them. The steps must be of one engine. A
// sequence that is cancelled in the meantime gets no logits to sample from; that is no error.
absl::Status EvaluateCandidates(Engine* engine, std::span<RerankStep* const> steps);

}  // namespace trine
