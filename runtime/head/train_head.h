// From examples whose rows have been read to a head. A function of the examples and the options
// alone: the same bits on every machine. Any thread.
#ifndef TRINE_RUNTIME_HEAD_TRAIN_HEAD_H_
#define TRINE_RUNTIME_HEAD_TRAIN_HEAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/head/head.h"
#include "runtime/head/head_data.h"
#include "runtime/head/head_report.h"

namespace trine {

struct TrainOptions {
  PromptForm form = PromptForm::kPlain;
  double l2 = 0.01;
  double hold_out = 0.2;  // of the examples, not trained with
  uint64_t seed = 0;      // of which those are
  // The label whose log-odds the head gives, for heads that value a text; "": the last in order.
  std::string good;
};

struct TrainedHead {
  Head head;
  HeadReport trained;
  std::optional<HeadReport> held_out;  // none where nothing was held out
};

// kLabel: logistic regression on standardised rows. kBranch: on differences, the best branch's less
// each other's, without a bias, so that no order of branches is preferred. INVALID_ARGUMENT where
// the examples that are left to train with lack one of the labels, or `good` is none of them.
absl::StatusOr<TrainedHead> TrainHead(const HeadData& data, const ModelIdentity& model,
                                      const TrainOptions& options);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_TRAIN_HEAD_H_
