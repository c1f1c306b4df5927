// Passes that are made before they are due.
//
// While a pass is under way in which sequences decode, the one after it can be foreseen but for its
// tokens: the same sequences, each one position further. The rest of what it brings along
// (rotations, slots, block tables, lengths, which rows are whose) is made meanwhile by the thread
// that would wait for the devices, so that only tokens are left to be written when they are known.
// What was foreseen wrongly is not used. Not thread-safe; allocates nothing once passes of a size
// have been there.
#ifndef TRINE_RUNTIME_PASSES_AHEAD_H_
#define TRINE_RUNTIME_PASSES_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/model/model.h"

namespace trine {

class PassesAhead {
 public:
  // A token that is not known yet, for the parts of a batch that is foreseen.
  static constexpr int32_t kUnknown = 0;

  // Forgets all, and is to be used for this model. At most `most` are kept: a new one takes the
  // place of the oldest.
  void Reset(const Model& model, size_t most);

  // Of a batch in which each part has one token and every token gives a row.
  void Make(const Model& model, const Batch& batch);

  // The pass of a batch, if it was foreseen, in the place of *pass.
  bool Take(const Batch& batch, size_t place, Pass* pass);

 private:
  struct Part {
    uint64_t blocks;  // the version of its table
    int64_t position;
    bool operator==(const Part&) const = default;
  };
  struct Foreseen {
    std::vector<Part> parts;  // none: it was taken
    Pass pass;
  };
  static bool Matches(const Foreseen& foreseen, const Batch& batch);

  std::vector<Foreseen> foreseen_;
  size_t oldest_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_PASSES_AHEAD_H_
