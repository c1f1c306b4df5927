// A chunk of a sequence, and where its rows are: for blocks of 256 threads, one for each position.
#ifndef TRINE_KERNELS_HIP_ATTENTION_CHUNK_H_
#define TRINE_KERNELS_HIP_ATTENTION_CHUNK_H_

#include "kernels/hip/attention_args.h"

namespace trine::hip {

// Positions [begin, end) of a chunk, which begins at `first`.
struct ChunkRange {
  int32_t first, begin, end;
};

TRINE_DEVICE ChunkRange ChunkOf(int32_t chunk, int32_t begin, int32_t end) {
  const int32_t first = chunk * kChunk;
  return {first, begin > first ? begin - first : 0, end - first < kChunk ? end - first : kChunk};
}

// A thread for each position of the chunk. Those that are not seen stand for one that is: it is
// read, and counts with a probability of 0.
template <class Shared>
TRINE_DEVICE void FindRows(const AttentionArgs& args, int32_t sequence, uint32_t kv_head,
                           const ChunkRange& range, Shared* shared) {
  const auto t = static_cast<int32_t>(ThreadX());
  const bool seen = t >= range.begin && t < range.end;
  const auto position = static_cast<uint32_t>(range.first + (seen ? t : range.begin));
  const int32_t block =
      args.block_table[sequence * args.table_sequence + position / args.block_positions];
  const uint32_t inside = position % args.block_positions;
  const int64_t k_row = CacheRowAt(args.k, block, inside, kv_head);
  const int64_t v_row = CacheRowAt(args.v, block, inside, kv_head);
  if (seen) {
    PrefetchRow(args.k, k_row);
    PrefetchRow(args.v, v_row);
  }
  shared->k_row[t] = k_row;
  shared->v_row[t] = v_row;
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ATTENTION_CHUNK_H_
