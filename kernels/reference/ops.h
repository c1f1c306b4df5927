// The operations of a model, in scalar code. The kernels of every backend equal them bit for bit.
//
// The order of every float operation is written in docs/numerics.md; nothing here depends on the
// compiler, the processor, the thread count or how a range is split. Float inputs are canonical,
// and so is every float output that is f32.
//
// Shapes are written innermost first. The caller has checked them: an operation reports no errors,
// allocates nothing and touches only its operands. Operands marked "or null" are optional. A
// destination may be one of the element-wise inputs, row for row; otherwise it overlaps nothing.
// Unless a comment says otherwise types are f32, and `rows` counts rows of `dst` (all dimensions
// but the innermost).

#pragma once

#include <cstdint>

#include "kernels/reference/view.h"

namespace trine::reference {

// --- Moving data: copy.cc

// Copies src to dst, which has the same dims. Moves bytes if the types are equal. Otherwise
// converts values among f32, f16 and bf16: to f16 saturating at +-65504, to f16 and bf16 rounding
// to nearest even, to f32 with canon.
void Copy(const View& src, const View& dst, Range rows);

// dst [k, n] = rows ids [n] (i32) of table [k, rows] (any weight type), canon'd. An id outside the
// table gives zeros.
void GatherRows(const View& table, const View& ids, const View& dst, Range rows);

// --- Element by element: elementwise.cc

// dst = a + b, or a * b. A dimension of 1 in b is repeated.
void Add(const View& a, const View& b, const View& dst, Range rows);
void Mul(const View& a, const View& b, const View& dst, Range rows);
// dst = x * scale.
void Scale(const View& x, float scale, const View& dst, Range rows);
// dst = cap * tanh(x / cap).
void Softcap(const View& x, float cap, const View& dst, Range rows);

enum class ActivationKind { kSilu, kGelu, kRelu, kTanh };
void Activation(const View& x, ActivationKind kind, const View& dst, Range rows);

enum class GluKind {
  kSilu,
  kGelu,
  kClampedSwiglu,  // gpt-oss: gate and up are clamped by `limit`, up is raised by 1
};
struct GluParams {
  GluKind kind = GluKind::kSilu;
  float alpha = 1.702f;  // kClampedSwiglu only
  float limit = 7.0f;    // kClampedSwiglu only
};
// dst = activation(gate) * up.
void Glu(const View& gate, const View& up, const GluParams& params, const View& dst, Range rows);

// --- Norms: norm.cc

// Norms each row by its root mean square. weight [n] or null.
void RmsNorm(const View& x, const View* weight, float eps, const View& dst, Range rows);
// Norms each row by its mean and its deviation. weight [n] or null, bias [n] or null.
void LayerNorm(const View& x, const View* weight, const View* bias, float eps, const View& dst,
               Range rows);

// --- Matrix products: matmul.cc

// dst [n, m] = w [k, n] (any weight type) times x [k, m], plus bias [n] or null. k is a multiple of
// the weight's block. `features` is a range of n: each call computes that part of every dst row.
void Matmul(const View& w, const View& x, const View* bias, const View& dst, Range features);

// --- Attention: elementwise.cc, copy.cc, attention.cc

enum class RopeMode {
  kInterleaved,  // pairs (2i, 2i + 1)
  kHalves,       // pairs (i, i + pairs)
};
// Rotates the pairs of each head by a token's angles. x and dst [head_dim, heads, tokens]; table
// [2 * pairs, tokens], canonical: the cosines, then the sines. Values beyond 2 * pairs are copied.
void Rope(const View& x, const View& table, RopeMode mode, const View& dst, Range rows);

// Writes src [head_dim, kv_heads, tokens] into cache [head_dim, block_positions, kv_heads,
// n_blocks] (f32, f16, bf16 or q8_kv) at slots [tokens] (i32), slot = block * block_positions +
// offset; a slot outside the cache is skipped. `rows` counts rows of src.
void KvStore(const View& src, const View& slots, const View& cache, Range rows);

struct AttentionInputs {
  View q;            // [head_dim, heads, tokens]
  View k;            // [head_dim, block_positions, kv_heads, n_blocks], as KvStore's cache
  View v;            // [head_dim_v, block_positions, kv_heads, n_blocks]
  View block_table;  // i32 [max_blocks, n_seqs]
  View q_offsets;    // i32 [n_seqs + 1]: sequence s has tokens [q_offsets[s], q_offsets[s + 1])
  View kv_lengths;   // i32 [n_seqs]: positions in the cache, this batch's included
  const View* sinks = nullptr;  // [heads] or null
};
struct AttentionParams {
  float scale = 1.0f;
  float softcap = 0.0f;  // 0: none
  int64_t window = 0;    // 0: none; else position p sees t > p - window
  bool causal = true;    // position p sees t <= p
};
// Computes attention over the cache into dst [head_dim_v, heads, tokens]. The tokens of a sequence
// are its last positions. Head h reads kv head h / (heads / kv_heads). A token that sees nothing,
// or is in no sequence, gives zeros.
void Attention(const AttentionInputs& inputs, const AttentionParams& params, const View& dst,
               Range rows);

// --- Mixture of experts: moe.cc, matmul.cc

enum class MoeScoring {
  kSoftmax,          // over all experts, then select
  kSigmoid,          // of each expert, then select
  kSelectedSoftmax,  // select by logit, then softmax over the selected
};
struct MoeRouteParams {
  MoeScoring scoring = MoeScoring::kSoftmax;
  bool normalize = false;  // weights of a token are divided by their sum
  float scale = 1.0f;      // applied when not 1
};
// Selects the experts of each token: logits [n_experts, tokens], selection_bias [n_experts] or null
// -> ids i32 [n_used, tokens] and weights [n_used, tokens]. They are in order of selection: highest
// first, among equals the lowest id first. The bias takes part in selection only. `tokens` is a
// range of tokens.
void MoeRoute(const View& logits, const View* selection_bias, const MoeRouteParams& params,
              const View& ids, const View& weights, Range tokens);

// dst [n, n_used, tokens] = for each slot, w [k, n, n_experts] of expert ids [n_used, tokens] (i32)
// times x [k, n_used or 1, tokens], plus that expert's row of bias [n, n_experts] or null. An id
// that is no expert gives zeros. `features` is a range of n.
void MoeMatmul(const View& w, const View& x, const View& ids, const View* bias, const View& dst,
               Range features);

// dst [n, tokens] = the sum over slots of x [n, n_used, tokens] times weights [n_used, tokens].
void MoeCombine(const View& x, const View& weights, const View& dst, Range rows);

// --- Selection: moe.cc

// Selects the k highest values of each row: logits [n, rows] -> ids i32 [k, rows] and values
// [k, rows], highest first, among equals the lowest id first. k <= n. `rows` counts rows of logits.
void TopK(const View& logits, const View& ids, const View& values, Range rows);

}  // namespace trine::reference
