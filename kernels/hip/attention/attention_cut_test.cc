// Tests how the work of an attention is cut: scratch, launches, and what goes along with it.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/hip/attention/attention.h"

namespace trine::hip {
namespace {

// A plan has the scratch for the most tokens, and runs with fewer.
TEST(HipAttentionCut, FewerTokensOrPositionsNeedNoMoreScratch) {
  constexpr int64_t kTokens = 600, kPositions = 4096;
  bool some = false;
  for (const uint32_t multiprocessors : {0u, 1u, 16u, 132u, 1u << 20}) {
    for (const int64_t kv_heads : {1, 2, 8, 32}) {
      for (const int64_t shared_bytes : {0, 48 << 10}) {
        AttentionTensors t;
        t.k.dims = t.v.dims = {64, 64, kv_heads, 64};
        t.kv_lengths.dims = {1, 1, 1, 1};
        const DeviceShape shape = {multiprocessors, static_cast<uint32_t>(shared_bytes)};
        t.q.dims = t.y.dims = {64, 32, kTokens, 1};
        const uint64_t most = AttentionScratchBytes(t, kPositions, shape);
        for (int64_t tokens = 1; tokens <= kTokens; ++tokens) {
          t.q.dims = t.y.dims = {64, 32, tokens, 1};
          for (const int64_t positions : {int64_t{512}, kPositions}) {
            for (const int64_t sequences : {int64_t{1}, tokens}) {
              t.kv_lengths.dims = {sequences, 1, 1, 1};
              ASSERT_LE(AttentionScratchUsed(t, positions, shape), most)
                  << tokens << " tokens, " << kv_heads << " heads, " << multiprocessors;
              some = some || AttentionScratchUsed(t, positions, shape) > 0;
            }
          }
        }
      }
    }
  }
  EXPECT_TRUE(some);
}

// One chunk needs neither scratch nor a second launch; without tokens there is no launch.
TEST(HipAttentionCut, IsOneLaunchForOneChunk) {
  std::byte memory[16];
  AttentionTensors t;
  t.q.data = t.k.data = t.v.data = t.block_table.data = t.q_offsets.data = memory;
  t.kv_lengths.data = t.y.data = memory;
  t.q.dims = t.y.dims = {64, 8, 1, 1};
  t.k.dims = t.v.dims = {64, 256, 2, 1};
  t.q_offsets.dims[0] = 2;
  const DeviceShape device = {132, 48 << 10};
  std::vector<Launch> launches;
  EXPECT_EQ(AttentionScratchBytes(t, 256, device), 0u);
  AddAttention(t, {}, 256, nullptr, {}, nullptr, device, &launches);
  EXPECT_EQ(launches.size(), 1u);
  EXPECT_GT(AttentionScratchBytes(t, 512, device), 0u);
  AddAttention(t, {}, 512, memory, {}, nullptr, device, &launches);
  EXPECT_EQ(launches.size(), 3u);
  t.q.dims[2] = t.y.dims[2] = 0;
  EXPECT_EQ(AttentionScratchBytes(t, 512, device), 0u);
  AddAttention(t, {}, 512, memory, {}, nullptr, device, &launches);
  EXPECT_EQ(launches.size(), 3u);
}

// Blocks rotate heads of up to 512 values, and norm heads of up to 256, both q and k or none.
TEST(HipAttentionCut, RotatesAndNormsHeadsOfSomeWidths) {
  std::byte memory[16];
  AttentionTensors t;
  RotateStore before;
  before.table.data = memory;
  t.k.dims = t.v.dims = {512, 256, 2, 1};
  t.q.dims = t.y.dims = {512, 8, 1, 1};
  const DeviceShape device = {132, 0};
  EXPECT_TRUE(CanAttendAlong(t, before, 256, device));
  before.q_norm.weight.data = before.k_norm.weight.data = memory;
  EXPECT_FALSE(CanAttendAlong(t, before, 256, device));
  t.k.dims[0] = t.v.dims[0] = t.q.dims[0] = t.y.dims[0] = 256;
  EXPECT_TRUE(CanAttendAlong(t, before, 256, device));
  before.k_norm.weight.data = nullptr;
  EXPECT_FALSE(CanAttendAlong(t, before, 256, device));
}

}  // namespace
}  // namespace trine::hip
