// The operations as one level's files define them; table.cc collects them.

#ifndef TRINE_KERNELS_CPU_OPS_H_
#define TRINE_KERNELS_CPU_OPS_H_

#include "kernels/cpu/kernel_table.h"

#ifndef TRINE_CPU_LEVEL
#error "Kernels are compiled per instruction set level: define TRINE_CPU_LEVEL"
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

// As kernels/reference/ops.h has them.
decltype(reference::Copy) Copy;
decltype(reference::GatherRows) GatherRows;
decltype(reference::Add) Add;
decltype(reference::Mul) Mul;
decltype(reference::Scale) Scale;
decltype(reference::Softcap) Softcap;
decltype(reference::Activation) Activation;
decltype(reference::Glu) Glu;
decltype(reference::RmsNorm) RmsNorm;
decltype(reference::LayerNorm) LayerNorm;
decltype(reference::Rope) Rope;
decltype(reference::KvStore) KvStore;
decltype(reference::Attention) Attention;

// As kernel_table.h has them.
PackedShape ShapeOfPacked(quant::Type type, int64_t k);
void Pack(const PlainRows& rows, std::byte* group);
void QuantizeActivations(const View& x, ActivationReader reader, ActivationChunk* chunks,
                         Range range);
void Matmul(const View& w, const View& x, const ActivationChunk* chunks, const View* bias,
            const View& dst, Range features, const Tuning& tuning);
void MoeMatmul(const View& w, const View& x, const ActivationChunk* chunks, const View& ids,
               const View* bias, const View& dst, Range features, const Tuning& tuning);
bool MatmulHasWays(const View& w, int64_t columns);
void AttendPieces(const reference::AttentionInputs& inputs,
                  const reference::AttentionParams& params, const AttentionPieces& pieces,
                  Range range);
void JoinPieces(const reference::AttentionInputs& inputs, const reference::AttentionParams& params,
                const AttentionPieces& pieces, const View& dst, Range rows);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_OPS_H_
