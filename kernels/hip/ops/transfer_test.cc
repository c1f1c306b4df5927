#include <vector>

#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/gpu_fixture.h"

namespace trine::hip {
namespace {

using testing::DeviceMemory;

TEST(HipTransfer, MovesEachPieceAndNothingElse) {
  const uint64_t sizes[] = {1, 4, 16, 63, 64, 4096, 4100, 0, 50000, 65536};
  constexpr uint64_t kGap = 48;
  for (const uint64_t offset : {0, 4, 1}) {
    uint64_t total = offset;
    for (const uint64_t size : sizes) total += size + kGap - (size + kGap) % 16 + 16;
    std::vector<std::byte> source(total), target(total, std::byte{0x77}), expected = target;
    for (uint64_t i = 0; i < total; ++i) source[i] = static_cast<std::byte>(i * 7 + i / 251);
    testing::UnderEverySchedule([&] {
      DeviceMemory from(total), to(total);
      from.Write(source.data());
      to.Write(target.data());
      std::vector<Piece> pieces;
      std::vector<std::byte> want = expected;
      uint64_t at = offset;
      for (const uint64_t size : sizes) {
        pieces.push_back({to.data() + at, from.data() + at, size});
        for (uint64_t i = at; i < at + size; ++i) want[i] = source[i];
        at += size + kGap - (size + kGap) % 16 + 16;
      }
      testing::RunLaunch(CopyPiecesLaunch(pieces));
      std::vector<std::byte> got(total);
      to.Read(got.data());
      ASSERT_EQ(got, want);
    });
  }
}

}  // namespace
}  // namespace trine::hip
