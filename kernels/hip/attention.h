// Attention over a paged cache, in the contract's chunks of 256 positions.
#ifndef TRINE_KERNELS_HIP_ATTENTION_H_
#define TRINE_KERNELS_HIP_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/product.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/rotate_store.h"
#include "kernels/hip/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// As reference::AttentionInputs; sinks may be absent.
struct AttentionTensors {
  Tensor q, k, v, block_table, q_offsets, kv_lengths, sinks, y;
};

// `positions` is no less than any of kv_lengths, and a multiple of 256. What is needed for fewer
// positions, or fewer tokens, is no more.
uint64_t AttentionScratchBytes(const AttentionTensors& tensors, int64_t positions,
                               const DeviceShape& device);
// Of that, what these shapes themselves use.
uint64_t AttentionScratchUsed(const AttentionTensors& tensors, int64_t positions,
                              const DeviceShape& device);

// Scratch is aligned to 16 bytes. Where `quantized` is there, y becomes columns besides: the heads
// of a token, each of whole blocks, make one; y may then be absent, but for its dimensions.
//
// `before`: null, or what goes before it and is done along, where CanAttendAlong.
void AddAttention(const AttentionTensors& tensors, const reference::AttentionParams& params,
                  int64_t positions, std::byte* scratch, const QuantizedColumns& quantized,
                  const RotateStore* before, const DeviceShape& device,
                  std::vector<Launch>* launches);

// Whether attention of one token can rotate and store its rows itself. They are of its own caches,
// what is rotated is its q, and nothing that it writes is read.
bool CanAttendAlong(const AttentionTensors& tensors, const RotateStore& before, int64_t positions,
                    const DeviceShape& device);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ATTENTION_H_
