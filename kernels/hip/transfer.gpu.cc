#include "kernels/hip/transfer.h"

#include <algorithm>

#include "kernels/hip/gpu/device.h"

namespace trine::hip {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kBlockBytes = kThreads * 16;

struct CopyPiecesArgs {
  Piece pieces[kMostPieces];
};

// A row of blocks for each piece.
TRINE_KERNEL(kThreads) CopyPiecesKernel(CopyPiecesArgs args) {
  BeginAfterEarlier();
  const auto of = [&](const auto& field) {
    return PickArgument<kMostPieces>(BlockY(), [&](uint32_t i) { return field(args.pieces[i]); });
  };
  const Piece piece = {of([](const Piece& p) { return p.to; }),
                       of([](const Piece& p) { return p.from; }),
                       of([](const Piece& p) { return p.bytes; })};
  const uint64_t begin = uint64_t{BlockX()} * kBlockBytes;
  if (begin >= piece.bytes) return;
  const uint64_t bytes = piece.bytes - begin < kBlockBytes ? piece.bytes - begin : kBlockBytes;
  const auto whole = [&](uint64_t unit) {
    return (reinterpret_cast<uintptr_t>(piece.to) | reinterpret_cast<uintptr_t>(piece.from) |
            bytes) %
               unit ==
           0;
  };
  if (whole(16)) {
    const auto* from = reinterpret_cast<const Word4*>(piece.from + begin);
    auto* to = reinterpret_cast<Word4*>(piece.to + begin);
    if (ThreadX() < bytes / 16) to[ThreadX()] = from[ThreadX()];
  } else if (whole(4)) {
    const auto* from = reinterpret_cast<const uint32_t*>(piece.from + begin);
    auto* to = reinterpret_cast<uint32_t*>(piece.to + begin);
    for (uint32_t i = ThreadX(); i < bytes / 4; i += kThreads) to[i] = from[i];
  } else {
    for (uint32_t i = ThreadX(); i < bytes; i += kThreads) {
      piece.to[begin + i] = piece.from[begin + i];
    }
  }
}

}  // namespace

Launch CopyPiecesLaunch(std::span<const Piece> pieces) {
  CopyPiecesArgs args;
  uint64_t most = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    args.pieces[i] = pieces[i];
    most = std::max(most, pieces[i].bytes);
  }
  const auto blocks = static_cast<uint32_t>((most + kBlockBytes - 1) / kBlockBytes);
  return MakeLaunch(CopyPiecesKernel, {blocks, static_cast<uint32_t>(pieces.size())}, {kThreads},
                    args);
}

}  // namespace trine::hip
