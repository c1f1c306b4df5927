// A KernelRun is one run of a shader. It is made from the views and attributes of an op, without a
// driver, and the backend records it. Each family of ops has a header that makes its runs
// (simple.h,
// ...).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/quant/block_types.h"
#include "kernels/vulkan/spirv/shader.h"

namespace trine::vulkan {

// An operand of an op, innermost dimension first; unused dimensions are 1. The innermost dimension
// is contiguous, so strides[0] is not read. `offset` counts from the start of the operand's
// binding; it is not 0 if the view begins between two offsets that the device can bind. A view must
// end below 2^32 bytes, because no binding is larger.
struct TensorView {
  quant::Type type = quant::Type::kF32;
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {0, 0, 0, 0};  // in bytes; may be 0
  uint64_t offset = 0;                            // in bytes
};

inline int64_t Rows(const TensorView& view) { return view.dims[1] * view.dims[2] * view.dims[3]; }

// An operand's number that stands for the plan's scratch memory. Other operands are numbered as the
// ABI counts them: the op's inputs, then its outputs; an absent optional input keeps its number.
inline constexpr uint32_t kScratchOperand = 0xffffffffu;

struct KernelRun {
  const Shader* shader = nullptr;
  std::vector<uint32_t> constants;             // by constant_id; [0] is the size of the workgroup
  std::vector<uint32_t> push;                  // the push constants, word by word
  std::array<uint32_t, 3> groups = {1, 1, 1};  // if one of them is 0, nothing is to be done
  // operands[b] is bound at b; the shader's `reads` and `writes` say how it is used. If an operand
  // is absent, its binding holds another operand of the run, which the shader does not use there.
  std::vector<uint32_t> operands;
  uint32_t subgroup_size = 0;  // the preferred size; 0: the driver's choice. Changes no result
  // The most bytes of shared memory that a workgroup uses; 0: at most the 16 KiB of every device.
  uint64_t shared_bytes = 0;
};

// The number of groups that every device accepts along any side.
inline constexpr uint32_t kMaxGroups = 65535;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Returns the number of groups for `work` invocations, at most kMaxGroups. Each invocation of a
// shader continues in strides until all work is done.
inline uint32_t CappedGroups(uint64_t work, uint32_t group_size) {
  const uint64_t groups = (work + group_size - 1) / group_size;
  return static_cast<uint32_t>(std::min<uint64_t>(groups, kMaxGroups));
}

// The size of a float and of a word of the shaders' buffers.
inline constexpr int64_t kWordBytes = 4;

// The workgroup of every shader that quantises activations, and its invocations for each block.
inline constexpr uint32_t kQuantizeWorkgroup = 64;
inline constexpr uint32_t kBlockLanes = 8;

// Return one word of the push constants.
inline uint32_t Word(int64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t FloatWord(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Appends a view's offset and its strides of dimensions 1 to `rank` - 1, in units of `unit` bytes.
inline void AppendPlace(const TensorView& view, int rank, int64_t unit,
                        std::vector<uint32_t>* push) {
  push->push_back(Word(static_cast<int64_t>(view.offset) / unit));
  for (int i = 1; i < rank; ++i) push->push_back(Word(view.strides[i] / unit));
}

// Returns whether the offset and the strides (of dimensions longer than 1) are multiples of `unit`.
inline bool IsWhole(const TensorView& view, int64_t unit) {
  bool whole = static_cast<int64_t>(view.offset) % unit == 0;
  for (int i = 1; i < 4; ++i) whole &= view.dims[i] == 1 || view.strides[i] % unit == 0;
  return whole;
}

// A view that is walked along some dims. `step` is its stride along the innermost dim, in bytes.
struct WalkedView {
  TensorView* view;
  int64_t step;
};

// Joins neighbouring dimensions of `dims` if no view has a gap between them, and adapts the views'
// strides. The views' own dims are not used.
inline void Flatten(std::array<int64_t, 4>* dims, const std::vector<WalkedView>& walked) {
  int last = 0;  // the last dimension that is kept
  for (int next = 1; next < 4; ++next) {
    const int64_t n = (*dims)[next];
    if (n == 1) continue;
    (*dims)[next] = 1;
    bool joins = true;
    for (const WalkedView& w : walked) {
      const int64_t step = last == 0 ? w.step : w.view->strides[last];
      joins &= w.view->strides[next] == step * (*dims)[last];
    }
    if (joins) {
      (*dims)[last] *= n;
      continue;
    }
    ++last;
    (*dims)[last] = n;
    for (const WalkedView& w : walked) w.view->strides[last] = w.view->strides[next];
  }
}

}  // namespace trine::vulkan
