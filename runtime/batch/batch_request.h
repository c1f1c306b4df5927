// A call of an owner: evaluate these sequences until all of them, or one of them, have no pending
// tokens. The scheduler owns requests. The pass former reads a request, and sets its status when
// there is no room for its tokens. Use only under the batcher's lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/batch/sequence_evaluation.h"

namespace trine {

struct BatchRequest {
  // kDrained: until no pass holds tokens of the sequences; none of their tokens are evaluated.
  enum class Until { kAllDone, kOneDone, kDrained };

  // Lets a finished request be used again. Keeps the memory of `left`.
  void Clear() {
    left.clear();
    status = absl::OkStatus();
    one_done = done = false;
  }

  Until until = Until::kAllDone;
  std::vector<Sequence::Evaluation> left;  // sequences with pending tokens, or in a pass
  int64_t longest = 0;                     // the most pending tokens of a sequence at the call
  absl::Status status;
  bool one_done = false;  // one sequence had no pending tokens at the call
  bool done = false;
  std::condition_variable wake;  // notified when the request is done, or its owner shall lead
};

}  // namespace trine
