// Returns the launches of all ops but products and attention.
//
// The destination of an op that works value by value may share the memory of an operand of its
// shape, if each value of them has the same address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// y = a + b, or a * b. A dimension of 1 in b is repeated.
Launch AddLaunch(const Tensor& a, const Tensor& b, const Tensor& y);
Launch MulLaunch(const Tensor& a, const Tensor& b, const Tensor& y);

// y = x * scale.
Launch ScaleLaunch(const Tensor& x, float scale, const Tensor& y);
// y = cap * tanh(x / cap).
Launch SoftcapLaunch(const Tensor& x, float cap, const Tensor& y);
Launch ActivationLaunch(const Tensor& x, reference::ActivationKind kind, const Tensor& y);

// Writes activation(gate) * up to y, or as quantised activations, or to both; an absent destination
// is not written. If quantised, each row becomes a column and must have whole blocks of 32.
Launch GluLaunch(const Tensor& gate, const Tensor& up, const reference::GluParams& params,
                 const Tensor& y, const QuantizedColumns& quantized);

// Copies bytes of equal types, or converts among f32, f16 and bf16. src and dst must not overlap.
Launch CopyLaunch(const Tensor& src, const Tensor& dst);

// y f32 [k, n] = rows ids i32 [n] of table [k, rows], after Canon. The table may have any weight
// type, packed or not. An id outside the table gives zeros.
Launch GatherRowsLaunch(const Tensor& table, const Tensor& ids, const Tensor& y);

// The operands of rms_norm or layer_norm. The same launch can add a tensor before the norm and
// quantise the result, as most models need it. All tensors are f32. y and sum may share the memory
// of x or of addend, if each value of them has the same address.
struct Norm {
  Tensor x;
  Tensor addend;  // has x's shape: x + addend is normed; absent: x is normed
  Tensor sum;     // receives x + addend; present if and only if addend is
  Tensor weight;  // [n] or absent
  Tensor bias;    // [n] or absent
  float eps = 0.0f;
  bool centred = false;        // true: layer_norm; false: rms_norm
  Tensor y;                    // receives the result; absent: it is not written
  QuantizedColumns quantized;  // receives it quantised, if n is a multiple of 32; may be absent
};

// Returns the launch that does all of this.
Launch NormLaunch(const Norm& norm);

// Quantises activations for products of quantised weights, if the op before has not done that. x is
// f32 [k, ..], with k a multiple of 32. Each row of x becomes a column.
Launch QuantizeLaunch(const Tensor& x, const QuantizedColumns& to);

// The rms_norm of each head.
struct HeadNorm {
  Tensor weight;  // [d]; absent: no norm
  float eps = 0.0f;
};

// The operands of the ops before attention, in one launch: rope of q, rope of k, and the stores of
// k and v into their caches. Any of the parts may be absent.
//
// q, k, v and the rotated tensors are [d, heads, tokens], caches [d, block_positions, kv_heads,
// blocks] of f32, f16, bf16 or q8_kv. A rotated tensor may be the view of its source; nothing else
// that is written may overlap anything.
struct RotateStore {
  reference::RopeMode mode = reference::RopeMode::kInterleaved;
  Tensor table;             // [2 * pairs, tokens]; absent: nothing is rotated
  Tensor q, rotated_q;      // both or none
  Tensor k, rotated_k;      // rotated_k: present if rotated k is wanted outside of the cache too
  Tensor key_cache;         // absent: k is not stored
  Tensor v, value_cache;    // both or none
  Tensor slots;             // i32 [tokens]; present if anything is stored
  HeadNorm q_norm, k_norm;  // of q and k before the rotation. Only attention can do them along.
};

// Returns whether one launch can do it, without norms. Returns false if k is rotated in place and
// stored as q8_kv: blocks of threads would read what other blocks have written. Then the rope and
// the stores need a launch each.
bool CanRotateStore(const RotateStore& work);

// Returns the launch that does all of this. REQUIRES: CanRotateStore.
Launch RotateStoreLaunch(const RotateStore& work);

// Rotates heads (rotary embedding), without a store. x and y [d, heads, tokens], table [2 * pairs,
// tokens]. y may be x.
inline Launch RopeLaunch(const Tensor& x, const Tensor& table, reference::RopeMode mode,
                         const Tensor& y) {
  RotateStore work;
  work.mode = mode;
  work.table = table;
  work.q = x;
  work.rotated_q = y;
  return RotateStoreLaunch(work);
}

// Stores x [d, kv_heads, tokens], without a rotation, at slots i32 [tokens] of cache [d,
// block_positions, kv_heads, blocks] of f32, f16, bf16 or q8_kv.
inline Launch KvStoreLaunch(const Tensor& x, const Tensor& slots, const Tensor& cache) {
  RotateStore work;
  work.v = x;
  work.slots = slots;
  work.value_cache = cache;
  return RotateStoreLaunch(work);
}

// Selects the experts of each token: logits [experts, tokens], selection_bias [experts] or absent
// -> ids i32 [used, tokens], weights [used, tokens].
Launch MoeRouteLaunch(const Tensor& logits, const Tensor& selection_bias,
                      const reference::MoeRouteParams& params, const Tensor& ids,
                      const Tensor& weights);

// Combines the results of experts: x [n, used, tokens], weights [used, tokens] -> y [n, tokens].
Launch MoeCombineLaunch(const Tensor& x, const Tensor& weights, const Tensor& y);

// Selects the k highest values of each row: logits [n, rows] -> ids i32 [k, rows], values [k,
// rows]; k <= n.
Launch TopKLaunch(const Tensor& logits, const Tensor& ids, const Tensor& values);

// Bytes for CopyPiecesLaunch to copy.
struct Piece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t bytes = 0;
};

inline constexpr size_t kMostPieces = 16;
// The most bytes of a piece for which a kernel is faster than the runtime's copy.
inline constexpr uint64_t kMostPieceBytes = 64 << 10;

// Copies pieces between the device's own memory and memory that device and host both see. A kernel
// does that, because each small piece would otherwise cost the start of a copy. `pieces`: at most
// kMostPieces, which must not overlap.
Launch CopyPiecesLaunch(std::span<const Piece> pieces);

}  // namespace trine::hip
