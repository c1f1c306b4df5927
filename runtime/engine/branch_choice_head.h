// Uses a head to choose among several texts, or among labels of a text. Needs an engine that gives
// rows of the hidden state (EngineOptions::embeddings or hidden_rows). The engine must outlive a
// BranchChoiceHead. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "runtime/head/head.h"
#include "runtime/head/head_data.h"

namespace trine {

// Returns the identity of the engine's model, which a head must match.
ModelIdentity IdentityOf(const Engine& engine);

// Returns the tokens of a text in this form: the tokens that the model evaluates.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Engine& engine, const std::string& text,
                                                  PromptForm form);

// Evaluates texts. Returns the last token's row of the hidden state, after the final norm, of each.
absl::StatusOr<std::vector<std::vector<float>>> ReadRows(Engine* engine,
                                                         std::span<const std::string> texts,
                                                         PromptForm form);

// Evaluates the texts of all examples and sets the examples' rows. Errors about a text name its
// line. `on_progress` gets the number of texts done and the number of all texts. If it returns
// false, ReadRows returns CANCELLED.
absl::Status ReadRows(Engine* engine, PromptForm form, HeadData* data,
                      const std::function<bool(int64_t, int64_t)>& on_progress = nullptr);

// A head together with the engine that evaluates texts for it.
class BranchChoiceHead {
 public:
  struct Choice {
    size_t best = 0;                    // index of the best label or branch
    std::vector<double> probabilities;  // the probability of each label or branch
  };

  // Returns FAILED_PRECONDITION for a head of another model.
  static absl::StatusOr<BranchChoiceHead> Create(Engine* engine, Head head);

  const Head& head() const { return head_; }

  // Chooses one of the head's two labels for a prompt. Returns FAILED_PRECONDITION if the head's
  // kind is not kLabel.
  absl::StatusOr<Choice> ChooseLabel(const std::string& prompt) const;
  // Chooses the best of two or more texts. Returns FAILED_PRECONDITION if the head's kind is not
  // kBranch.
  absl::StatusOr<Choice> ChooseBranch(std::span<const std::string> branches) const;

 private:
  BranchChoiceHead(Engine* engine, Head head) : engine_(engine), head_(std::move(head)) {}
  absl::StatusOr<Choice> Choose(HeadKind kind, std::span<const std::string> texts) const;

  Engine* engine_;
  Head head_;
};

// The time that a head takes, compared with the time that its model takes.
struct HeadCost {
  double token_ms = 0;  // milliseconds to decode one token after a text
  double head_us = 0;   // microseconds to compute the head's log-odds of one row

  double PercentOfToken() const { return token_ms > 0 ? head_us / (10 * token_ms) : 0; }
};

// Measures the cost of a head. Returns medians over a few tokens after `text` and over a few rounds
// of the head. Needs an engine with EngineOptions::hidden_rows. One measurement at a time.
absl::StatusOr<HeadCost> MeasureHeadCost(Engine* engine, const Head& head, const std::string& text);

}  // namespace trine
