#include "runtime/engine/rerank.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// Evaluates the sequences that `pick` names for each step. Leaves out sequences that are cancelled
// in the meantime.
absl::Status EvaluateOf(Engine* engine, std::span<RerankStep* const> steps,
                        const std::function<void(RerankStep*, std::vector<Sequence*>*)>& pick) {
  std::vector<Sequence*> sequences;
  const auto is_cancelled = [](const Sequence* s) { return s->cancelled(); };
  while (true) {
    sequences.clear();
    for (RerankStep* step : steps) pick(step, &sequences);
    std::erase_if(sequences, is_cancelled);
    absl::Status status = engine->Evaluate(sequences);
    // No pass may hold tokens of these, or wait for their owner to come back.
    engine->Drain(sequences);
    if (!absl::IsCancelled(status)) return status;
    if (std::none_of(sequences.begin(), sequences.end(), is_cancelled)) return status;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Rerank>> Rerank::Create(const Engine& engine, Head head,
                                                             const RerankOptions& options) {
  auto value = ValueHead::Create(IdentityOf(engine.file(), engine.config()), std::move(head));
  if (!value.ok()) return value.status();
  return Create(engine, *std::move(value), options);
}

absl::StatusOr<std::shared_ptr<const Rerank>> Rerank::Create(const Engine& engine, ValueHead head,
                                                             const RerankOptions& options) {
  if (absl::Status s = CheckRerankOptions(options); !s.ok()) return s;
  const SegmentLimits& limits = engine.limits();
  if (!limits.hidden_rows) {
    return absl::FailedPreconditionError(
        "the engine was opened without rows of the hidden state, which a head looks at");
  }
  if (limits.branches < options.top) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no room to read ", options.top,
                     " candidates for a token beside a full context: the engine has it for ",
                     limits.branches, " branches"));
  }
  return std::shared_ptr<const Rerank>(new Rerank(engine, std::move(head), options));
}

RerankStep::RerankStep(std::shared_ptr<const Rerank> rerank, Sequence* sequence)
    : rerank_(std::move(rerank)),
      sequence_(sequence),
      // Rerank::Create has checked the options
      reranker_(*TokenReranker::Create(rerank_->options())) {}

absl::Status RerankStep::Begin(std::span<const uint32_t> allowed,
                               std::span<const LogitBias> biases) {
  forks_.clear();
  weighed_ = false;
  const std::span<const float> logits = sequence_->logits();
  row_.assign(logits.begin(), logits.end());
  for (const LogitBias& entry : biases) row_[static_cast<size_t>(entry.token)] += entry.bias;
  const std::span<const int32_t> candidates = reranker_.Candidates(row_, allowed);
  candidates_.assign(candidates.begin(), candidates.end());
  // The sampler adds the biases itself.
  for (const LogitBias& entry : biases) {
    const auto token = static_cast<size_t>(entry.token);
    row_[token] = logits[token];
  }
  return ForkAll();
}

absl::Status RerankStep::ForkAll() {
  forks_.clear();
  for (const int32_t candidate : candidates_) {
    std::unique_ptr<Sequence> fork = sequence_->Fork();
    // Blocks of candidates that are not chosen are of no use to other sequences.
    fork->leave_prefix_space();
    fork->set_cancelled_with(*sequence_);
    fork->set_keeps_hidden(true);
    if (absl::Status s = fork->Append(std::span(&candidate, 1)); !s.ok()) return s;
    forks_.push_back(std::move(fork));
  }
  return absl::OkStatus();
}

absl::Status RerankStep::Weigh() {
  log_odds_.clear();
  for (const auto& fork : forks_) log_odds_.push_back(rerank_->head().LogOdds(fork->hidden_row()));
  // Ratings of a branch head are relative: without this the limit could make all of them equal.
  if (rerank_->head().head().kind == HeadKind::kBranch && !log_odds_.empty()) {
    const double best = *std::max_element(log_odds_.begin(), log_odds_.end());
    for (double& x : log_odds_) x -= best;
  }
  if (absl::Status s = reranker_.Apply(candidates_, log_odds_, row_); !s.ok()) return s;
  weighed_ = !candidates_.empty();
  return absl::OkStatus();
}

std::span<const float> RerankStep::logits() const {
  return weighed_ ? std::span<const float>(row_) : std::span<const float>();
}

void RerankStep::GoOn() {
  for (size_t k = 0; k < forks_.size(); ++k) {
    const bool chosen = sequence_->pending() == 1 && forks_[k]->pending() == 0 &&
                        sequence_->size() == forks_[k]->size() &&
                        sequence_->tokens().back() == candidates_[k];
    if (chosen) sequence_->TakeOver(forks_[k].get());
  }
  forks_.clear();
  weighed_ = false;
}

absl::Status EvaluateCandidates(Engine* engine, std::span<RerankStep* const> steps) {
  const auto sequence_of = [](RerankStep* step, std::vector<Sequence*>* sequences) {
    sequences->push_back(step->sequence_);
  };
  const auto forks_of = [](RerankStep* step, std::vector<Sequence*>* sequences) {
    for (const auto& fork : step->forks_) sequences->push_back(fork.get());
  };
  std::vector<Sequence*> sequences;
  for (RerankStep* step : steps) sequence_of(step, &sequences);
  engine->Drain(sequences);  // passes must not wait for them, but take their forks
  absl::Status status = EvaluateOf(engine, steps, forks_of);
  if (absl::IsResourceExhausted(status)) {
    // After the loss of a device every fork would replay its text in blocks of its own. There is
    // room for the sequences alone: they replay first, and are forked again.
    for (RerankStep* step : steps) {
      step->forks_.clear();
      step->sequence_->ReadLastAgain();
    }
    if (absl::Status s = EvaluateOf(engine, steps, sequence_of); !s.ok()) return s;
    for (RerankStep* step : steps) {
      if (step->sequence_->cancelled()) continue;
      if (absl::Status s = step->ForkAll(); !s.ok()) return s;
    }
    status = EvaluateOf(engine, steps, forks_of);
  }
  if (!status.ok()) return status;
  for (RerankStep* step : steps) {
    if (step->sequence_->cancelled()) continue;
    if (absl::Status s = step->Weigh(); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace trine
