// The data of a model's tensors, made in pieces of bounded size by several threads. The bytes
// depend on the tensor and the seed alone.
//
// Encoding with the least error takes up to microseconds a value, too long for models of billions.
// So only some thousand blocks of a large quantised tensor are encoded, and each block of it is
// one of those, picked at random.
#ifndef TRINE_RUNTIME_MAKE_MODEL_WEIGHTS_H_
#define TRINE_RUNTIME_MAKE_MODEL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plugins/thread_team.h"
#include "runtime/make_model/tensor_list.h"

namespace trine {

class WeightMaker {
 public:
  // Called with the next bytes of a tensor; a status that is not OK ends the making.
  using Sink = std::function<absl::Status(absl::Span<const std::byte> data)>;

  // `workers` threads, the caller's among them.
  WeightMaker(uint64_t seed, uint32_t workers);

  // INTERNAL names a tensor whose values its type can not hold.
  absl::Status Make(const TensorSpec& tensor, const Sink& sink);

 private:
  struct Piece;
  // From blocks of the pool, or drawn where that is empty.
  absl::Status MakeFrom(absl::Span<const std::byte> pool, const TensorSpec& tensor,
                        const Sink& sink);
  static void FillShare(void* piece, uint32_t worker, uint32_t workers);

  const uint64_t seed_;
  ThreadTeam team_;
  std::vector<std::byte> buffer_;
  std::vector<std::vector<float>> rows_;  // one per worker
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_WEIGHTS_H_
