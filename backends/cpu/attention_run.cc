#include "backends/cpu/attention_run.h"

#include <algorithm>

#include "backends/common/op_attributes.h"

namespace trine::cpu {
namespace {

using cpu_kernels::AttentionPieces;
using reference::AttentionInputs;
using reference::AttentionParams;
using reference::Range;

// The most floats of partial results: for several tokens, and for one token, where more memory
// pays.
constexpr int64_t kMostFloats = int64_t{1} << 20;
constexpr int64_t kMostFloatsOfAToken = int64_t{1} << 24;

// Returns into how many chunks each token's positions are cut, or 0 if the work is divided by rows.
int64_t ChunksToCut(const AttentionInputs& inputs, const AttentionParams& params,
                    const AttentionRoom* room, uint32_t workers) {
  if (room == nullptr || workers == 1 || inputs.kv_lengths.dims[0] == 0) return 0;
  const int64_t heads = inputs.q.dims[1], tokens = inputs.q.dims[2];
  const int64_t pairs = tokens * inputs.k.dims[2];
  const int32_t* lengths = reference::I32Row(inputs.kv_lengths, 0);
  const int64_t longest = *std::max_element(lengths, lengths + inputs.kv_lengths.dims[0]);
  const int64_t chunks = cpu_kernels::ChunksSeen(longest, params.window, params.causal);
  if (chunks < 2 || pairs > static_cast<int64_t>(room->done.size()) ||
      tokens * heads * chunks * cpu_kernels::PartialFloats(inputs.v.dims[0]) >
          room->partial_floats) {
    return 0;
  }
  // Compares the chunks that the busiest worker goes through. Joining has a cost too, so pieces
  // must gain more than an eighth.
  const int64_t by_rows = (pairs + workers - 1) / workers * chunks;
  const int64_t by_pieces = (pairs * chunks + workers - 1) / workers;
  return by_rows * 8 > by_pieces * 9 ? chunks : 0;
}

void RunPieces(const OpCall& call, const AttentionInputs& inputs, const AttentionParams& params,
               int64_t chunks, Share share) {
  const int64_t pairs = inputs.q.dims[2] * inputs.k.dims[2];
  const int64_t group = inputs.q.dims[1] / inputs.k.dims[2];
  const AttentionPieces pieces = {chunks, call.room->partials};
  const Range own = share.Of(pairs * chunks);
  call.kernels->attend_pieces(inputs, params, pieces, own);
  for (int64_t piece = own.begin; piece < own.end;) {
    const int64_t pair = piece / chunks;
    const int64_t end = std::min((pair + 1) * chunks, own.end);
    std::atomic<uint32_t>& done = call.room->done[static_cast<size_t>(pair)];
    const auto count = static_cast<uint32_t>(end - piece);
    piece = end;
    if (done.fetch_add(count, std::memory_order_acq_rel) + count < chunks) continue;
    done.store(0, std::memory_order_relaxed);
    call.kernels->join_pieces(inputs, params, pieces, *call.out[0],
                              {pair * group, (pair + 1) * group});
  }
}

}  // namespace

AttentionNeed NeedOfAttention(const sdk::Graph& graph, const sdk::Op& op,
                              const std::vector<int64_t>& params) {
  if (op.kind != TRINE_OP_ATTENTION) return {};
  const auto dims = [&](size_t i) {
    return sdk::ResolveDims(graph.tensors[op.in[i]], params.data());
  };
  const sdk::Dims q = dims(0), k = dims(1), v = dims(2), block_table = dims(3);
  // A graph's sizes are far from overflowing, but products of sizes may overflow.
  constexpr int64_t kMostPositions = int64_t{1} << 31, kMostHeads = int64_t{1} << 16;
  if (k[1] == 0 || block_table[0] > kMostPositions / k[1] || q[1] > kMostHeads ||
      v[0] > kMostHeads) {
    return {};
  }
  const auto attr = op.Attr<trine_attention_attr>();
  const int64_t chunks = cpu_kernels::ChunksSeen(block_table[0] * k[1], attr.window,
                                                 (attr.flags & TRINE_ATTENTION_CAUSAL) != 0);
  const int64_t of_a_head = chunks * cpu_kernels::PartialFloats(v[0]);
  if (chunks < 2 || q[1] == 0 || of_a_head > kMostFloatsOfAToken / q[1]) return {};
  const int64_t of_a_token = of_a_head * q[1];
  const int64_t tokens = std::min(q[2], std::max<int64_t>(1, kMostFloats / of_a_token));
  return {tokens * of_a_token, tokens * k[2]};
}

void RunAttention(const OpCall& c, Share share) {
  const AttentionInputs inputs{*c.in[0], *c.in[1], *c.in[2], *c.in[3], *c.in[4], *c.in[5], c.in[6]};
  const AttentionParams params = backends::AttentionParamsOf(*c.op);
  const int64_t chunks = ChunksToCut(inputs, params, c.room, share.workers);
  if (chunks != 0) return RunPieces(c, inputs, params, chunks, share);
  // Keeps heads that read the same keys and values together, as long as every worker gets some.
  const int64_t rows = Rows(*c.out[0]), group = inputs.q.dims[1] / inputs.k.dims[2];
  const int64_t multiple = rows / group >= share.workers ? group : 1;
  c.kernels->attention(inputs, params, *c.out[0], share.Of(rows, multiple));
}

}  // namespace trine::cpu
