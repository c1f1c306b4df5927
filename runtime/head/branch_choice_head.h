// A head at work on an engine that was loaded for it (EngineOptions::embeddings or hidden_rows):
// which of several branches is better. The engine outlives what is made with it; any thread.
#ifndef TRINE_RUNTIME_HEAD_BRANCH_CHOICE_HEAD_H_
#define TRINE_RUNTIME_HEAD_BRANCH_CHOICE_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine.h"
#include "runtime/head/head.h"
#include "runtime/head/head_data.h"

namespace trine {

ModelIdentity IdentityOf(const Engine& engine);

// A text as the model is given it.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Engine& engine, const std::string& text,
                                                  PromptForm form);

// The model's last row, after its final norm, for each text.
absl::StatusOr<std::vector<std::vector<float>>> ReadRows(Engine* engine,
                                                         std::span<const std::string> texts,
                                                         PromptForm form);

// Sets the rows of all examples. Messages about a text name its line. `on_progress` is told how
// many texts are done, and of how many; false ends it: CANCELLED.
absl::Status ReadRows(Engine* engine, PromptForm form, HeadData* data,
                      const std::function<bool(int64_t, int64_t)>& on_progress = nullptr);

class BranchChoiceHead {
 public:
  struct Choice {
    size_t best = 0;                    // of the labels, or of the branches
    std::vector<double> probabilities;  // of each of them
  };

  // FAILED_PRECONDITION for a head of another model.
  static absl::StatusOr<BranchChoiceHead> Create(Engine* engine, Head head);

  const Head& head() const { return head_; }

  // What a prompt that names its branches itself has as its answer: one of the head's labels.
  // FAILED_PRECONDITION for a head of the other kind, here and below.
  absl::StatusOr<Choice> ChooseLabel(const std::string& prompt) const;
  // The best of two texts or more.
  absl::StatusOr<Choice> ChooseBranch(std::span<const std::string> branches) const;

 private:
  BranchChoiceHead(Engine* engine, Head head) : engine_(engine), head_(std::move(head)) {}
  absl::StatusOr<Choice> Choose(HeadKind kind, std::span<const std::string> texts) const;

  Engine* engine_;
  Head head_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_BRANCH_CHOICE_HEAD_H_
