// The operations of kernels/reference/ops.h at one instruction set level, equal to it bit for bit.
//
// Signatures and rules are those of the reference: a function reports no errors, allocates nothing
// and touches only its operands, and its range may be split at will. Only matrix products differ:
// activations for quantised weights are quantised beforehand, once for all products that read them.
//
// Tables are constant data. Any thread may call the functions of a level that the processor has.
#pragma once

#include <cstdint>

#include "kernels/cpu/levels/activations.h"
#include "kernels/cpu/levels/packed.h"
#include "kernels/reference/ops.h"

namespace trine::cpu_kernels {

using reference::Range;
using reference::View;

// Attention cut into pieces: a piece is one token, one kv head and one chunk of positions. If few
// tokens see many positions, pieces give work to more workers than there are kv heads. Each piece
// writes the partial results of its heads. When all pieces are done, the partial results are joined
// in the contract's order.
constexpr int64_t kAttentionChunk = 256;  // positions, by docs/numerics.md

struct AttentionPieces {
  // The most chunks that a token sees. Piece (token * kv_heads + kv_head) * chunks + i is chunk i
  // of the chunks that the token sees, if it sees so many.
  int64_t chunks;
  // The partial results, not owned: a row of chunks * PartialFloats(v_width) floats for each token
  // and head, in the order token * heads + head.
  float* partials;
};

// The partial results of one head and chunk: a header with the maximum and the sum, then the
// weighted values, which begin in a new cache line.
constexpr int64_t kPartialHeader = 16;
static constexpr int64_t PartialFloats(int64_t v_width) {
  return kPartialHeader + (v_width + 15) / 16 * 16;
}

// Returns the most chunks that one token can see, in a sequence of `positions` positions. A causal
// token with a window sees only the last ones; `window` is 0 if there is none. A token that is not
// causal also sees all later positions, so the window limits nothing.
static constexpr int64_t ChunksSeen(int64_t positions, int64_t window, bool causal) {
  const int64_t all = (positions + kAttentionChunk - 1) / kAttentionChunk;
  if (window == 0 || !causal) return all;
  const int64_t within = (window - 2 + kAttentionChunk) / kAttentionChunk + 1;
  return within < all ? within : all;
}

// The data caches of a core that runs products, in bytes; of a cache that cores share, the core's
// part. The defaults are a guess, for processors whose sizes are not known.
struct Caches {
  int64_t first_level = 32 << 10;
  int64_t second_level = 512 << 10;
};

// Chooses how weights are multiplied with several columns.
enum class Way : uint8_t {
  kUsual,   // kDirect or kTiles, by the number of columns
  kDirect,  // unpacked or converted where they are multiplied, once for every few columns
  kTiles,   // unpacked or converted into a tile, once for all columns
};

// Chooses the way of each expert that several columns share, one after the other, and is told when
// its product has ended. The thread that multiplies calls the functions.
struct ExpertWays {
  void* self = nullptr;
  Way (*begin)(void* self, int64_t columns) = nullptr;
  void (*end)(void* self) = nullptr;
};

// Settings of a product that change its speed and never its result.
struct Tuning {
  Caches caches;
  Way way = Way::kUsual;
  const ExpertWays* experts = nullptr;  // for moe_matmul; null: all experts go `way`
};

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

  // Describe and make the level's packed weights (packed.h), which matmul, moe_matmul and
  // gather_rows take as well as plain ones. Levels with the same `packing` have the same layout; 0:
  // the level packs nothing.
  uint32_t packing;
  PackedShape (*packed_shape)(quant::Type type, int64_t k);
  void (*pack)(const PlainRows& rows, std::byte* group);

  // Quantises x [k, ...] into chunks, for one reader. A matmul reads them in `matmul_order`;
  // activations.h says where a chunk of a row lies. `range` counts chunks row by row, so that
  // workers can share a row.
  ActivationOrder matmul_order;
  void (*quantize_activations)(const View& x, ActivationReader reader, ActivationChunk* chunks,
                               Range range);

  // Multiply as the reference does. If w is quantised, `chunks` holds the rows of x, quantised for
  // this reader, and the values of x are not read. Otherwise `chunks` is null.
  void (*matmul)(const View& w, const View& x, const ActivationChunk* chunks, const View* bias,
                 const View& dst, Range features, const Tuning& tuning);
  void (*moe_matmul)(const View& w, const View& x, const ActivationChunk* chunks, const View& ids,
                     const View* bias, const View& dst, Range features, const Tuning& tuning);

  // Returns whether a matmul of `columns` columns can use kDirect as well as kTiles. If not, as
  // with one column, it ignores Tuning::way.
  bool (*matmul_has_ways)(const View& w, int64_t columns);

  // Compute attention in two steps: attend_pieces computes some pieces; when all are done,
  // join_pieces computes some rows of dst. The result equals that of `attention`.
  void (*attend_pieces)(const reference::AttentionInputs& inputs,
                        const reference::AttentionParams& params, const AttentionPieces& pieces,
                        Range range);
  void (*join_pieces)(const reference::AttentionInputs& inputs,
                      const reference::AttentionParams& params, const AttentionPieces& pieces,
                      const View& dst, Range rows);
};

}  // namespace trine::cpu_kernels
