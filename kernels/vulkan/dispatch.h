// One run of a shader, as the op layer records it: made from views and attributes alone, without a
// driver. Each family of ops has a header of functions that make these (elementwise.h, norm.h, ..).
#ifndef TRINE_KERNELS_VULKAN_DISPATCH_H_
#define TRINE_KERNELS_VULKAN_DISPATCH_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/quant/block_types.h"
#include "kernels/vulkan/shader.h"

namespace trine::vulkan {

// An operand of an op, innermost dimension first; unused dimensions are 1. The innermost one is
// contiguous, so strides[0] is not read. `offset` is from where the operand's binding begins: it is
// not 0 where a view begins between two offsets that the device can bind. Everything a view covers
// lies below 2^32 bytes, as no binding is larger.
struct TensorView {
  quant::Type type = quant::Type::kF32;
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {0, 0, 0, 0};  // in bytes; may be 0
  uint64_t offset = 0;                            // in bytes
};

inline int64_t Rows(const TensorView& view) { return view.dims[1] * view.dims[2] * view.dims[3]; }

// What a binding holds: an operand of the op, its inputs first, then its outputs, counted as the
// ABI counts them (an absent optional input keeps its number), or memory of the plan's own.
inline constexpr uint32_t kScratchOperand = 0xffffffffu;

struct KernelRun {
  const Shader* shader = nullptr;
  std::vector<uint32_t> constants;             // by constant_id; [0] is the size of the workgroup
  std::vector<uint32_t> push;                  // the push constants, word by word
  std::array<uint32_t, 3> groups = {1, 1, 1};  // a 0 among them: there is nothing to do
  // operands[b] is bound at b. Whether it is read or written is the shader's `reads` and `writes`.
  // A binding that stands for an absent input holds the op's first one, and is not looked at.
  std::vector<uint32_t> operands;
  uint32_t subgroup_size =
      0;  // that suits it; 0: whatever the driver takes. No result depends on it
  // Of shared memory that a workgroup has, at the most; 0: less than the 16 KiB of every device.
  uint64_t shared_bytes = 0;
};

// No device takes fewer groups than this along any side.
inline constexpr uint32_t kMaxGroups = 65535;

// As many groups as `work` invocations need, at most the limit: shaders go on from there by
// strides.
inline uint32_t CappedGroups(uint64_t work, uint32_t group_size) {
  const uint64_t groups = (work + group_size - 1) / group_size;
  return static_cast<uint32_t>(std::min<uint64_t>(groups, kMaxGroups));
}

// Push constants are put together from words.
inline uint32_t Word(int64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t FloatWord(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// A view's offset and its strides of dimensions 1 to `rank` - 1, in units of `unit` bytes.
inline void AppendPlace(const TensorView& view, int rank, int64_t unit,
                        std::vector<uint32_t>* push) {
  push->push_back(Word(static_cast<int64_t>(view.offset) / unit));
  for (int i = 1; i < rank; ++i) push->push_back(Word(view.strides[i] / unit));
}

// Whether offset and strides (of dimensions longer than 1) are whole units.
inline bool IsWhole(const TensorView& view, int64_t unit) {
  bool whole = static_cast<int64_t>(view.offset) % unit == 0;
  for (int i = 1; i < 4; ++i) whole &= view.dims[i] == 1 || view.strides[i] % unit == 0;
  return whole;
}

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_DISPATCH_H_
