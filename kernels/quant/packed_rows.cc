#include "kernels/quant/packed_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace trine::quant {
namespace {

// The offsets of the parts of a packed row: sums of the sizes in the header's list.
struct Parts {
  explicit Parts(Type type, int64_t blocks)
      : top(blocks * 16),
        scales(top + blocks * (type == Type::kQ5_K   ? 4
                               : type == Type::kQ6_K ? 8
                                                     : 0)),
        d(scales + blocks * 2) {}
  int64_t top, scales, d;
};

// Copies from a row of a file to a packed one, or back.
class Mover {
 public:
  Mover(const std::byte* from, std::byte* to, bool pack) : from_(from), to_(to), pack_(pack) {}

  void Bytes(int64_t plain, int64_t packed, int64_t count) const {
    const int64_t source = pack_ ? plain : packed, target = pack_ ? packed : plain;
    std::memcpy(to_ + target, from_ + source, static_cast<size_t>(count));
  }

  bool pack() const { return pack_; }
  const uint8_t* from(int64_t at) const { return reinterpret_cast<const uint8_t*>(from_ + at); }
  uint8_t* to(int64_t at) const { return reinterpret_cast<uint8_t*>(to_ + at); }

 private:
  const std::byte* from_;
  std::byte* to_;
  bool pack_;
};

void MoveQ8_0(int64_t blocks, const Mover& mover) {
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t plain = b * static_cast<int64_t>(sizeof(BlockQ8_0));
    const int64_t chunk = b / 8 * 8, in_chunk = std::min<int64_t>(8, blocks - chunk);
    for (int64_t half = 0; half < 2; ++half) {
      mover.Bytes(plain + 2 + 16 * half, 32 * chunk + 16 * (half * in_chunk + b % 8), 16);
    }
    mover.Bytes(plain, 32 * blocks + 2 * b, 2);
  }
}

void MoveQ4_0(int64_t blocks, const Mover& mover) {
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t plain = b * static_cast<int64_t>(sizeof(BlockQ4_0));
    mover.Bytes(plain + 2, 16 * b, 16);
    mover.Bytes(plain, 16 * blocks + 2 * b, 2);
  }
}

// The 32 numbers of a block of a K type, one byte each.
using Numbers = std::array<uint8_t, kGroupValues>;

// Where a file holds the bits of a block's numbers. Several blocks share a run of 32 bytes and have
// their bits at different shifts.
struct PlainBits {
  int64_t low;  // the low four bits
  int low_shift;
  int64_t high;  // the other `high_bits` bits
  int high_shift;
  int high_bits;
};

PlainBits PlainBitsOf(Type type, int64_t b) {
  const int part = static_cast<int>(b % kSuperGroups);
  const int64_t plain = b / kSuperGroups * Traits(type).block_bytes;
  if (type == Type::kQ6_K) {
    return {plain + 64 * (part / 4) + 32 * (part % 2), 4 * (part % 4 / 2),
            plain + 128 + 32 * (part / 4), 2 * (part % 4), 2};
  }
  const bool five = type == Type::kQ5_K;
  return {plain + (five ? 48 : 16) + 32 * (part / 2), 4 * (part % 2), plain + 16, part,
          five ? 1 : 0};
}

void ReadPlain(const PlainBits& at, const Mover& mover, Numbers* numbers) {
  const uint8_t* low = mover.from(at.low);
  for (size_t i = 0; i < kGroupValues; ++i) {
    (*numbers)[i] = static_cast<uint8_t>((low[i] >> at.low_shift) & 15);
  }
  if (at.high_bits == 0) return;
  const uint8_t* high = mover.from(at.high);
  const int mask = (1 << at.high_bits) - 1;
  for (size_t i = 0; i < kGroupValues; ++i) {
    (*numbers)[i] |= static_cast<uint8_t>(((high[i] >> at.high_shift) & mask) << 4);
  }
}

// REQUIRES: the bits to write are zero.
void WritePlain(const PlainBits& at, const Numbers& numbers, const Mover& mover) {
  uint8_t* low = mover.to(at.low);
  for (size_t i = 0; i < kGroupValues; ++i) {
    low[i] |= static_cast<uint8_t>((numbers[i] & 15) << at.low_shift);
  }
  if (at.high_bits == 0) return;
  uint8_t* high = mover.to(at.high);
  for (size_t i = 0; i < kGroupValues; ++i) {
    high[i] |= static_cast<uint8_t>((numbers[i] >> 4) << at.high_shift);
  }
}

// Writes the bits above the nibbles, kBits of each value, to the 4 * kBits bytes of a block. Byte t
// of word h holds the bits of values t, t + 4, ... of the h-th part of the block.
template <int kBits>
void WriteTop(const Numbers& numbers, uint8_t* top) {
  constexpr size_t kPerByte = 8 / kBits;
  for (size_t h = 0; h < kBits; ++h) {
    for (size_t t = 0; t < 4; ++t) {
      int bits = 0;
      for (size_t w = 0; w < kPerByte; ++w) {
        bits |= (numbers[(h * kPerByte + w) * 4 + t] >> 4) << (w * kBits);
      }
      top[4 * h + t] = static_cast<uint8_t>(bits);
    }
  }
}

template <int kBits>
void ReadTop(const uint8_t* top, Numbers* numbers) {
  constexpr size_t kPerByte = 8 / kBits;
  for (size_t h = 0; h < kBits; ++h) {
    for (size_t w = 0; w < kPerByte; ++w) {
      for (size_t t = 0; t < 4; ++t) {
        const int bits = (top[4 * h + t] >> (w * kBits)) & ((1 << kBits) - 1);
        (*numbers)[(h * kPerByte + w) * 4 + t] |= static_cast<uint8_t>(bits << 4);
      }
    }
  }
}

void WritePacked(const Numbers& numbers, int high_bits, uint8_t* nibbles, uint8_t* top) {
  for (size_t i = 0; i < 16; ++i) {
    nibbles[i] = static_cast<uint8_t>((numbers[i] & 15) | numbers[i + 16] << 4);
  }
  if (high_bits == 1) WriteTop<1>(numbers, top);
  if (high_bits == 2) WriteTop<2>(numbers, top);
}

void ReadPacked(const uint8_t* nibbles, const uint8_t* top, int high_bits, Numbers* numbers) {
  for (size_t i = 0; i < 16; ++i) {
    (*numbers)[i] = nibbles[i] & 15;
    (*numbers)[i + 16] = nibbles[i] >> 4;
  }
  if (high_bits == 1) ReadTop<1>(top, numbers);
  if (high_bits == 2) ReadTop<2>(top, numbers);
}

void MoveK(Type type, int64_t blocks, const Mover& mover) {
  const Parts parts(type, blocks);
  const int64_t block_bytes = Traits(type).block_bytes;
  for (int64_t b = 0; b < blocks; ++b) {
    const PlainBits bits = PlainBitsOf(type, b);
    const int64_t nibbles = 16 * b, top = parts.top + 4 * bits.high_bits * b;
    Numbers numbers;
    if (mover.pack()) {
      ReadPlain(bits, mover, &numbers);
      WritePacked(numbers, bits.high_bits, mover.to(nibbles), mover.to(top));
    } else {
      ReadPacked(mover.from(nibbles), mover.from(top), bits.high_bits, &numbers);
      WritePlain(bits, numbers, mover);
    }
    const int64_t plain = b / kSuperGroups * block_bytes, part = b % kSuperGroups;
    if (type == Type::kQ6_K) {
      mover.Bytes(plain + 192 + 2 * part, parts.scales + 2 * b, 2);
      if (part == 0) mover.Bytes(plain + 208, parts.d + b / 4, 2);
    } else if (part == 0) {
      mover.Bytes(plain, parts.scales + 2 * b, 16);
    }
  }
}

void MoveF16(int64_t k, const Mover& mover) {
  for (int64_t i = 0; i < k; ++i) {
    const int64_t run = i / 256 * 256, lane = i % 32, pair = i % 256 / 64, upper = i % 64 / 32;
    const int64_t word = run + 256 <= k ? lane * 4 + pair : pair * 32 + lane;
    mover.Bytes(2 * i, 2 * run + 4 * word + 2 * upper, 2);
  }
}

void Move(Type type, int64_t k, const Mover& mover) {
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
    case Type::kQ6_K:
      return MoveK(type, blocks, mover);
    default:
      return;
  }
}

}  // namespace

bool PackedRowBytes(Type type, int64_t k, uint64_t* bytes) {
  uint64_t plain = 0;
  if (!HasPackedLayout(type) || !RowBytes(type, k, &plain)) return false;
  const uint64_t unit = type == Type::kF16 ? 128 : kPackedAlignment;
  if (plain > std::numeric_limits<uint32_t>::max() - unit) return false;
  *bytes = (plain + unit - 1) / unit * unit;
  return true;
}

void PackRow(Type type, int64_t k, const std::byte* plain, std::byte* packed) {
  uint64_t bytes = 0;
  if (!PackedRowBytes(type, k, &bytes)) return;
  std::fill_n(packed, bytes, std::byte{0});
  Move(type, k, Mover(plain, packed, true));
}

void UnpackRow(Type type, int64_t k, const std::byte* packed, std::byte* plain) {
  uint64_t bytes = 0;
  if (!HasPackedLayout(type) || !RowBytes(type, k, &bytes)) return;
  std::fill_n(plain, bytes, std::byte{0});
  Move(type, k, Mover(packed, plain, false));
}

}  // namespace trine::quant
