// The scalar reference as a level. It is for processors without another level, and for comparing
// the run of a whole model.

#include "kernels/cpu/levels/levels.h"

namespace trine::cpu_kernels {
namespace {

PackedShape ShapeOfPacked(quant::Type, int64_t) { return {}; }
void Pack(const PlainRows&, std::byte*) {}

void QuantizeActivations(const View&, ActivationReader, ActivationChunk*, Range) {}

void Matmul(const View& w, const View& x, const ActivationChunk*, const View* bias, const View& dst,
            Range features, const Tuning&) {
  reference::Matmul(w, x, bias, dst, features);
}

void MoeMatmul(const View& w, const View& x, const ActivationChunk*, const View& ids,
               const View* bias, const View& dst, Range features, const Tuning&) {
  reference::MoeMatmul(w, x, ids, bias, dst, features);
}

bool MatmulHasWays(const View&, int64_t) { return false; }

// Does nothing: the reference has no partial results, so JoinPieces computes everything.
void AttendPieces(const reference::AttentionInputs&, const reference::AttentionParams&,
                  const AttentionPieces&, Range) {}

void JoinPieces(const reference::AttentionInputs& inputs, const reference::AttentionParams& params,
                const AttentionPieces&, const View& dst, Range rows) {
  reference::Attention(inputs, params, dst, rows);
}

}  // namespace

constinit const KernelTable kReferenceLevel = {
    .level = "reference",
    .copy = reference::Copy,
    .gather_rows = reference::GatherRows,
    .add = reference::Add,
    .mul = reference::Mul,
    .scale = reference::Scale,
    .softcap = reference::Softcap,
    .activation = reference::Activation,
    .glu = reference::Glu,
    .rms_norm = reference::RmsNorm,
    .layer_norm = reference::LayerNorm,
    .rope = reference::Rope,
    .kv_store = reference::KvStore,
    .attention = reference::Attention,
    .moe_route = reference::MoeRoute,
    .moe_combine = reference::MoeCombine,
    .top_k = reference::TopK,
    .packing = 0,
    .packed_shape = ShapeOfPacked,
    .pack = Pack,
    .matmul_order = ActivationOrder::kRows,
    .quantize_activations = QuantizeActivations,
    .matmul = Matmul,
    .moe_matmul = MoeMatmul,
    .matmul_has_ways = MatmulHasWays,
    .attend_pieces = AttendPieces,
    .join_pieces = JoinPieces,
};

}  // namespace trine::cpu_kernels
