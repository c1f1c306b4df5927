#include "runtime/batch/passes_ahead.h"

#include <algorithm>
#include <utility>

namespace trine {

void PassesAhead::Reset(const Model& model, size_t most) {
  foreseen_.clear();
  foreseen_.resize(most);
  for (Foreseen& next : foreseen_) {
    model.ReserveForDecode(false, &next.pass);
    next.parts.reserve(static_cast<size_t>(model.limits().max_sequences));
  }
  oldest_ = 0;
}

void PassesAhead::Make(const Model& model, const Batch& batch) {
  Foreseen& next = foreseen_[oldest_];
  oldest_ = (oldest_ + 1) % foreseen_.size();
  next.parts.clear();  // stays empty if memory runs out below
  model.Prepare(batch, 0, &next.pass);
  for (const BatchPart& part : batch.parts) {
    next.parts.push_back({part.blocks->version(), part.first_position});
  }
}

bool PassesAhead::Matches(const Foreseen& foreseen, const Batch& batch) {
  if (foreseen.pass.wants_hidden != batch.hidden) return false;
  return std::equal(
      batch.parts.begin(), batch.parts.end(), foreseen.parts.begin(), foreseen.parts.end(),
      [](const BatchPart& part, const Part& was) {
        return part.tokens.size() == 1 && Part{part.blocks->version(), part.first_position} == was;
      });
}

bool PassesAhead::Take(const Batch& batch, size_t slot, Pass* pass) {
  // Each part has one token; either all of their rows are wanted or the pass was not predicted.
  if (batch.parts.empty() || batch.output_rows.size() != batch.parts.size()) return false;
  const auto found =
      std::find_if(foreseen_.begin(), foreseen_.end(),
                   [&](const Foreseen& foreseen) { return Matches(foreseen, batch); });
  if (found == foreseen_.end()) return false;
  std::swap(*pass, found->pass);
  // Output buffers are large, so a buffer that was allocated stays in use.
  std::swap(pass->output, found->pass.output);
  std::swap(pass->hidden, found->pass.hidden);
  found->parts.clear();
  found->pass.moves.Clear();
  pass->slot = slot;
  for (size_t i = 0; i < batch.parts.size(); ++i) pass->tokens[i] = batch.parts[i].tokens[0];
  pass->moves = batch.moves;
  batch.BeginChoices(&pass->choices);
  return true;
}

}  // namespace trine
