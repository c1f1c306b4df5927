// Makes the launches of attention over a paged cache, in the contract's chunks of 256 positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/weights/product.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// The operands of reference::AttentionInputs, and y. sinks may be absent.
struct AttentionTensors {
  Tensor q, k, v, block_table, q_offsets, kv_lengths, sinks, y;
};

// The most values of a head that CanAttendAlong takes with a norm of it.
inline constexpr uint32_t kMostNormedHead = 256;

// Returns the bytes of scratch that these tensors need, and runs with fewer positions or tokens
// too. `positions` must be a multiple of 256, and at least as large as any of kv_lengths.
uint64_t AttentionScratchBytes(const AttentionTensors& tensors, int64_t positions,
                               const DeviceShape& device);
// Returns the bytes of scratch that a run with exactly these tokens and positions uses.
uint64_t AttentionScratchUsed(const AttentionTensors& tensors, int64_t positions,
                              const DeviceShape& device);

// Appends the launches of attention. Scratch must be aligned to 16 bytes. If `quantized` is
// present, it receives y quantised: the heads of a token, each of whole blocks, make one column. y
// then needs no data. `before`: the ops before attention, to be done in the same launch; null: they
// are done already. REQUIRES: CanAttendAlong, if it is not null.
void AddAttention(const AttentionTensors& tensors, const reference::AttentionParams& params,
                  int64_t positions, std::byte* scratch, const QuantizedColumns& quantized,
                  const RotateStore* before, const DeviceShape& device,
                  std::vector<Launch>* launches);

// Returns whether attention of one token can do `before` itself. REQUIRES: `before` stores into the
// caches that attention reads, its rotated q is attention's q, and it reads nothing that it writes.
bool CanAttendAlong(const AttentionTensors& tensors, const RotateStore& before, int64_t positions,
                    const DeviceShape& device);

}  // namespace trine::hip
