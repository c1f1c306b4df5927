// Attention of few tokens: a block takes some heads of a group, one token, and one chunk or all of
// them, so that many blocks share a long context.
//
// Scores: eight lanes share a position. Each lane adds up four of the 32 classes of elements, with
// q in registers, and a tree over the lanes joins the classes in the contract's order. Values: four
// lanes share two columns. Each lane adds up one of the four classes of positions.
#pragma once

#include "kernels/hip/attention/attention_args.h"
#include "kernels/hip/attention/cache_reader.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/ops/lane_results.h"
#include "kernels/hip/ops/rotation.h"

namespace trine::hip {

inline constexpr uint32_t kHeadsThreads = 256;

template <int kHeads>
struct HeadsShared {
  alignas(16) float p[kChunk][kHeads];  // at first scores
  int64_t k_row[kChunk], v_row[kChunk];
  float most[kHeadsThreads / kLanes][kHeads];  // by group of lanes
  Joined joined[kHeads];
  JoinWeights weights[kHeads];
};

// Exchanges sums with the lane `mask` away and adds them. Each lane keeps half of the heads: the
// upper lane keeps the upper heads.
template <int kHeads>
TRINE_DEVICE void JoinHalf(float (&s)[kHeads][4], int count, int mask, bool upper) {
  TRINE_UNROLL
  for (int h = 0; h < count / 2; ++h) {
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float kept = upper ? s[h + count / 2][i] : s[h][i];
      const float given = upper ? s[h][i] : s[h + count / 2][i];
      s[h][i] = kept + LaneXor(given, mask);
    }
  }
}

// Joins all 32 classes: lane `sub` of eight gets the sum of head sub * kHeads / 8.
template <int kHeads>
TRINE_DEVICE float JoinClasses(float (&s)[kHeads][4], uint32_t sub) {
  const auto join = [&](int mask) {
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) s[0][i] = s[0][i] + LaneXor(s[0][i], mask);
  };
  if constexpr (kHeads == 4) {
    JoinHalf(s, 4, 4, (sub & 4) != 0);
    JoinHalf(s, 2, 2, (sub & 2) != 0);
  } else if constexpr (kHeads == 2) {
    JoinHalf(s, 2, 4, (sub & 4) != 0);
    join(2);
  } else {
    join(4);
    join(2);
  }
  join(1);
  return (s[0][0] + s[0][2]) + (s[0][1] + s[0][3]);
}

// Loads kCount floats, whose address is a multiple of their size.
template <int kCount>
TRINE_DEVICE void LoadFloats(const float* from, float (&v)[kCount]) {
  if constexpr (kCount == 4) {
    const Float4 values = *reinterpret_cast<const Float4*>(from);
    v[0] = values.x;
    v[1] = values.y;
    v[2] = values.z;
    v[3] = values.w;
  } else if constexpr (kCount == 2) {
    const Word2 words = *reinterpret_cast<const Word2*>(from);
    v[0] = FromBits(words.x);
    v[1] = FromBits(words.y);
  } else {
    v[0] = from[0];
  }
}

template <CacheForm kForm, int kHeads, int kGroups>
class HeadsBlock {
 public:
  using Shared = HeadsShared<kHeads>;

  TRINE_DEVICE HeadsBlock(const AttentionArgs& args, Shared* shared, float* floats)
      : args_(args), shared_(shared), out_(floats) {
    const uint32_t kv_heads = args.heads / args.group;
    part_ = BlockX() % args.parts;
    kv_head_ = BlockX() / args.parts % kv_heads;
    token_ = BlockX() / args.parts / kv_heads;
    const uint32_t first = part_ * kHeads;
    first_head_ = kv_head_ * args.group + first;
    heads_ = args.group - first < kHeads ? args.group - first : kHeads;
    lane_ = ThreadX() % kLanes;
    warp_ = ThreadX() / kLanes;
  }

  TRINE_DEVICE void Run() {
    const Seen seen = SeenBy(args_, static_cast<int32_t>(token_));
    const int32_t first = seen.begin / kChunk, last = (seen.end - 1) / kChunk;
    const int32_t from = args_.split ? first + static_cast<int32_t>(BlockY()) : first;
    const int32_t to = args_.split ? from : last;
    const bool any = !seen.nothing() && from <= last;
    const auto find = [&](int32_t chunk) {
      FindRows(args_, seen.sequence, kv_head_, ChunkOf(chunk, seen.begin, seen.end), shared_);
    };
    if (any) find(from);
    const bool along = args_.before.k != nullptr;
    const uint32_t slot = along ? static_cast<uint32_t>(*args_.before.slot) : 0;
    if (args_.before.q_norm != nullptr && args_.early) PrefetchNorms();
    AwaitEarlier();
    if (args_.before.q_norm != nullptr) NormRows();
    if (along) RotateAndStore(slot);
    if (!any) {
      if (!args_.split) PutRows(true);
      return;
    }
    LoadQuery(0);
    for (int32_t chunk = from; chunk <= to; ++chunk) {
      const ChunkRange range = ChunkOf(chunk, seen.begin, seen.end);
      if (chunk != from) find(chunk);
      SyncBlock();
      Scores(range);
      SyncBlock();
      Probabilities(range);
      SyncBlock();
      JoinSums(chunk == from);
      const auto at = static_cast<uint32_t>(chunk - first);
      const uint32_t columns = args_.padded_width / 2;
      if (kHeads >= 4 && columns <= 16) {
        Values<(kHeads + 3) / 4>(range, chunk == from, at);
      } else if (kHeads >= 2 && columns <= 32) {
        Values<(kHeads + 1) / 2>(range, chunk == from, at);
      } else {
        Values<kHeads>(range, chunk == from, at);
      }
      SyncBlock();
    }
    if (!args_.split) PutRows(false);
  }

 private:
  TRINE_DEVICE void PrefetchNorms() const {
    for (uint32_t i = 32 * ThreadX(); i < args_.k.width; i += 32 * kHeadsThreads) {
      Prefetch(args_.before.q_norm + i);
      Prefetch(args_.before.k_norm + i);
    }
  }

  TRINE_DEVICE const float* NewRow(const float* data, int64_t head_stride) const {
    return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(data) +
                                          kv_head_ * head_stride);
  }

  // Norms the rows of these heads of q, and of the token's k, into the places of rotated rows. A
  // group of lanes has a row, and lane i the values of class i of its sum.
  TRINE_DEVICE void NormRows() {
    static_assert(kHeads < kHeadsThreads / kLanes);
    constexpr uint32_t kValues = kMostNormedHead / kLanes;  // of a lane
    const NewRows& rows = args_.before;
    const uint32_t width = args_.k.width;
    if (warp_ <= heads_) {
      const bool of_k = warp_ == heads_;
      const float* from =
          of_k ? NewRow(rows.k, rows.k_head) : QueryRow(args_, first_head_ + warp_, token_);
      const float* weights = of_k ? rows.k_norm : rows.q_norm;
      float* to = Rotated(of_k ? kHeads : warp_);
      float x[kValues], weight[kValues], squares = 0.0f;
      TRINE_UNROLL
      for (uint32_t j = 0; j < kValues; ++j) {
        const uint32_t at = j * kLanes + lane_;
        x[j] = at < width ? from[at] : 0.0f;  // 0 changes no sum
        weight[j] = at < width ? weights[at] : 0.0f;
      }
      TRINE_UNROLL
      for (uint32_t j = 0; j < kValues; ++j) squares = squares + x[j] * x[j];
      const float eps = of_k ? rows.k_eps : rows.q_eps;
      const float scale = Rsqrt(hip::JoinClasses(squares) * rows.inverse_width + eps);
      TRINE_UNROLL
      for (uint32_t j = 0; j < kValues; ++j) {
        const uint32_t at = j * kLanes + lane_;
        if (at < width) to[at] = Canon(x[j] * scale * weight[j]);
      }
    }
    SyncBlock();
  }

  // Rotates q of these heads for the block itself, and stores the token's k and v of its kv head.
  // Other blocks of that head store the same bytes, so that none needs to wait for another.
  TRINE_DEVICE void RotateAndStore(uint32_t slot) {
    const NewRows& rows = args_.before;
    const Rotation rotation = {rows.cosines, rows.pairs, rows.halves};
    const uint32_t items = args_.k.width - rows.pairs;
    const auto row_in = [&](const CacheArgs& cache) {
      return const_cast<std::byte*>(cache.data) +
             CacheRowAt(cache, static_cast<int32_t>(slot / args_.block_positions),
                        slot % args_.block_positions, kv_head_);
    };
    const bool normed = rows.q_norm != nullptr;
    const float* k_row = normed ? Rotated(kHeads) : NewRow(rows.k, rows.k_head);
    // Items of q, of k and values of v go to different threads, so that none waits for another.
    const bool stored = slot < rows.slots;
    const uint32_t q_items = items * heads_, k_end = q_items + (stored ? items : 0);
    const uint32_t end = k_end + (stored ? args_.v.width : 0);
    for (uint32_t at = ThreadX(); at < end; at += kHeadsThreads) {
      if (at < q_items) {
        const uint32_t h = kHeads == 1 ? 0 : at / items;
        const float* q_row = normed ? Rotated(h) : QueryRow(args_, first_head_ + h, token_);
        RotateItem(rotation, q_row, at - h * items,
                   [&](uint32_t i, float x) { Rotated(h)[i] = x; });
      } else if (at < k_end) {
        RotateItem(rotation, k_row, at - q_items,
                   [&](uint32_t i, float x) { StoreValue(args_.k.type, row_in(args_.k), i, x); });
      } else {
        const uint32_t i = at - k_end;
        StoreValue(args_.v.type, row_in(args_.v), i, NewRow(rows.v, rows.v_head)[i]);
      }
    }
    SyncBlock();
  }

  // Returns the place of a head's rotated q, [width], or of the normed k after them. Used if blocks
  // rotate.
  TRINE_DEVICE float* Rotated(uint32_t h) const {
    return out_ + (args_.split ? 0 : kHeads * args_.padded_width) + h * args_.k.width;
  }

  TRINE_DEVICE const float* Query(uint32_t h) const {
    return args_.before.k != nullptr ? Rotated(h) : QueryRow(args_, first_head_ + h, token_);
  }

  // Loads the elements of a slab of q. If there is only one slab, it stays in registers.
  TRINE_DEVICE void LoadQuery(uint32_t slab) {
    const uint32_t first = slab * kGroups * 32 + lane_ % 8 * 4;
    TRINE_UNROLL
    for (uint32_t h = 0; h < kHeads; ++h) {
      const float* row = Query(h < heads_ ? h : 0);
      TRINE_UNROLL
      for (uint32_t g = 0; g < kGroups; ++g) {
        TRINE_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t at = first + g * 32 + i;
          query_[h][g][i] = at < args_.k.width ? row[at] : 0.0f;
        }
      }
    }
  }

  TRINE_DEVICE void Scores(const ChunkRange& range) {
    const uint32_t slabs = (args_.k.width + kGroups * 32 - 1) / (kGroups * 32);
    const uint32_t sub = lane_ % 8, head = sub * kHeads / 8;
    float most = -quant::kHuge;
    for (int32_t base = range.begin & ~31; base < range.end; base += 32) {
      const int32_t t = base + static_cast<int32_t>(warp_ * 4 + lane_ / 8);
      const std::byte* row = args_.k.data + shared_->k_row[t];
      float sums[kHeads][4];
      for (uint32_t slab = 0; slab < slabs; ++slab) {
        if (slabs > 1) LoadQuery(slab);
        AddSlab(row, slab, sums);
      }
      const float score = ScoreOf(args_, JoinClasses(sums, sub));
      if (t >= range.begin && t < range.end) most = Larger(most, score);
      if (sub % (8 / kHeads) == 0) shared_->p[t][head] = score;
    }
    most = Larger(most, LaneXor(most, 8));
    most = Larger(most, LaneXor(most, 16));
    if (lane_ < 8 && sub % (8 / kHeads) == 0) shared_->most[warp_][head] = most;
  }

  // Does not add the first terms to zero: a sum can be -0 instead of +0, which no score shows.
  TRINE_DEVICE void AddSlab(const std::byte* row, uint32_t slab, float (&sums)[kHeads][4]) {
    float key[kGroups][4];
    TRINE_UNROLL
    for (uint32_t g = 0; g < kGroups; ++g) {
      Load4<kForm>(args_.k, row, (slab * kGroups + g) * 32 + lane_ % 8 * 4, key[g]);
    }
    TRINE_UNROLL
    for (uint32_t g = 0; g < kGroups; ++g) {
      TRINE_UNROLL
      for (uint32_t h = 0; h < kHeads; ++h) {
        TRINE_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
          const float term = query_[h][g][i] * key[g][i];
          sums[h][i] = g == 0 && slab == 0 ? term : sums[h][i] + term;
        }
      }
    }
  }

  TRINE_DEVICE float Most(uint32_t h) const {
    float m = shared_->most[0][h];
    TRINE_UNROLL
    for (uint32_t w = 1; w < kHeadsThreads / kLanes; ++w) m = Larger(m, shared_->most[w][h]);
    return m;
  }

  TRINE_DEVICE void Probabilities(const ChunkRange& range) {
    const auto t = static_cast<int32_t>(ThreadX());
    const bool seen = t >= range.begin && t < range.end;
    TRINE_UNROLL
    for (uint32_t h = 0; h < kHeads; ++h) {
      shared_->p[t][h] = seen ? Exp(shared_->p[t][h] - Most(h)) : 0.0f;
    }
  }

  // Adds up the chunk's probabilities, 32 lanes for a head, and joins them to the rows' sums.
  TRINE_DEVICE void JoinSums(bool first) {
    if (warp_ >= kHeads) return;
    float l = 0.0f;
    TRINE_UNROLL
    for (uint32_t k = 0; k < kChunk / kLanes; ++k) {
      l = l + shared_->p[k * kLanes + lane_][warp_];
    }
    TRINE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) l = l + LaneXor(l, mask);
    if (lane_ != 0) return;
    const float m = Most(warp_);
    if (first) {
      shared_->joined[warp_] = {m, l};
    } else {
      shared_->weights[warp_] = Join(m, l, &shared_->joined[warp_]);
    }
  }

  // kOwn: the number of a thread's heads: all, or a part of them if there are few columns.
  template <int kOwn>
  TRINE_DEVICE void Values(const ChunkRange& range, bool first, uint32_t chunk) {
    constexpr uint32_t kParts = kHeads / kOwn, kQuads = kHeadsThreads / 4;
    const uint32_t columns = (args_.v.width + 1) / 2;  // pairs of columns
    const uint32_t items = columns * kParts, c = lane_ % 4;
    for (uint32_t base = 0; base < items; base += kQuads) {
      const uint32_t item = base + ThreadX() / 4;
      const bool ours = item < items;
      const uint32_t column = ours ? item % columns * 2 : 0;
      const uint32_t head = kParts > 1 && ours ? item / columns * kOwn : 0;
      float o[kOwn][2];
      SumValues<kOwn>(range, head, column, o);
      if (base == 0) SyncBlock();  // waits for JoinSums
      TRINE_UNROLL
      for (uint32_t h = 0; h < kOwn; ++h) {
        // The four lanes share the heads to write.
        if (ours && h % 4 == c && head + h < heads_)
          PutValues(head + h, column, o[h], first, chunk);
      }
    }
  }

  template <int kOwn>
  TRINE_DEVICE void SumValues(const ChunkRange& range, uint32_t head, uint32_t column,
                              float (&o)[kOwn][2]) {
    constexpr int32_t kAtOnce = 8;
    TRINE_UNROLL
    for (int h = 0; h < kOwn; ++h) o[h][0] = o[h][1] = 0.0f;
    const auto c = static_cast<int32_t>(lane_ % 4);
    for (int32_t base = range.begin & ~31; base < range.end; base += 4 * kAtOnce) {
      float v[kAtOnce][2];
      TRINE_UNROLL
      for (int32_t k = 0; k < kAtOnce; ++k) {
        const std::byte* row = args_.v.data + shared_->v_row[base + 4 * k + c];
        Load2<kForm>(args_.v, row, column, v[k]);
      }
      TRINE_UNROLL
      for (int32_t k = 0; k < kAtOnce; ++k) {
        float p[kOwn];
        LoadFloats(&shared_->p[base + 4 * k + c][head], p);
        TRINE_UNROLL
        for (int h = 0; h < kOwn; ++h) {
          o[h][0] = o[h][0] + p[h] * v[k][0];
          o[h][1] = o[h][1] + p[h] * v[k][1];
        }
      }
    }
    TRINE_UNROLL
    for (int h = 0; h < kOwn; ++h) {
      TRINE_UNROLL
      for (int i = 0; i < 2; ++i) {
        o[h][i] = o[h][i] + LaneXor(o[h][i], 2);
        o[h][i] = o[h][i] + LaneXor(o[h][i], 1);
      }
    }
  }

  TRINE_DEVICE void PutValues(uint32_t h, uint32_t column, const float (&o)[2], bool first,
                              uint32_t chunk) {
    if (args_.split) {
      const int64_t at =
          (static_cast<int64_t>(token_) * args_.heads + first_head_ + h) * args_.chunks + chunk;
      float* to = args_.scratch_values + at * args_.padded_width + column;
      to[0] = o[0];
      to[1] = o[1];
      if (column == 0) {
        args_.scratch_sums[2 * at] = shared_->joined[h].m;
        args_.scratch_sums[2 * at + 1] = shared_->joined[h].l;
      }
      return;
    }
    float* to = out_ + h * args_.padded_width + column;
    const JoinWeights weights = shared_->weights[h];
    to[0] = first ? o[0] : JoinValue(to[0], o[0], weights);
    to[1] = first ? o[1] : JoinValue(to[1], o[1], weights);
  }

  TRINE_DEVICE void PutRows(bool zeros) {
    const uint32_t words = (args_.v.width + 3) / 4;
    for (uint32_t base = 0; base < words * kHeads; base += kHeadsThreads) {
      const uint32_t at = base + ThreadX(), h = at / words, i = at % words * 4;
      const bool ours = h < heads_;
      float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (ours && !zeros) {
        const Finish finish = FinishOf(args_, first_head_ + h, shared_->joined[h]);
        for (uint32_t k = 0; k < 4; ++k) {
          v[k] = finish(args_, out_[h * args_.padded_width + i + k]);
        }
      }
      PutOutput(args_, first_head_ + h, token_, i, v, ours);
    }
  }

  const AttentionArgs& args_;
  Shared* shared_;
  float* out_;  // [kHeads][padded_width], joined; unused if chunks are split
  uint32_t part_, kv_head_, token_, first_head_, heads_, lane_, warp_;
  float query_[kHeads][kGroups][4];
};

template <CacheForm kForm, int kHeads, int kGroups>
TRINE_KERNEL_RESIDENT(kHeadsThreads, kHeads* kGroups <= 2 ? 4 : 2)
HeadsKernel(AttentionArgs args) {
  LetNextStart();
  if (!args.early) AwaitEarlier();  // otherwise Run waits, later
  TRINE_SHARED(HeadsShared<kHeads>, shared);
  TRINE_DYNAMIC_SHARED(float, floats);
  HeadsBlock<kForm, kHeads, kGroups>(args, &shared, floats).Run();
}

template <CacheForm kForm, int kHeads, int kGroups>
Launch HeadsLaunchOf(const AttentionArgs& args, uint32_t chunk_blocks) {
  const uint32_t blocks = args.parts * (args.heads / args.group) * args.tokens;
  const uint32_t floats = kHeads * ((args.split ? 0 : args.padded_width) +
                                    (args.before.k != nullptr ? args.k.width : 0)) +
                          (args.before.q_norm != nullptr ? args.k.width : 0);
  return MakeLaunch(HeadsKernel<kForm, kHeads, kGroups>, {blocks, chunk_blocks}, {kHeadsThreads},
                    args, floats * sizeof(float));
}

// `heads`: the heads that a block takes together: 1, 2 or 4. `groups`: the groups of 32 elements of
// q that stay in registers: 2, 4 or 8. heads * groups is at most 16; further elements of q are
// loaded again for every position.
template <CacheForm kForm>
Launch HeadsLaunchOf(uint32_t heads, uint32_t groups, const AttentionArgs& args,
                     uint32_t chunk_blocks) {
  if (heads == 1) {
    if (groups == 2) return HeadsLaunchOf<kForm, 1, 2>(args, chunk_blocks);
    if (groups == 4) return HeadsLaunchOf<kForm, 1, 4>(args, chunk_blocks);
    return HeadsLaunchOf<kForm, 1, 8>(args, chunk_blocks);
  }
  if (heads == 2) {
    if (groups == 2) return HeadsLaunchOf<kForm, 2, 2>(args, chunk_blocks);
    if (groups == 4) return HeadsLaunchOf<kForm, 2, 4>(args, chunk_blocks);
    return HeadsLaunchOf<kForm, 2, 8>(args, chunk_blocks);
  }
  if (groups == 2) return HeadsLaunchOf<kForm, 4, 2>(args, chunk_blocks);
  return HeadsLaunchOf<kForm, 4, 4>(args, chunk_blocks);
}

}  // namespace trine::hip
