#include "kernels/vulkan/packed_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace trine::vulkan {
namespace {

using quant::kGroupValues;
using quant::kSuperGroups;
using quant::Type;

// Where the parts of a packed row begin, for b blocks. Sums of the sizes of the header's list.
struct Parts {
  explicit Parts(Type type, int64_t blocks)
      : top(blocks * 16),
        scales(top + blocks * (type == Type::kQ5_K   ? 4
                               : type == Type::kQ6_K ? 8
                                                     : 0)),
        d(scales + blocks * 2) {}
  int64_t top, scales, d;
};

// Each type is a list of the places where bytes or bits of the file go. Written once, for both
// directions: `Mover` copies whole bytes, and bits where they are split.
class Mover {
 public:
  Mover(const std::byte* from, std::byte* to, bool pack) : from_(from), to_(to), pack_(pack) {}

  void Bytes(int64_t plain, int64_t packed, int64_t count) {
    const auto [source, target] = Order(plain, packed);
    std::memcpy(to_ + target, from_ + source, static_cast<size_t>(count));
  }

  // Bits [plain_bit, +count) of a byte of the file, and [packed_bit, +count) of a packed one. The
  // target's bits are zero before.
  void Bits(int64_t plain, int plain_bit, int64_t packed, int packed_bit, int count) {
    const auto [source, target] = Order(plain, packed);
    const int source_bit = pack_ ? plain_bit : packed_bit;
    const int target_bit = pack_ ? packed_bit : plain_bit;
    const unsigned mask = (1u << count) - 1;
    const unsigned bits = (std::to_integer<unsigned>(from_[source]) >> source_bit) & mask;
    to_[target] |= static_cast<std::byte>(bits << target_bit);
  }

 private:
  struct Pair {
    int64_t source, target;
  };
  Pair Order(int64_t plain, int64_t packed) const {
    return pack_ ? Pair{plain, packed} : Pair{packed, plain};
  }

  const std::byte* from_;
  std::byte* to_;
  bool pack_;
};

void MoveQ8_0(int64_t blocks, Mover* mover) {
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t plain = b * static_cast<int64_t>(sizeof(quant::BlockQ8_0));
    const int64_t chunk = b / 8 * 8, in_chunk = std::min<int64_t>(8, blocks - chunk);
    for (int64_t half = 0; half < 2; ++half) {
      mover->Bytes(plain + 2 + 16 * half, 32 * chunk + 16 * (half * in_chunk + b % 8), 16);
    }
    mover->Bytes(plain, 32 * blocks + 2 * b, 2);
  }
}

void MoveQ4_0(int64_t blocks, Mover* mover) {
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t plain = b * static_cast<int64_t>(sizeof(quant::BlockQ4_0));
    mover->Bytes(plain + 2, 16 * b, 16);
    mover->Bytes(plain, 16 * blocks + 2 * b, 2);
  }
}

// Value i of block b goes to byte i % 16 of its nibbles, the second half to the upper bits.
void MoveNibble(int64_t plain, int plain_bit, int64_t b, int i, Mover* mover) {
  mover->Bits(plain, plain_bit, 16 * b + i % 16, 4 * (i / 16), 4);
}

void MoveQ45K(Type type, int64_t blocks, Mover* mover) {
  const Parts parts(type, blocks);
  const bool five = type == Type::kQ5_K;
  const int64_t block_bytes = quant::Traits(type).block_bytes;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t plain = b / kSuperGroups * block_bytes;
    const int part = static_cast<int>(b % kSuperGroups);
    const int64_t nibbles = plain + (five ? 48 : 16) + 32 * (part / 2);
    for (int i = 0; i < kGroupValues; ++i) {
      MoveNibble(nibbles + i, 4 * (part % 2), b, i, mover);
      if (five) mover->Bits(plain + 16 + i, part, parts.top + 4 * b + i % 4, i / 4, 1);
    }
    if (part == 0) mover->Bytes(plain, parts.scales + 2 * b, 16);
  }
}

void MoveQ6K(int64_t blocks, Mover* mover) {
  const Parts parts(Type::kQ6_K, blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t plain = b / kSuperGroups * static_cast<int64_t>(sizeof(quant::BlockQ6_K));
    const int part = static_cast<int>(b % kSuperGroups);
    const int64_t low = plain + 64 * (part / 4) + 32 * (part % 2);
    const int64_t high = plain + 128 + 32 * (part / 4);
    for (int i = 0; i < kGroupValues; ++i) {
      MoveNibble(low + i, 4 * (part % 4 / 2), b, i, mover);
      mover->Bits(high + i, 2 * (part % 4), parts.top + 8 * b + 4 * (i / 16) + i % 4,
                  2 * (i % 16 / 4), 2);
    }
    mover->Bytes(plain + 192 + 2 * part, parts.scales + 2 * b, 2);
    if (part == 0) mover->Bytes(plain + 208, parts.d + b / 4, 2);
  }
}

void MoveF16(int64_t k, Mover* mover) {
  for (int64_t i = 0; i < k; ++i) {
    const int64_t run = i / 256 * 256, lane = i % 32, pair = i % 256 / 64, upper = i % 64 / 32;
    const int64_t word = run + 256 <= k ? lane * 4 + pair : pair * 32 + lane;
    mover->Bytes(2 * i, 2 * run + 4 * word + 2 * upper, 2);
  }
}

void Move(Type type, int64_t k, Mover* mover) {
  const int64_t blocks = k / kGroupValues;
  switch (type) {
    case Type::kF16:
      return MoveF16(k, mover);
    case Type::kQ8_0:
      return MoveQ8_0(blocks, mover);
    case Type::kQ4_0:
      return MoveQ4_0(blocks, mover);
    case Type::kQ4_K:
    case Type::kQ5_K:
      return MoveQ45K(type, blocks, mover);
    case Type::kQ6_K:
      return MoveQ6K(blocks, mover);
    default:
      return;
  }
}

}  // namespace

bool HasPackedLayout(Type type) {
  return type == Type::kF16 || type == Type::kQ8_0 || type == Type::kQ4_0 || type == Type::kQ4_K ||
         type == Type::kQ5_K || type == Type::kQ6_K;
}

bool PackedRowBytes(Type type, int64_t k, uint64_t* bytes) {
  uint64_t plain = 0;
  if (!HasPackedLayout(type) || !quant::RowBytes(type, k, &plain)) return false;
  const uint64_t unit = type == Type::kF16 ? 128 : kPackedAlignment;
  if (plain > std::numeric_limits<uint32_t>::max() - unit) return false;
  *bytes = (plain + unit - 1) / unit * unit;
  return true;
}

void PackRow(Type type, int64_t k, const std::byte* plain, std::byte* packed) {
  uint64_t bytes = 0;
  if (!PackedRowBytes(type, k, &bytes)) return;
  std::fill_n(packed, bytes, std::byte{0});
  Mover mover(plain, packed, true);
  Move(type, k, &mover);
}

void UnpackRow(Type type, int64_t k, const std::byte* packed, std::byte* plain) {
  uint64_t bytes = 0;
  if (!HasPackedLayout(type) || !quant::RowBytes(type, k, &bytes)) return;
  std::fill_n(plain, bytes, std::byte{0});
  Mover mover(packed, plain, false);
  Move(type, k, &mover);
}

}  // namespace trine::vulkan
