// Cases of rope, kv_store and attention over paged caches.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/op_cases.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

std::vector<int32_t> Shuffled(Random& random, int64_t n) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.Below(i + 1))]);
  }
  return order;
}

struct RopeShape {
  int64_t d, pairs, heads, tokens, max_tokens;
  bool gapped, in_place;
};

std::vector<OpCase> RopeCases(Random& random, uint32_t mode) {
  std::vector<OpCase> cases;
  for (const RopeShape& s : {RopeShape{64, 32, 1, 1, 1, false, false},
                             {128, 64, 5, 3, 9, false, true},
                             {80, 16, 3, 9, 9, true, false},
                             {6, 3, 2, 33, 33, false, false}}) {
    CaseBuilder b(random, cases.size() % 2 != 0 ? Spread32::kWide : Spread32::kBell, s.gapped);
    const int64_t t = b.Tokens(s.tokens, s.max_tokens);
    const uint32_t x = b.Input({s.d, s.heads, t});
    const uint32_t table = b.Input({2 * s.pairs, t}, Spread32::kBell);
    const uint32_t y = s.in_place ? b.graph().AddAlias(x) : b.Output({s.d, s.heads, t});
    b.graph().AddOp(TRINE_OP_ROPE, {x, table}, {y}, trine_rope_attr{0, mode});
    cases.push_back(b.Take());
  }
  return cases;
}

OpCase MakeStore(Random& random, uint32_t dtype, int64_t positions) {
  CaseBuilder b(random, positions == 64 ? Spread32::kWide : Spread32::kBell);
  const int64_t tokens = positions == 16 ? 33 : 3, blocks = positions == 1 ? 40 : 3;
  const int64_t t = b.Tokens(tokens, tokens);
  const uint32_t x = b.Input({64, 2, t});
  std::vector<int32_t> slots = Shuffled(b.random(), positions * blocks);
  slots.resize(static_cast<size_t>(tokens));
  if (tokens > 3) slots[2] = -1, slots[3] = static_cast<int32_t>(positions * blocks);
  const uint32_t slot = b.Ints({t}, slots);
  const uint32_t cache = b.Cache(dtype, {64, positions, 2, blocks});
  b.graph().AddOp(TRINE_OP_KV_STORE, {x, slot}, {cache});
  return b.Take();
}

std::vector<OpCase> StoreCases(Random& random, uint32_t dtype) {
  std::vector<OpCase> cases;
  for (int64_t positions : {1, 16, 64, 256}) cases.push_back(MakeStore(random, dtype, positions));
  return cases;
}

struct Sequence {
  int64_t tokens, kv_length;
};

struct AttentionShape {
  std::vector<Sequence> sequences;
  int64_t d, dv, heads, kv_heads, block_positions, max_tokens;
  uint32_t flags;
  float softcap;
  uint32_t window;
  bool sinks;
  Spread32 spread;
  // Hosts that pad their batches have entries of q_offsets that belong to no sequence, and a
  // KV_POSITIONS beyond the longest sequence. So does this case.
  int64_t spare_offsets = 0, spare_positions = 0;
};

OpCase MakeAttention(Random& random, uint32_t dtype, const AttentionShape& s) {
  CaseBuilder b(random, s.spread);
  int64_t tokens = 0, longest = 0, n_blocks = 0;
  for (const Sequence& q : s.sequences) {
    tokens += q.tokens;
    longest = std::max(longest, q.kv_length);
    n_blocks += (q.kv_length + s.block_positions - 1) / s.block_positions;
  }
  const int64_t t = b.Tokens(tokens, std::max(tokens, s.max_tokens));
  b.Param(TRINE_PARAM_KV_POSITIONS, longest + s.spare_positions, longest + 100);
  const auto n_seqs = static_cast<int64_t>(s.sequences.size());
  const int64_t table_blocks = (longest + s.block_positions - 1) / s.block_positions + 1;

  // Assigns blocks in random order. Entries after a sequence's last block stay 0.
  const std::vector<int32_t> order = Shuffled(b.random(), n_blocks);
  std::vector<int32_t> table, offsets = {0}, lengths;
  size_t next = 0;
  for (const Sequence& q : s.sequences) {
    for (int64_t i = 0; i < table_blocks; ++i) {
      table.push_back(i * s.block_positions < q.kv_length ? order[next++] : 0);
    }
    offsets.push_back(offsets.back() + static_cast<int32_t>(q.tokens));
    lengths.push_back(static_cast<int32_t>(q.kv_length));
  }
  for (int64_t i = 0; i < s.spare_offsets; ++i) {
    offsets.push_back(i % 2 == 0 ? 1'000'000 : -5);  // must have no effect
  }
  const uint32_t q = b.Input({s.d, s.heads, t});
  const uint32_t k = b.Cache(dtype, {s.d, s.block_positions, s.kv_heads, n_blocks});
  const uint32_t v = b.Cache(dtype, {s.dv, s.block_positions, s.kv_heads, n_blocks});
  std::vector<uint32_t> in = {q,
                              k,
                              v,
                              b.Ints({table_blocks, n_seqs}, table),
                              b.Ints({n_seqs + 1 + s.spare_offsets}, offsets),
                              b.Ints({n_seqs}, lengths)};
  if (s.sinks) in.push_back(b.Weight(TRINE_DTYPE_F32, {s.heads}));
  const uint32_t y = b.Output({s.dv, s.heads, t});
  b.graph().AddOp(TRINE_OP_ATTENTION, in, {y},
                  trine_attention_attr{0, s.flags, 0.125f, s.softcap, s.window});
  return b.TakeFixed();  // q_offsets fit this number of tokens only
}

std::vector<OpCase> AttentionCases(Random& random, uint32_t dtype) {
  constexpr uint32_t kCausal = TRINE_ATTENTION_CAUSAL;
  constexpr auto kBell = Spread32::kBell;
  std::vector<OpCase> cases;
  for (const AttentionShape& s : std::vector<AttentionShape>{
           {{{1, 1}}, 64, 64, 1, 1, 256, 1, kCausal, 0, 0, false, kBell},
           {{{1, 257}}, 64, 64, 4, 2, 64, 4, kCausal, 0, 0, false, kBell},
           {{{5, 31}, {1, 255}, {2, 256}}, 64, 32, 4, 4, 16, 9, kCausal, 0, 0, false, kBell},
           {{{3, 600}}, 96, 96, 6, 2, 256, 3, kCausal, 0, 0, true, Spread32::kOutliers},
           {{{9, 300}}, 64, 64, 2, 1, 16, 9, kCausal, 0, 100, false, kBell},
           {{{2, 600}, {1, 40}}, 64, 64, 2, 2, 64, 4, kCausal, 0, 257, true, kBell},
           {{{4, 70}}, 128, 128, 3, 1, 64, 4, kCausal, 30.0f, 0, false, Spread32::kWide},
           {{{33, 33}}, 64, 64, 2, 2, 16, 40, kCausal, 0, 0, false, kBell},
           {{{7, 7}}, 64, 64, 2, 1, 16, 7, 0, 0, 0, false, kBell},
           {{{2, 20}}, 64, 64, 2, 1, 16, 2, kCausal, 0, 1, false, Spread32::kZeros},
           {{{2, 40}, {1, 17}}, 64, 64, 2, 1, 16, 6, kCausal, 0, 0, false, kBell, 3, 60}}) {
    cases.push_back(MakeAttention(random, dtype, s));
  }
  return cases;
}

}  // namespace

const std::vector<uint32_t>& CacheTypes() {
  static const auto* types = new std::vector<uint32_t>{TRINE_DTYPE_F32, TRINE_DTYPE_F16,
                                                       TRINE_DTYPE_BF16, TRINE_DTYPE_Q8_KV};
  return *types;
}

std::vector<OpCase> CacheCases(Random& random, uint32_t dtype) {
  std::vector<OpCase> cases;
  cases.push_back(MakeStore(random, dtype, 16));
  cases.push_back(MakeAttention(random, dtype,
                                {{{5, 31}, {1, 40}},
                                 64,
                                 32,
                                 4,
                                 2,
                                 16,
                                 6,
                                 TRINE_ATTENTION_CAUSAL,
                                 0,
                                 0,
                                 false,
                                 Spread32::kBell}));
  return cases;
}

void AddAttentionGroups(std::vector<OpGroup>* groups) {
  groups->push_back(
      {"rope/interleaved", [](Random& r) { return RopeCases(r, TRINE_ROPE_INTERLEAVED); }});
  groups->push_back({"rope/halves", [](Random& r) { return RopeCases(r, TRINE_ROPE_HALVES); }});
  for (uint32_t dtype : CacheTypes()) {
    groups->push_back({absl::StrCat("kv_store/", sdk::DtypeName(dtype)),
                       [dtype](Random& r) { return StoreCases(r, dtype); }});
  }
  for (uint32_t dtype : CacheTypes()) {
    groups->push_back({absl::StrCat("attention/", sdk::DtypeName(dtype)),
                       [dtype](Random& r) { return AttentionCases(r, dtype); }});
  }
}

}  // namespace trine::conformance
