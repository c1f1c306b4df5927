#include <algorithm>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/ops/rotation.h"

namespace trine::hip {
namespace {

using quant::Type;

constexpr uint32_t kThreads = 256;

struct Heads {
  std::byte* data;
  int64_t head, token;  // strides
};

struct Cache {
  std::byte* data;
  int64_t position, head, block;  // strides
  Type type;
  uint32_t block_positions;
  uint32_t slots;
};

// One of q, k and v, which has a range of the grid's blocks.
struct Part {
  Heads from, to;  // to: rotated values, if it has data
  Cache cache;     // may have no data
  uint32_t width, heads;
  uint32_t pairs;  // 0: nothing is rotated
  uint32_t items;  // in a row; a thread does one
  uint32_t begin_block;
};

struct RotateStoreArgs {
  Part parts[3];
  const std::byte* table;
  int64_t table_token;
  const int32_t* slots;
  uint32_t tokens;
  bool halves;
};

TRINE_DEVICE float* RowOf(const Heads& heads, uint32_t head, uint32_t token) {
  return reinterpret_cast<float*>(heads.data + head * heads.head + token * heads.token);
}

// Returns a token's row in the cache, or nullptr if its slot is outside the cache.
TRINE_DEVICE std::byte* CacheRow(const Part& part, const int32_t* slots, uint32_t head,
                                 uint32_t token) {
  if (part.cache.data == nullptr) return nullptr;
  const auto slot = static_cast<uint32_t>(slots[token]);
  if (slot >= part.cache.slots) return nullptr;
  return part.cache.data + slot % part.cache.block_positions * part.cache.position +
         head * part.cache.head + slot / part.cache.block_positions * part.cache.block;
}

TRINE_DEVICE Rotation RotationOf(const RotateStoreArgs& args, const Part& part, uint32_t token) {
  return {reinterpret_cast<const float*>(args.table + token * args.table_token), part.pairs,
          args.halves};
}

TRINE_DEVICE void DoItem(const RotateStoreArgs& args, const Part& part, uint32_t head,
                         uint32_t token, uint32_t item) {
  float* to = part.to.data != nullptr ? RowOf(part.to, head, token) : nullptr;
  std::byte* row = CacheRow(part, args.slots, head, token);
  RotateItem(RotationOf(args, part, token), RowOf(part.from, head, token), item,
             [&](uint32_t i, float x) {
               if (to != nullptr) to[i] = x;
               if (row != nullptr) StoreValue(part.cache.type, row, i, x);
             });
}

// Returns value i of a row, rotated.
TRINE_DEVICE float RotatedValue(const RotateStoreArgs& args, const Part& part, const float* from,
                                uint32_t token, uint32_t i) {
  const uint32_t pair = args.halves ? i % (part.pairs != 0 ? part.pairs : 1) : i / 2;
  float value = 0.0f;
  RotateItem(RotationOf(args, part, token), from, i < 2 * part.pairs ? pair : i - part.pairs,
             [&](uint32_t at, float x) { value = at == i ? x : value; });
  return value;
}

// Does four values of a block of 32, which eight neighbouring lanes quantise together.
TRINE_DEVICE void DoQuantizedItem(const RotateStoreArgs& args, const Part& part, uint32_t head,
                                  uint32_t token, uint32_t item, bool ours) {
  const float* from = RowOf(part.from, head, token);
  float v[4];
  uint32_t most = 0;  // magnitudes compare as integers
  for (uint32_t i = 0; i < 4; ++i) {
    v[i] = RotatedValue(args, part, from, token, 4 * item + i);
    most = std::max(most, Bits(v[i]) & 0x7fffffffu);
  }
  for (int mask = 1; mask < 8; mask *= 2) most = std::max(most, LaneXor(most, mask));
  if (!ours) return;
  if (part.to.data != nullptr) {
    for (uint32_t i = 0; i < 4; ++i) RowOf(part.to, head, token)[4 * item + i] = v[i];
  }
  std::byte* row = CacheRow(part, args.slots, head, token);
  if (row == nullptr) return;
  float d = 0.0f;
  uint32_t bytes = 0;
  if (most >= Bits(quant::kKvTiny)) {
    d = FromBits(most) * FromBits(0x3c010204u);
    const float inverse = Recip(d);
    for (uint32_t i = 0; i < 4; ++i) {
      const int32_t q = std::min(std::max(Round(v[i] * inverse), -127), 127);
      bytes |= (static_cast<uint32_t>(q) & 0xffu) << (8 * i);
    }
  }
  auto* block = reinterpret_cast<uint32_t*>(row) + item / 8 * 9;
  if (item % 8 == 0) block[0] = Bits(d);
  block[1 + item % 8] = bytes;
}

TRINE_DEVICE void DoPart(const RotateStoreArgs& args, const Part& part) {
  const uint32_t at = (BlockX() - part.begin_block) * kThreads + ThreadX();
  const bool ours = at < part.items * part.heads;
  const uint32_t head = ours ? at / part.items : 0, item = ours ? at % part.items : at % 8;
  const bool quantized = part.cache.data != nullptr && part.cache.type == Type::kQ8_KV;
  for (uint32_t token = BlockY(); token < args.tokens; token += GridY()) {
    if (quantized) {
      DoQuantizedItem(args, part, head, token, item, ours);
    } else if (ours) {
      DoItem(args, part, head, token, item);
    }
  }
}

TRINE_KERNEL(kThreads) RotateStoreKernel(RotateStoreArgs args) {
  BeginAfterEarlier();
  // By name, not by index: a computed index would put the arguments into memory.
  if (BlockX() >= args.parts[2].begin_block) {
    DoPart(args, args.parts[2]);
  } else if (BlockX() >= args.parts[1].begin_block) {
    DoPart(args, args.parts[1]);
  } else {
    DoPart(args, args.parts[0]);
  }
}

Heads HeadsOf(const Tensor& t) { return {t.data, t.strides[1], t.strides[2]}; }

// Makes a part whose blocks begin at *blocks, and moves *blocks to the end of these.
Part PartOf(const Tensor& from, const Tensor& to, const Tensor& cache, int64_t pairs,
            uint32_t* blocks) {
  Part part = {};
  part.begin_block = *blocks;
  if (!from.present() || from.elements() == 0) return part;
  part.from = HeadsOf(from);
  part.to = HeadsOf(to);
  part.cache = {cache.data,
                cache.strides[1],
                cache.strides[2],
                cache.strides[3],
                cache.type,
                static_cast<uint32_t>(cache.dims[1]),
                static_cast<uint32_t>(cache.dims[1] * cache.dims[3])};
  part.width = static_cast<uint32_t>(from.dims[0]);
  part.heads = static_cast<uint32_t>(from.dims[1]);
  part.pairs = static_cast<uint32_t>(pairs);
  const bool quantized = cache.present() && cache.type == Type::kQ8_KV;
  part.items = quantized ? part.width / 4 : part.width - part.pairs;
  *blocks += (part.items * part.heads + kThreads - 1) / kThreads;
  return part;
}

}  // namespace

bool CanRotateStore(const RotateStore& work) {
  const bool in_place = work.rotated_k.present() && work.rotated_k.data == work.k.data;
  const bool quantized = work.key_cache.present() && work.key_cache.type == Type::kQ8_KV;
  return !(in_place && quantized && work.table.present());
}

Launch RotateStoreLaunch(const RotateStore& work) {
  RotateStoreArgs args = {};
  args.halves = work.mode == reference::RopeMode::kHalves;
  args.table = work.table.data;
  args.table_token = work.table.strides[1];
  args.slots = reinterpret_cast<const int32_t*>(work.slots.data);
  const Tensor& any = work.q.present() ? work.q : work.k.present() ? work.k : work.v;
  args.tokens = static_cast<uint32_t>(any.dims[2]);
  const int64_t pairs = work.table.present() ? work.table.dims[0] / 2 : 0;
  uint32_t blocks = 0;
  args.parts[0] = PartOf(work.q, work.rotated_q, {}, pairs, &blocks);
  args.parts[1] = PartOf(work.k, work.rotated_k, work.key_cache, pairs, &blocks);
  args.parts[2] = PartOf(work.v, {}, work.value_cache, 0, &blocks);
  return MakeLaunch(RotateStoreKernel, {blocks, std::min(args.tokens, kMaxGridYZ)}, {kThreads},
                    args);
}

}  // namespace trine::hip
