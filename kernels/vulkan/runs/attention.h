// Makes the runs of rope, kv_store and attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/reference/ops.h"
#include "kernels/vulkan/runs/dispatch.h"

namespace trine::vulkan {

// Operands: x [d, heads, tokens], table [2 * pairs, tokens], y. `workgroup` may be any size.
KernelRun RopeRun(const TensorView& x, const TensorView& table, reference::RopeMode mode,
                  const TensorView& y, uint32_t workgroup);

// Operands: x [d, kv_heads, tokens], slots i32 [tokens], cache [d, block_positions, kv_heads,
// blocks] of f32, f16, bf16 or q8_kv. `workgroup` is a multiple of 32.
KernelRun KvStoreRun(const TensorView& x, const TensorView& slots, const TensorView& cache,
                     uint32_t workgroup);

// Rotates q and k, and stores k and v in their caches, in one run. With a table, q and k are both
// rotated; with slots, k and v are both stored.
struct RotateStore {
  reference::RopeMode mode = reference::RopeMode::kInterleaved;
  std::optional<TensorView> table;         // nullopt: nothing is rotated
  std::optional<TensorView> q, rotated_q;  // set if there is a table
  TensorView k;
  std::optional<TensorView> rotated_k;  // set if an op other than the store reads the rotated k
  std::optional<TensorView> slots;      // nullopt: nothing is stored
  std::optional<TensorView> v, key_cache, value_cache;  // set if there are slots; no cache is q8_kv
};

// The numbers of RotateStoreRun's operands.
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

// The caller checks that the views fit together: heads of q and k have one width, k and v have the
// same tokens and heads, both caches have the same blocks. A rotated view may be the same view as
// its source; no other written view may overlap any view. `workgroup` may be any size.
KernelRun RotateStoreRun(const RotateStore& work, uint32_t workgroup);

// The operands of attention; their dims are those of reference::AttentionInputs.
struct AttentionViews {
  TensorView q, k, v, block_table, q_offsets, kv_lengths;
  const TensorView* sinks = nullptr;
  TensorView y;
  int64_t first_token = 0;  // q's first token counted as in q_offsets; not 0 if q and y are a part
};

// How the work is divided. Changes no bit of the result.
struct AttentionCut {
  uint32_t workgroup = 128;  // a multiple of 32, up to 256
  uint32_t rows = 4;         // rows of q that share each read of the cache: 4 or 8
  bool split = false;  // chunks are computed separately, with rows = 4; a second run joins them
};

// The sizes of a device that decide about the cut.
struct AttentionDevice {
  uint32_t busy_groups = 256;     // workgroups that keep the device busy
  uint32_t max_workgroup = 256;   // invocations of a workgroup, at most
  uint32_t shared_bytes = 32768;  // shared memory of a workgroup
};

// Returns a suitable cut for a run over at most `kv_positions` positions. For very wide heads every
// cut may need more shared memory than the device has: check AttentionSharedBytes.
AttentionCut ChooseAttentionCut(const AttentionViews& views, int64_t kv_positions,
                                const AttentionDevice& device);

// Returns the size of the scratch memory that a split cut needs; 0 for other cuts.
uint64_t AttentionScratchBytes(const AttentionViews& views, int64_t kv_positions,
                               const AttentionCut& cut);

// Returns the size of the shared memory that one workgroup needs.
uint64_t AttentionSharedBytes(const AttentionViews& views, const AttentionCut& cut);

// Operands: q, k, v, block_table, q_offsets, kv_lengths, sinks, y and, with `quantizes`, the
// quantised y, in which all heads of a token make one column; each head must have a multiple of 32
// values. `kv_positions` must not be less than any of kv_lengths.
std::vector<KernelRun> AttentionRuns(const AttentionViews& views,
                                     const reference::AttentionParams& params, int64_t kv_positions,
                                     const AttentionCut& cut, bool quantizes = false);
inline constexpr uint32_t kAttentionY = 7, kAttentionQuantized = 8;

}  // namespace trine::vulkan
