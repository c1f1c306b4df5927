#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/check/case_runner.h"
#include "kernels/cpu/check/check.h"
#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::cpu_kernels {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using reference::AttentionInputs;
using reference::AttentionParams;
using reference::Tensor;

template <typename T, size_t N>
T OneOf(const T (&choices)[N], Random* random) {
  return choices[random->Below(N)];
}

struct Sequence {
  int64_t tokens;     // in this batch
  int64_t kv_length;  // positions in the cache
};

struct Case {
  Type k_type, v_type;
  int64_t k_width, v_width, kv_heads, group, block_positions, padding;
  std::vector<Sequence> sequences;
  int64_t tokens_before, tokens_after;  // in no sequence
  Fill q_fill, k_fill, v_fill, sink_fill;
  bool has_sinks;
  AttentionParams params;

  int64_t heads() const { return kv_heads * group; }
  int64_t tokens() const {
    int64_t sum = tokens_before + tokens_after;
    for (const Sequence& sequence : sequences) sum += sequence.tokens;
    return sum;
  }
  int64_t Blocks(const Sequence& sequence) const {
    return (sequence.kv_length + block_positions - 1) / block_positions;
  }
  std::string Name() const;
};

std::string Case::Name() const {
  std::string name = std::string("attention, k ") + quant::Traits(k_type).name + "[" +
                     std::to_string(k_width) + "], v " + quant::Traits(v_type).name + "[" +
                     std::to_string(v_width) + "], " + std::to_string(kv_heads) + "x" +
                     std::to_string(group) + " heads, window " + std::to_string(params.window) +
                     (params.causal ? ", causal" : "") + (has_sinks ? ", sinks" : "") +
                     (params.softcap != 0.0f ? ", softcap" : "") + ", sequences";
  for (const Sequence& sequence : sequences) {
    name += " " + std::to_string(sequence.tokens) + "/" + std::to_string(sequence.kv_length);
  }
  return name;
}

int64_t RandomWidth(Type type, Random* random) {
  constexpr int64_t kBlocks[] = {32, 64, 96, 128, 256, 288};
  constexpr int64_t kAny[] = {1, 6, 20, 32, 33, 64, 72, 80, 96, 100, 128, 256, 300};
  return type == Type::kQ8_KV ? OneOf(kBlocks, random) : OneOf(kAny, random);
}

Sequence RandomSequence(Random* random) {
  constexpr int64_t kLengths[] = {0,   1,   3,   4,   5,   31,  33,  130,
                                  255, 256, 257, 300, 512, 514, 600, 1100};
  constexpr int64_t kTokens[] = {0, 1, 1, 1, 2, 5, 19};
  Sequence sequence;
  sequence.kv_length = OneOf(kLengths, random);
  sequence.tokens = std::min(OneOf(kTokens, random), sequence.kv_length + 1);
  return sequence;
}

Case RandomCase(Random* random) {
  constexpr Type kTypes[] = {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV};
  constexpr int64_t kKvHeads[] = {1, 1, 2, 3};
  constexpr int64_t kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 19};
  constexpr int64_t kBlockPositions[] = {1, 7, 16, 48, 256};
  constexpr int64_t kPaddings[] = {0, 4, 12};
  constexpr int64_t kWindows[] = {0, 0, 1, 2, 5, 100, 255, 300};
  constexpr float kScales[] = {0.125f, 1.0f, 0.088388346f, 0x1p-30f, 0x1p+20f};
  Case c;
  c.k_type = OneOf(kTypes, random);
  c.v_type = random->Below(4) == 0 ? OneOf(kTypes, random) : c.k_type;
  c.k_width = RandomWidth(c.k_type, random);
  c.v_width =
      c.v_type == c.k_type && random->Below(2) == 0 ? c.k_width : RandomWidth(c.v_type, random);
  c.kv_heads = OneOf(kKvHeads, random);
  c.group = OneOf(kGroups, random);
  c.block_positions = OneOf(kBlockPositions, random);
  c.padding = OneOf(kPaddings, random);
  const int64_t n_sequences = 1 + random->Below(3);
  for (int64_t i = 0; i < n_sequences; ++i) c.sequences.push_back(RandomSequence(random));
  c.tokens_before = random->Below(8) == 0 ? 1 : 0;
  c.tokens_after = random->Below(4) == 0 ? 2 : 0;
  if (c.tokens() == 0) c.tokens_after = 1;
  c.has_sinks = random->Below(4) == 0;
  if (random->Below(2) == 0) {  // as in a model: every position counts
    c.q_fill = c.k_fill = c.v_fill = c.sink_fill = Fill::kUniform;
    c.params.scale = 0.125f;
  } else {
    c.q_fill = OneOf(quant::kAllFills, random);
    c.k_fill = OneOf(quant::kAllFills, random);
    c.v_fill = OneOf(quant::kAllFills, random);
    c.sink_fill = OneOf(quant::kAllFills, random);
    c.params.scale = OneOf(kScales, random);
  }
  c.params.softcap = random->Below(4) == 0 ? 5.0f : 0.0f;
  c.params.window = OneOf(kWindows, random);
  c.params.causal = random->Below(4) != 0;
  return c;
}

// Sets every byte of a cache: as f32, f16, bf16 or a scale it then reads as a NaN.
void Poison(const Tensor& cache) { std::memset(cache.view().data, 0xff, cache.bytes().size()); }

// Stores random values at all positions of all sequences. Sequences own the cache's blocks in turn;
// memory that belongs to no position stays poisoned.
void FillCache(const Case& c, const Tensor& block_table, Fill fill, const Tensor& cache,
               Random* random) {
  Poison(cache);
  const int64_t width = cache.view().dims[0];
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    const int64_t length = c.sequences[s].kv_length;
    if (length == 0) continue;
    Tensor src(Type::kF32, {width, c.kv_heads, length}), slots(Type::kI32, {length});
    src.FillWith(fill, random);
    for (int64_t t = 0; t < length; ++t) {
      const int32_t block = I32Row(block_table, static_cast<int64_t>(s))[t / c.block_positions];
      I32Row(slots, 0)[t] = static_cast<int32_t>(block * c.block_positions + t % c.block_positions);
    }
    reference::KvStore(src, slots, cache, reference::AllRows(src));
  }
}

// Runs attention in pieces, divided as among a team of workers, the last worker first. Memory that
// no piece has written stays poisoned.
template <typename Kernels>
void RunInPieces(const Kernels& kernels, const AttentionInputs& inputs,
                 const AttentionParams& params, int64_t longest, int64_t workers, const View& dst) {
  const int64_t chunks = std::max<int64_t>(1, ChunksSeen(longest, params.window, params.causal));
  const int64_t rows = reference::Rows(dst), n = inputs.q.dims[2] * inputs.k.dims[2] * chunks;
  std::vector<float> partials(static_cast<size_t>(rows * chunks * PartialFloats(inputs.v.dims[0])));
  std::memset(partials.data(), 0xff, partials.size() * sizeof(float));
  const AttentionPieces pieces = {chunks, partials.data()};
  for (int64_t w = workers - 1; w >= 0; --w) {
    kernels.attend_pieces(inputs, params, pieces, {n * w / workers, n * (w + 1) / workers});
  }
  for (int64_t w = workers - 1; w >= 0; --w) {
    kernels.join_pieces(inputs, params, pieces, dst,
                        {rows * w / workers, rows * (w + 1) / workers});
  }
}

void CheckCase(const Case& c, Random* random, CaseRunner* runner) {
  const auto n_sequences = static_cast<int64_t>(c.sequences.size());
  int64_t most_blocks = 1, n_blocks = 1;  // block 0 belongs to no sequence
  for (const Sequence& sequence : c.sequences) {
    most_blocks = std::max(most_blocks, c.Blocks(sequence));
    n_blocks += c.Blocks(sequence);
  }
  Tensor q(Type::kF32, {c.k_width, c.heads(), c.tokens()}, c.padding);
  Tensor k(c.k_type, {c.k_width, c.block_positions, c.kv_heads, n_blocks}, c.padding);
  Tensor v(c.v_type, {c.v_width, c.block_positions, c.kv_heads, n_blocks}, c.padding);
  Tensor block_table(Type::kI32, {most_blocks, n_sequences}, 4);
  Tensor q_offsets(Type::kI32, {n_sequences + 1}), kv_lengths(Type::kI32, {n_sequences});
  Tensor sinks(Type::kF32, {c.heads()});
  const Tensor dst(Type::kF32, {c.v_width, c.heads(), c.tokens()}, c.padding);

  std::memset(block_table.view().data, 0x7f, block_table.bytes().size());  // far outside
  std::vector<int64_t> used(c.sequences.size(), 0);
  std::vector<int32_t> blocks;
  for (int64_t block = 1; block < n_blocks; ++block) {  // shuffled, then dealt out in turn
    blocks.push_back(static_cast<int32_t>(block));
    std::swap(blocks.back(),
              blocks[static_cast<size_t>(random->Below(static_cast<int64_t>(blocks.size())))]);
  }
  while (!blocks.empty()) {
    for (size_t s = 0; s < used.size(); ++s) {
      if (used[s] == c.Blocks(c.sequences[s])) continue;
      I32Row(block_table, static_cast<int64_t>(s))[used[s]++] = blocks.back();
      blocks.pop_back();
    }
  }
  int64_t offset = c.tokens_before;
  for (int64_t s = 0; s < n_sequences; ++s) {
    I32Row(q_offsets, 0)[s] = static_cast<int32_t>(offset);
    I32Row(kv_lengths, 0)[s] = static_cast<int32_t>(c.sequences[static_cast<size_t>(s)].kv_length);
    offset += c.sequences[static_cast<size_t>(s)].tokens;
  }
  I32Row(q_offsets, 0)[n_sequences] = static_cast<int32_t>(offset);

  q.FillWith(c.q_fill, random);
  sinks.FillWith(c.sink_fill, random);
  FillCache(c, block_table, c.k_fill, k, random);
  FillCache(c, block_table, c.v_fill, v, random);
  Poison(dst);
  const AttentionInputs inputs = {
      q, k, v, block_table, q_offsets, kv_lengths, c.has_sinks ? &sinks.view() : nullptr};
  runner->Compare(
      c.Name(), dst, c.heads() * c.tokens(),
      [&](const auto& kernels, Range r) { kernels.attention(inputs, c.params, dst, r); },
      c.k_type == Type::kF16 || c.v_type == Type::kF16);

  int64_t longest = 0;
  for (const Sequence& sequence : c.sequences) longest = std::max(longest, sequence.kv_length);
  const int64_t workers = 1 + random->Below(5);
  runner->Compare(
      c.Name() + ", pieces of " + std::to_string(workers) + " workers", dst, 1,
      [&](const auto& kernels, Range r) {
        if (r.begin < r.end) RunInPieces(kernels, inputs, c.params, longest, workers, dst);
      },
      c.k_type == Type::kF16 || c.v_type == Type::kF16);
}

// Returns a small case with heads of `width` values.
Case WideCase(int64_t width) {
  Case c;
  c.k_type = c.v_type = Type::kF16;
  c.k_width = c.v_width = width;
  c.kv_heads = 1;
  c.group = 3;
  c.block_positions = 16;
  c.padding = 0;
  c.sequences = {{2, 20}};
  c.tokens_before = c.tokens_after = 0;
  c.q_fill = c.k_fill = c.v_fill = c.sink_fill = Fill::kUniform;
  c.has_sinks = false;
  return c;
}

// Compares one token and all heads of a group: every reader, every number of queries for which the
// code differs, at the widths that are read in place, over a whole chunk and a part of one.
void CheckGroups(Extent extent, Random* random, CaseRunner* runner) {
  const int64_t step = extent == Extent::kAll ? 1 : 4;
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV}) {
    for (const int64_t width : {64, 128, 256}) {
      for (int64_t group = 1; group <= 9; group += step) {
        Case c = WideCase(width);
        c.k_type = c.v_type = type;
        c.group = group;
        c.sequences = {{1, 256 + 11 * group}};
        c.params.scale = 0.125f;
        CheckCase(c, random, runner);
      }
    }
  }
}

// Compares one row over two chunks whose joined values are so small that each canon of the join
// shows: the weighted values of one chunk are below 2^-50, those of the other above it.
void CheckTinyJoin(bool first_is_larger, Random* random, CaseRunner* runner) {
  constexpr int32_t kLength = 300, kLarger = 257;
  Tensor q(Type::kF32, {1}), k(Type::kF32, {1, kLength}), v(Type::kF32, {8, kLength});
  Tensor block_table(Type::kI32, {1}), q_offsets(Type::kI32, {2}), kv_lengths(Type::kI32, {1});
  const Tensor dst(Type::kF32, {8});
  q.Set({1.0f});
  block_table.Set({0});
  q_offsets.Set({0, 1});
  kv_lengths.Set({kLength});
  // In one chunk the largest score has the value 0, and the next, e^-10 of it, the least there is.
  const int64_t at = first_is_larger ? 0 : kLarger;
  k.Row(at)[0] = 21.0f;
  k.Row(at + 1)[0] = 11.0f;
  for (int64_t t = 0; t < kLength; ++t) {
    const bool in_larger = (t < 256) == first_is_larger;
    if (in_larger && t != at + 1) continue;
    for (int64_t i = 0; i < 8; ++i) v.Row(t)[i] = random->Wide(-30, -29);
  }
  const AttentionInputs inputs = {q, k, v, block_table, q_offsets, kv_lengths, nullptr};
  runner->Compare("attention, tiny values", dst, 1, [&](const auto& kernels, Range r) {
    kernels.attention(inputs, AttentionParams{}, dst, r);
  });
}

}  // namespace

void CheckAttention(const KernelTable& table, Extent extent, int cases, CheckReport* report) {
  CaseRunner runner(table, report);
  Random random(2);
  for (int64_t width : {512, 576, 2048, 2080}) CheckCase(WideCase(width), &random, &runner);
  CheckGroups(extent, &random, &runner);
  for (bool first_is_larger : {false, true}) CheckTinyJoin(first_is_larger, &random, &runner);
  for (int i = 0; i < cases; ++i) CheckCase(RandomCase(&random), &random, &runner);
}

}  // namespace trine::cpu_kernels
