// Bytes between memory that the device and the host both see and the device's own, by a kernel: for
// a few small pieces, each of which would cost a copy's start.
#ifndef TRINE_KERNELS_HIP_TRANSFER_H_
#define TRINE_KERNELS_HIP_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/hip/gpu/launch.h"

namespace trine::hip {

struct Piece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t bytes = 0;
};

inline constexpr size_t kMostPieces = 16;
// Larger pieces are better copied by the device's own means.
inline constexpr uint64_t kMostPieceBytes = 64 << 10;

// At most kMostPieces, none of which overlaps another.
Launch CopyPiecesLaunch(std::span<const Piece> pieces);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_TRANSFER_H_
