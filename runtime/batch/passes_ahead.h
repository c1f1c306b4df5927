// Prepares passes before they are due.
//
// While a pass in which all sequences decode is in flight, the next pass is known except for its
// tokens: the same sequences, each one position further. Instead of waiting for the devices, the
// leader's thread prepares the rest of that pass: rotations, slots, block tables, lengths, and
// which rows belong to which sequence. Only the tokens remain to be written. A wrong prediction is
// not used. Not thread-safe. Allocates nothing once there have been passes of the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/model/run/model.h"

namespace trine {

class PassesAhead {
 public:
  // Stands for a token that is not known yet, in the parts of a predicted batch.
  static constexpr int32_t kUnknown = 0;

  // Forgets all prepared passes; later ones are of this model. Keeps at most `most` passes, at
  // least one: a new one replaces the oldest.
  void Reset(const Model& model, size_t most);

  // Prepares the pass of a predicted batch. REQUIRES: Reset has been called with this model; each
  // part has one token, and every token gives a row.
  void Make(const Model& model, const Batch& batch);

  // Puts the prepared pass of a batch into *pass, with the batch's tokens, its moves and the pass
  // slot. *pass keeps its memory for output. Returns false, and changes nothing, if no such pass
  // was prepared: with the same sequences, positions, blocks and outputs.
  bool Take(const Batch& batch, size_t slot, Pass* pass);

 private:
  struct Part {
    uint64_t blocks;  // the version of its block table
    int64_t position;
    bool operator==(const Part&) const = default;
  };
  struct Foreseen {
    std::vector<Part> parts;  // empty: it was taken
    Pass pass;
  };
  static bool Matches(const Foreseen& foreseen, const Batch& batch);

  std::vector<Foreseen> foreseen_;
  size_t oldest_ = 0;
};

}  // namespace trine
