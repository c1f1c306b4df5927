// Runs of rope, kv_store and attention.
#ifndef TRINE_KERNELS_VULKAN_ATTENTION_H_
#define TRINE_KERNELS_VULKAN_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/reference/ops.h"
#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

// Operands: x [d, heads, tokens], table [2 * pairs, tokens], y. `workgroup` is free.
KernelRun RopeRun(const TensorView& x, const TensorView& table, reference::RopeMode mode,
                  const TensorView& y, uint32_t workgroup);

// Operands: x [d, kv_heads, tokens], slots i32 [tokens], cache [d, block_positions, kv_heads,
// blocks] of f32, f16, bf16 or q8_kv. `workgroup` is a multiple of 32.
KernelRun KvStoreRun(const TensorView& x, const TensorView& slots, const TensorView& cache,
                     uint32_t workgroup);

// Rope of q and of k and the stores of k and of v, as one run. Each pair of views is there or not:
// q alone is not rotated, k is rotated where q is, and v is stored where k is.
struct RotateStore {
  reference::RopeMode mode = reference::RopeMode::kInterleaved;
  std::optional<TensorView> table;         // none: nothing is rotated
  std::optional<TensorView> q, rotated_q;  // where there is a table
  TensorView k;
  std::optional<TensorView> rotated_k;                  // where it is wanted besides in the cache
  std::optional<TensorView> slots;                      // none: nothing is stored
  std::optional<TensorView> v, key_cache, value_cache;  // where there are slots; not q8_kv
};

enum RotateStoreOperand : uint32_t {
  kRotateQ,
  kRotateK,
  kStoreV,
  kRotateTable,
  kStoreSlots,
  kRotatedQ,
  kRotatedK,
  kKeyCache,
  kValueCache
};

// What views must have in common is the caller's: heads of q and k are of one width, k and v have
// the same tokens and heads, both caches the same blocks. Either rotated view may be the view of
// what is rotated; nothing else that is written overlaps anything. `workgroup` is free.
KernelRun RotateStoreRun(const RotateStore& work, uint32_t workgroup);

// As reference::AttentionInputs.
struct AttentionViews {
  TensorView q, k, v, block_table, q_offsets, kv_lengths;
  const TensorView* sinks = nullptr;
  TensorView y;
  int64_t first_token = 0;  // as q_offsets counts it, where q and y are a part of the tokens
};

// How the work is cut, which changes no bit.
struct AttentionCut {
  uint32_t workgroup = 128;  // a multiple of 32, up to 256
  uint32_t rows = 4;         // of q that share what is read of the cache: 4 or 8
  bool split = false;        // chunks apart, with rows = 4, and joined by a second run
};

struct AttentionDevice {
  uint32_t busy_groups = 256;     // workgroups that keep the device busy
  uint32_t max_workgroup = 256;   // invocations
  uint32_t shared_bytes = 32768;  // of a workgroup
};

// What suits a run over at most `kv_positions` positions. Very wide heads need more shared memory
// than a device has, however they are cut: AttentionSharedBytes tells.
AttentionCut ChooseAttentionCut(const AttentionViews& views, int64_t kv_positions,
                                const AttentionDevice& device);

// Of scratch memory, for a cut that splits; else 0.
uint64_t AttentionScratchBytes(const AttentionViews& views, int64_t kv_positions,
                               const AttentionCut& cut);

// What one workgroup needs of shared memory.
uint64_t AttentionSharedBytes(const AttentionViews& views, const AttentionCut& cut);

// Operands: q, k, v, block_table, q_offsets, kv_lengths, sinks, y, and, where y is quantised
// besides, the columns of quantised activations: a token's heads, each of a multiple of 32 values,
// make one. `kv_positions` is no less than any of kv_lengths.
std::vector<KernelRun> AttentionRuns(const AttentionViews& views,
                                     const reference::AttentionParams& params, int64_t kv_positions,
                                     const AttentionCut& cut, bool quantizes = false);
inline constexpr uint32_t kAttentionY = 7, kAttentionQuantized = 8;

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_ATTENTION_H_
