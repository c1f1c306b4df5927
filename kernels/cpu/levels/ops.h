// Declares the operations that the files of one level define; table.cc collects them.

#pragma once

#include "kernels/cpu/levels/kernel_table.h"

#ifndef TRINE_CPU_LEVEL
#error "Kernels are compiled per instruction set level: define TRINE_CPU_LEVEL"
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

// Documented in kernels/reference/ops.h.
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
decltype(reference::MoeCombine) MoeCombine;

// Documented in kernel_table.h.
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
