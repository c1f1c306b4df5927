#include <array>

#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip {
namespace {

using quant::Fill;
using quant::Type;
using reference::AllRows;
using reference::Random;
using reference::RopeMode;
using testing::BytesIn;
using testing::OnDevice;
using HostTensor = reference::Tensor;

constexpr Type kCacheTypes[] = {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV};

TEST(HipRope, IsTheReferences) {
  Random random(1);
  for (const RopeMode mode : {RopeMode::kInterleaved, RopeMode::kHalves}) {
    for (const auto& [d, pairs, heads, tokens] :
         {std::array<int64_t, 4>{64, 32, 1, 1}, {128, 64, 5, 3}, {80, 16, 3, 9}, {7, 3, 2, 33}}) {
      for (const Fill fill : quant::kAllFills) {
        HostTensor x(Type::kF32, {d, heads, tokens}, 4), table(Type::kF32, {2 * pairs, tokens}, 8);
        HostTensor y(Type::kF32, {d, heads, tokens});
        x.FillWith(fill, &random);
        table.FillWith(Fill::kUniform, &random);
        const std::vector<std::byte> before = BytesIn(x);
        const OnDevice table_there(table), x_was(x);
        const OnDevice y_was(y);
        reference::Rope(x, table, mode, y, AllRows(y));
        const HostTensor& rotated = x;
        testing::UnderEverySchedule([&] {
          const OnDevice out(y);
          testing::RunLaunch(RopeLaunch(x_was.tensor(), table_there.tensor(), mode, out.tensor()));
          EXPECT_EQ(out.Bytes(), BytesIn(y)) << d;
          EXPECT_EQ(x_was.Bytes(), before);
        });
        testing::UnderEverySchedule([&] {
          const OnDevice in_place(x);
          testing::RunLaunch(
              RopeLaunch(in_place.tensor(), table_there.tensor(), mode, in_place.tensor()));
          HostTensor want(Type::kF32, {d, heads, tokens}, 4);
          reference::Rope(rotated, table, mode, want, AllRows(want));
          EXPECT_EQ(in_place.Bytes(), BytesIn(want)) << d << " in place";
        });
      }
    }
  }
}

TEST(HipKvStore, IsTheReferences) {
  Random random(2);
  for (const Type type : kCacheTypes) {
    for (const Fill fill : quant::kAllFills) {
      for (const int64_t positions : {1, 16, 256}) {
        const int64_t d = type == Type::kQ8_KV ? 96 : 51, blocks = positions == 1 ? 50 : 3;
        HostTensor x(Type::kF32, {d, 3, 7}, 4), slots(Type::kI32, {7});
        HostTensor cache(type, {d, positions, 3, blocks}, 4),
            want(type, {d, positions, 3, blocks}, 4);
        x.FillWith(fill, &random);
        if (fill == Fill::kUniform) {
          for (int64_t i = 0; i < d; ++i) x.Row(2)[i] *= 0x1p-30f;
          x.Row(3)[5] = 3e9f;
        }
        const auto last = static_cast<int32_t>(positions * blocks);
        slots.Set({7, 0, last - 1, -1, last, 11, 2'000'000'000});
        reference::KvStore(x, slots, want, AllRows(x));
        const OnDevice x_there(x), slots_there(slots);
        testing::UnderEverySchedule([&] {
          const OnDevice out(cache);
          testing::RunLaunch(KvStoreLaunch(x_there.tensor(), slots_there.tensor(), out.tensor()));
          EXPECT_EQ(out.Bytes(), BytesIn(want)) << quant::Traits(type).name;
        });
      }
    }
  }
}

// Compares rope of q and k and both stores as one launch with the four ops.
struct What {
  Type keys, values;
  bool rotates, stores, writes_k, in_place;
  RopeMode mode = RopeMode::kHalves;
  int64_t d = 64, pairs = 32, dv = 64;
  bool has_q = true;
};

constexpr int64_t kHeads = 5, kKvHeads = 3, kTokens = 7, kPositions = 16, kBlocks = 3;

void Check(const What& what, Fill fill) {
  Random random(7);
  HostTensor q(Type::kF32, {what.d, kHeads, kTokens}, 4);
  HostTensor k(Type::kF32, {what.d, kKvHeads, kTokens});
  HostTensor v(Type::kF32, {what.dv, kKvHeads, kTokens}, 8);
  HostTensor table(Type::kF32, {2 * what.pairs, kTokens}, 4), slots(Type::kI32, {kTokens});
  HostTensor q_out(Type::kF32, {what.d, kHeads, kTokens}, 4);
  HostTensor k_out(Type::kF32, {what.d, kKvHeads, kTokens});
  HostTensor keys(what.keys, {what.d, kPositions, kKvHeads, kBlocks}, 4);
  HostTensor values(what.values, {what.dv, kPositions, kKvHeads, kBlocks}, 4);
  for (HostTensor* t : {&q, &k, &v}) t->FillWith(fill, &random);
  table.FillWith(Fill::kUniform, &random);
  slots.Set({7, 0, 47, -1, 48, 11, 2'000'000'000});

  HostTensor want_q(Type::kF32, {what.d, kHeads, kTokens}, 4);
  HostTensor want_k(Type::kF32, {what.d, kKvHeads, kTokens});
  HostTensor want_keys(what.keys, {what.d, kPositions, kKvHeads, kBlocks}, 4);
  HostTensor want_values(what.values, {what.dv, kPositions, kKvHeads, kBlocks}, 4);
  reference::Rope(q, table, what.mode, want_q, AllRows(want_q));
  reference::Rope(k, table, what.mode, want_k, AllRows(want_k));
  if (what.stores) {
    reference::KvStore(what.rotates ? want_k : k, slots, want_keys, AllRows(k));
    reference::KvStore(v, slots, want_values, AllRows(v));
  }
  const bool writes_q = what.rotates && what.has_q, writes_k = what.rotates && what.writes_k;
  testing::UnderEverySchedule([&] {
    const OnDevice q_there(q), k_there(k), v_there(v), table_there(table), slots_there(slots);
    const OnDevice q_to(q_out), k_to(k_out), keys_there(keys), values_there(values);
    const OnDevice& rotated_q = what.in_place ? q_there : q_to;
    const OnDevice& rotated_k = what.in_place ? k_there : k_to;
    RotateStore work;
    work.mode = what.mode;
    work.k = k_there.tensor();
    if (what.rotates) work.table = table_there.tensor();
    if (writes_q) {
      work.q = q_there.tensor();
      work.rotated_q = rotated_q.tensor();
    }
    if (writes_k) work.rotated_k = rotated_k.tensor();
    if (what.stores) {
      work.slots = slots_there.tensor();
      work.v = v_there.tensor();
      work.key_cache = keys_there.tensor();
      work.value_cache = values_there.tensor();
    }
    ASSERT_TRUE(CanRotateStore(work));
    testing::RunLaunch(RotateStoreLaunch(work));
    EXPECT_EQ(keys_there.Bytes(), BytesIn(want_keys));
    EXPECT_EQ(values_there.Bytes(), BytesIn(want_values));
    EXPECT_EQ(rotated_q.Bytes(), writes_q ? BytesIn(want_q) : BytesIn(what.in_place ? q : q_out));
    EXPECT_EQ(rotated_k.Bytes(), writes_k ? BytesIn(want_k) : BytesIn(what.in_place ? k : k_out));
    if (!what.in_place) {
      EXPECT_EQ(q_there.Bytes(), BytesIn(q));
      EXPECT_EQ(k_there.Bytes(), BytesIn(k));
    }
    EXPECT_EQ(v_there.Bytes(), BytesIn(v));
  });
}

TEST(HipRotateStore, AllOfIt) {
  for (const Type type : kCacheTypes) {
    for (const Fill fill : quant::kAllFills) {
      Check({type, Type::kF16, true, true, false, true}, fill);
      Check({Type::kF16, type, true, true, true, false}, fill);
    }
  }
  Check({Type::kF16, Type::kF16, true, true, true, true}, Fill::kUniform);
  for (const RopeMode mode : {RopeMode::kInterleaved, RopeMode::kHalves}) {
    Check({Type::kQ8_KV, Type::kQ8_KV, true, true, true, false, mode, 96, 24, 32}, Fill::kUniform);
  }
}

TEST(HipRotateStore, OddWidths) {
  for (const auto mode : {RopeMode::kInterleaved, RopeMode::kHalves}) {
    Check({Type::kF16, Type::kF16, true, true, false, true, mode, 80, 16, 51}, Fill::kUniform);
    Check({Type::kF16, Type::kF16, true, true, true, true, mode, 7, 3, 64}, Fill::kUniform);
  }
}

TEST(HipRotateStore, PartsOfIt) {
  Check({Type::kF16, Type::kBF16, false, true, false, false}, Fill::kUniform);
  Check({Type::kQ8_KV, Type::kQ8_KV, false, true, false, false}, Fill::kUniform);
  Check({Type::kF16, Type::kF16, true, false, true, true}, Fill::kUniform);
  Check({Type::kF16, Type::kF16, true, false, true, false}, Fill::kUniform);
  What without_q = {Type::kF16, Type::kF16, true, true, false, false};
  without_q.has_q = false;
  Check(without_q, Fill::kUniform);
}

// Blocks of 32 would read values that others have rotated.
TEST(HipRotateStore, RefusesToQuantizeWhatItRotatesInPlace) {
  std::byte memory[16];
  RotateStore work;
  work.table.data = work.k.data = work.rotated_k.data = memory;
  work.key_cache.data = memory + 8;
  work.key_cache.type = Type::kQ8_KV;
  EXPECT_FALSE(CanRotateStore(work));
  work.key_cache.type = Type::kF16;
  EXPECT_TRUE(CanRotateStore(work));
}

}  // namespace
}  // namespace trine::hip
