// The table of one level. Constant data: reading it runs none of the level's instructions.

#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/int8_dot.h"

#define TRINE_TEXT_OF(x) #x
#define TRINE_TEXT(x) TRINE_TEXT_OF(x)

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

extern const KernelTable kTable;
constinit const KernelTable kTable = {
    .level = TRINE_TEXT(TRINE_CPU_LEVEL),
    .copy = Copy,
    .gather_rows = GatherRows,
    .add = Add,
    .mul = Mul,
    .scale = Scale,
    .softcap = Softcap,
    .activation = Activation,
    .glu = Glu,
    .rms_norm = RmsNorm,
    .layer_norm = LayerNorm,
    .rope = Rope,
    .kv_store = KvStore,
    .attention = Attention,
    .moe_route = reference::MoeRoute,
    .moe_combine = MoeCombine,
    .top_k = reference::TopK,
    .packing = kPacking,
    .packed_shape = ShapeOfPacked,
    .pack = Pack,
    .matmul_order = TRINE_HAS_AMX ? ActivationOrder::kRecords
                    : kPairs      ? ActivationOrder::kPairs
                                  : ActivationOrder::kRows,
    .quantize_activations = QuantizeActivations,
    .matmul = Matmul,
    .moe_matmul = MoeMatmul,
    .matmul_has_ways = MatmulHasWays,
    .attend_pieces = AttendPieces,
    .join_pieces = JoinPieces,
};

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
