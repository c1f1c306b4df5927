// What a head costs beside the model it listens to, measured. For one measurer at a time, on an
// engine that generates and gives hidden rows too (EngineOptions::hidden_rows).
#ifndef TRINE_RUNTIME_HEAD_HEAD_COST_H_
#define TRINE_RUNTIME_HEAD_HEAD_COST_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/engine.h"
#include "runtime/head/head.h"

namespace trine {

struct HeadCost {
  double token_ms = 0;  // decoding one token behind a text
  double head_us = 0;   // the head, of a row that is there already

  double PercentOfToken() const { return token_ms > 0 ? head_us / (10 * token_ms) : 0; }
};

// Medians of a few tokens behind `text` and of a few rounds of the head.
absl::StatusOr<HeadCost> MeasureHeadCost(Engine* engine, const Head& head, const std::string& text);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_HEAD_COST_H_
