// The operations of kernels/reference/ops.h at one instruction set level, equal to it bit for bit.
//
// Signatures and rules are the reference's: no errors, no allocation, nothing touched but the
// operands, ranges split at will. Only matrix products differ: the activations that meet quantised
// weights are quantised beforehand, once for every product that reads them.
//
// Tables are constant data. Any thread may call the functions of a level the processor has.

#ifndef TRINE_KERNELS_CPU_KERNEL_TABLE_H_
#define TRINE_KERNELS_CPU_KERNEL_TABLE_H_

#include "kernels/cpu/activations.h"
#include "kernels/cpu/attention_pieces.h"
#include "kernels/cpu/packed.h"
#include "kernels/cpu/tuning.h"
#include "kernels/reference/ops.h"

namespace trine::cpu_kernels {

using reference::Range;
using reference::View;

struct KernelTable {
  const char* level;

  decltype(&reference::Copy) copy;
  decltype(&reference::GatherRows) gather_rows;
  decltype(&reference::Add) add;
  decltype(&reference::Mul) mul;
  decltype(&reference::Scale) scale;
  decltype(&reference::Softcap) softcap;
  decltype(&reference::Activation) activation;
  decltype(&reference::Glu) glu;
  decltype(&reference::RmsNorm) rms_norm;
  decltype(&reference::LayerNorm) layer_norm;
  decltype(&reference::Rope) rope;
  decltype(&reference::KvStore) kv_store;
  decltype(&reference::Attention) attention;
  decltype(&reference::MoeRoute) moe_route;
  decltype(&reference::MoeCombine) moe_combine;
  decltype(&reference::TopK) top_k;

  // Weights in the level's own order: what matmul, moe_matmul and gather_rows take beside plain
  // ones. Levels of one `packing` have one order; 0: the level has none.
  uint32_t packing;
  PackedShape (*packed_shape)(quant::Type type, int64_t k);
  void (*pack)(const PlainRows& rows, std::byte* group);

  // Chunk c of row r of x [k, ...] goes where activations.h says, for a matmul in the order that
  // the level wants there. `range` counts chunks row by row, so that several workers can share one
  // row.
  ActivationOrder matmul_order;
  void (*quantize_activations)(const View& x, ActivationReader reader, ActivationChunk* chunks,
                               Range range);

  // As the reference's, with `chunks` the rows of x, quantised for this reader, where w is
  // quantised (x's values are then not read), and null where it is not.
  void (*matmul)(const View& w, const View& x, const ActivationChunk* chunks, const View* bias,
                 const View& dst, Range features, const Tuning& tuning);
  void (*moe_matmul)(const View& w, const View& x, const ActivationChunk* chunks, const View& ids,
                     const View* bias, const View& dst, Range features, const Tuning& tuning);

  // Whether a matmul of so many columns, more than one, can go either Way; else it goes the only
  // one there is, whatever it is told.
  bool (*matmul_has_ways)(const View& w, int64_t columns);

  // Attention in two steps: some of its pieces, then, when all are done, some rows of dst. Equal to
  // `attention`, which needs no partial results.
  void (*attend_pieces)(const reference::AttentionInputs& inputs,
                        const reference::AttentionParams& params, const AttentionPieces& pieces,
                        Range range);
  void (*join_pieces)(const reference::AttentionInputs& inputs,
                      const reference::AttentionParams& params, const AttentionPieces& pieces,
                      const View& dst, Range rows);
};

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_KERNEL_TABLE_H_
