#include "kernels/vulkan/runs/attention.h"

#include <algorithm>
#include <limits>

#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using quant::Type;

constexpr int64_t kHalf = 2;
constexpr int64_t kChunk = 256;

// The cache forms of store_value.glsl; both must agree.
enum class StoreForm : uint32_t { kF32, kF16, kBf16, kNone };

StoreForm StoreFormOf(Type type) {
  if (type == Type::kF16) return StoreForm::kF16;
  return type == Type::kBF16 ? StoreForm::kBf16 : StoreForm::kF32;
}

// The cache forms of cache_rows.glsl; both must agree.
enum class CacheForm : uint32_t { kF32, kF16, kBf16, kQ8, kF16Halves, kBf16Halves };

bool IsHalf(Type type) { return type == Type::kF16 || type == Type::kBF16; }

// Returns the unit of a cache's offset and strides in the storing shaders, in bytes.
int64_t StoreUnit(const TensorView& cache) { return IsHalf(cache.type) ? kHalf : kWordBytes; }

struct CacheReading {
  CacheForm form;
  int64_t unit;  // the unit of offset and strides, in bytes
};

CacheReading ReadingOf(const TensorView& cache) {
  if (cache.type == Type::kQ8_KV) return {CacheForm::kQ8, kWordBytes};
  if (!IsHalf(cache.type)) return {CacheForm::kF32, kWordBytes};
  const bool words = cache.dims[0] % 2 == 0 && IsWhole(cache, kWordBytes);
  if (cache.type == Type::kF16) {
    return words ? CacheReading{CacheForm::kF16, kWordBytes}
                 : CacheReading{CacheForm::kF16Halves, kHalf};
  }
  return words ? CacheReading{CacheForm::kBf16, kWordBytes}
               : CacheReading{CacheForm::kBf16Halves, kHalf};
}

int64_t GroupOf(const AttentionViews& views) { return views.q.dims[1] / views.k.dims[2]; }

// Returns how many rows are reserved for the q heads of a kv head. With several sequences, the
// tokens of a batch are likely to be of different sequences, which share no cache. Padding then
// keeps the rows of two tokens in different workgroups.
int64_t PaddedGroupOf(const AttentionViews& views, const AttentionCut& cut) {
  const bool mixed = views.kv_lengths.dims[0] > 1 && views.q.dims[2] <= views.kv_lengths.dims[0];
  return mixed ? CeilDiv(GroupOf(views), cut.rows) * cut.rows : GroupOf(views);
}

// Returns the vectors of a row of q that a workgroup has room for. It takes few different values,
// because each needs its own pipeline.
uint32_t QueryCapacity(const AttentionViews& views) {
  uint32_t values = 64;
  while (values < views.q.dims[0]) values *= 2;
  return values / 4;
}

std::vector<uint32_t> AttentionPush(const AttentionViews& views,
                                    const reference::AttentionParams& params, int64_t chunks,
                                    const AttentionCut& cut) {
  std::vector<uint32_t> push;
  AppendPlace(views.q, 3, kWordBytes, &push);
  AppendPlace(views.k, 4, ReadingOf(views.k).unit, &push);
  AppendPlace(views.v, 4, ReadingOf(views.v).unit, &push);
  AppendPlace(views.block_table, 2, kWordBytes, &push);
  AppendPlace(views.q_offsets, 1, kWordBytes, &push);
  AppendPlace(views.kv_lengths, 1, kWordBytes, &push);
  AppendPlace(views.sinks != nullptr ? *views.sinks : TensorView{}, 1, kWordBytes, &push);
  AppendPlace(views.y, 3, kWordBytes, &push);
  // A window longer than any sequence can be has no effect, so none is set.
  const int64_t window =
      params.window > std::numeric_limits<int32_t>::max() ? 0 : std::max<int64_t>(params.window, 0);
  const uint32_t flags = (params.causal ? 1u : 0u) | (views.sinks != nullptr ? 2u : 0u);
  const int64_t sequences = std::min(views.q_offsets.dims[0] - 1, views.kv_lengths.dims[0]);
  push.insert(push.end(), {FloatWord(params.scale), FloatWord(params.softcap), Word(window), flags,
                           Word(views.q.dims[0]), Word(views.v.dims[0]), Word(GroupOf(views)),
                           Word(PaddedGroupOf(views, cut)), Word(views.q.dims[2]), Word(sequences),
                           Word(views.k.dims[1]), Word(chunks), Word(views.first_token)});
  return push;
}

// Returns how many invocations of a class can share a column: 1, 2 or 4.
uint32_t PartsOf(const AttentionViews& views, const AttentionCut& cut) {
  const int64_t columns = cut.workgroup / 4, vectors = CeilDiv(views.v.dims[0], 4);
  return vectors * 4 <= columns ? 4 : vectors * 2 <= columns ? 2 : 1;
}

const Shader& AttentionShader(const AttentionCut& cut) {
  if (cut.split) return shaders::attention_split;
  return cut.rows == 4 ? shaders::attention_rows4 : shaders::attention_rows8;
}

}  // namespace

KernelRun RopeRun(const TensorView& x, const TensorView& table, reference::RopeMode mode,
                  const TensorView& y, uint32_t workgroup) {
  const int64_t pairs = table.dims[0] / 2, items = x.dims[0] - pairs;
  const int64_t total = items * x.dims[1] * x.dims[2];
  KernelRun run;
  run.shader = &shaders::rope;
  run.constants = {workgroup, mode == reference::RopeMode::kHalves};
  run.push = {Word(items), Word(total), Word(pairs), Word(x.dims[1])};
  AppendPlace(x, 3, kWordBytes, &run.push);
  AppendPlace(table, 2, kWordBytes, &run.push);
  AppendPlace(y, 3, kWordBytes, &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(total), workgroup), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

KernelRun KvStoreRun(const TensorView& x, const TensorView& slots, const TensorView& cache,
                     uint32_t workgroup) {
  const bool q8 = cache.type == Type::kQ8_KV;
  const int64_t width = q8 ? x.dims[0] / 32 : x.dims[0];
  const int64_t total = width * x.dims[1] * x.dims[2];
  KernelRun run;
  run.shader = q8 ? &shaders::kv_store_q8 : &shaders::kv_store;
  run.constants = {workgroup};
  if (!q8) run.constants.push_back(static_cast<uint32_t>(StoreFormOf(cache.type)));
  run.push = {Word(width), Word(total), Word(x.dims[1]), Word(cache.dims[1] * cache.dims[3]),
              Word(cache.dims[1])};
  AppendPlace(x, 3, kWordBytes, &run.push);
  AppendPlace(slots, 1, kWordBytes, &run.push);
  AppendPlace(cache, 4, StoreUnit(cache), &run.push);
  const uint32_t items = q8 ? workgroup / 32 : workgroup;
  run.groups = {CappedGroups(static_cast<uint64_t>(total), items), 1, 1};
  run.operands = {0, 1, 2};
  return run;
}

KernelRun RotateStoreRun(const RotateStore& work, uint32_t workgroup) {
  const TensorView none;
  const bool rotates = work.table.has_value(), stores = work.slots.has_value();
  const int64_t pairs = rotates ? work.table->dims[0] / 2 : 0;
  const int64_t q_heads = rotates ? work.q->dims[1] : 0, kv_heads = work.k.dims[1];
  const int64_t value_width = stores ? work.v->dims[0] : 0;
  const TensorView& keys = stores ? *work.key_cache : none;
  const TensorView& values = stores ? *work.value_cache : none;
  const auto form = [&](const TensorView& cache) {
    return static_cast<uint32_t>(stores ? StoreFormOf(cache.type) : StoreForm::kNone);
  };
  KernelRun run;
  run.shader = &shaders::rotate_store;
  run.constants = {workgroup,
                   work.mode == reference::RopeMode::kHalves,
                   Word(pairs),
                   Word(work.k.dims[0]),
                   Word(value_width),
                   Word(q_heads),
                   Word(kv_heads),
                   Word(keys.dims[1]),
                   form(keys),
                   form(values),
                   work.rotated_k.has_value()};
  run.push = {Word(work.k.dims[2]), Word(keys.dims[1] * keys.dims[3])};
  AppendPlace(work.table.value_or(none), 2, kWordBytes, &run.push);
  AppendPlace(work.slots.value_or(none), 1, kWordBytes, &run.push);
  for (const TensorView& view : {work.q.value_or(none), work.k, work.v.value_or(none),
                                 work.rotated_q.value_or(none), work.rotated_k.value_or(none)}) {
    AppendPlace(view, 3, kWordBytes, &run.push);
  }
  AppendPlace(keys, 4, StoreUnit(keys), &run.push);
  AppendPlace(values, 4, StoreUnit(values), &run.push);
  const int64_t items = (q_heads + kv_heads) * (work.k.dims[0] - pairs) + kv_heads * value_width;
  run.groups = {CappedGroups(static_cast<uint64_t>(items * work.k.dims[2]), workgroup), 1, 1};
  // An absent operand is bound to another one that is read, or written.
  const uint32_t written = stores ? uint32_t{kKeyCache} : uint32_t{kRotatedQ};
  const auto or_else = [](bool there, uint32_t operand, uint32_t other) {
    return there ? operand : other;
  };
  run.operands = {or_else(rotates, kRotateQ, kRotateK),
                  kRotateK,
                  or_else(stores, kStoreV, kRotateK),
                  or_else(rotates, kRotateTable, kRotateK),
                  or_else(stores, kStoreSlots, kRotateK),
                  or_else(rotates, kRotatedQ, written),
                  or_else(work.rotated_k.has_value(), kRotatedK, written),
                  written,
                  or_else(stores, kValueCache, written)};
  return run;
}

AttentionCut ChooseAttentionCut(const AttentionViews& views, int64_t kv_positions,
                                const AttentionDevice& device) {
  const int64_t busy_groups = device.busy_groups;
  AttentionCut cut;
  const int64_t rows = views.q.dims[2] * PaddedGroupOf(views, cut);
  const int64_t groups = CeilDiv(rows, 4) * views.k.dims[2];
  cut.split = kv_positions > kChunk && groups < busy_groups;
  // Twice as many rows halve the reads of the cache. This pays once there is enough work for all
  // groups.
  if (!cut.split && groups >= 2 * busy_groups && rows >= 8) cut.rows = 8;
  // Gives each position its own invocation where no other group needs the space.
  if (groups < busy_groups) cut.workgroup = 256;
  while (cut.workgroup > 32 && (cut.workgroup > device.max_workgroup ||
                                AttentionSharedBytes(views, cut) > device.shared_bytes)) {
    cut.workgroup /= 2;
    cut.rows = 4;
  }
  return cut;
}

uint64_t AttentionScratchBytes(const AttentionViews& views, int64_t kv_positions,
                               const AttentionCut& cut) {
  if (!cut.split) return 0;
  const int64_t floats =
      views.q.dims[1] * views.q.dims[2] * CeilDiv(kv_positions, kChunk) * (views.v.dims[0] + 2);
  return static_cast<uint64_t>(floats) * sizeof(float);
}

uint64_t AttentionSharedBytes(const AttentionViews& views, const AttentionCut& cut) {
  const uint64_t vectors =
      cut.rows * QueryCapacity(views) + kChunk * cut.rows / 4 + 4 * (uint64_t{cut.workgroup} + 8);
  const uint64_t words = 3 * uint64_t{cut.workgroup} + 2 * kChunk + 16 * uint64_t{cut.rows};
  return 16 * vectors + 4 * words;
}

std::vector<KernelRun> AttentionRuns(const AttentionViews& views,
                                     const reference::AttentionParams& params, int64_t kv_positions,
                                     const AttentionCut& cut, bool quantizes) {
  const int64_t chunks = CeilDiv(kv_positions, kChunk);
  const int64_t rows = views.q.dims[2] * PaddedGroupOf(views, cut);
  const uint32_t sinks = views.sinks != nullptr ? 6 : 0;
  const uint32_t quantized = quantizes ? kAttentionQuantized : kAttentionY;
  KernelRun run;
  run.shader = &AttentionShader(cut);
  run.constants = {cut.workgroup, static_cast<uint32_t>(ReadingOf(views.k).form),
                   static_cast<uint32_t>(ReadingOf(views.v).form), QueryCapacity(views),
                   PartsOf(views, cut)};
  run.push = AttentionPush(views, params, chunks, cut);
  run.groups = {CappedGroups(static_cast<uint64_t>(rows), cut.rows),
                static_cast<uint32_t>(views.k.dims[2]),
                cut.split ? static_cast<uint32_t>(chunks) : 1};
  run.operands = {0, 1, 2, 3, 4, 5};
  if (!cut.split) {
    run.constants.push_back(quantizes);
    run.operands.insert(run.operands.end(), {sinks, kAttentionY, quantized});
    return {run};
  }
  run.operands.push_back(kScratchOperand);
  KernelRun join;
  join.shader = &shaders::attention_join;
  join.constants = {cut.workgroup, quantizes};
  join.push = run.push;
  join.groups = {static_cast<uint32_t>(views.q.dims[1]),
                 CappedGroups(static_cast<uint64_t>(views.q.dims[2]), 1), 1};
  join.operands = {kScratchOperand, 4, 5, sinks, kAttentionY, quantized};
  return {run, join};
}

}  // namespace trine::vulkan
