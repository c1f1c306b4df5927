#include "kernels/hip/attention/attention.h"

#include <algorithm>
#include <limits>

#include "kernels/hip/attention/attention_args.h"
#include "kernels/hip/attention/attention_heads.h"
#include "kernels/hip/attention/attention_tiles.h"

namespace trine::hip {
namespace {

using quant::Type;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns whether rows are whole vectors of four elements, and begin at multiples of `bytes`.
bool IsWhole(const Tensor& cache, int64_t bytes) {
  if (cache.dims[0] % 4 != 0 || reinterpret_cast<uintptr_t>(cache.data) % bytes != 0) return false;
  return std::all_of(cache.strides.begin() + 1, cache.strides.end(),
                     [&](int64_t stride) { return stride % bytes == 0; });
}

CacheForm FormOf(const Tensor& cache) {
  switch (cache.type) {
    case Type::kF32:
      return IsWhole(cache, 16) ? CacheForm::kF32 : CacheForm::kAny;
    case Type::kF16:
      return IsWhole(cache, 8) ? CacheForm::kF16 : CacheForm::kAny;
    case Type::kBF16:
      return IsWhole(cache, 8) ? CacheForm::kBf16 : CacheForm::kAny;
    case Type::kQ8_KV:
      return CacheForm::kQ8;
    default:
      return CacheForm::kAny;
  }
}

// Returns the number of floats of a row's values in scratch.
int64_t PaddedWidth(const AttentionTensors& t) { return CeilDivide(t.v.dims[0], 4) * 4; }

// Returns the bytes that the chunks of `tokens` tokens leave in scratch.
int64_t ScratchBytes(const AttentionTensors& t, int64_t tokens, int64_t chunks) {
  return t.q.dims[1] * tokens * chunks * (PaddedWidth(t) + 2) * static_cast<int64_t>(sizeof(float));
}

// The most scratch. If splitting needs more, a block does all chunks of its rows.
constexpr int64_t kMostScratchBytes = int64_t{64} << 20;

// Says how the work is divided among blocks of threads. It changes no bit.
struct Cut {
  bool tiles = false;   // false: heads
  bool split = false;   // each chunk has its own blocks
  uint32_t heads = 1;   // in a block, if not tiles
  uint32_t groups = 2;  // groups of 32 elements
  uint32_t parts = 1;   // as in AttentionArgs
  int64_t chunks = 0;

  Cut(const AttentionTensors& t, int64_t positions, const DeviceShape& device) {
    const int64_t d = t.k.dims[0], tokens = t.q.dims[2], kv_heads = t.k.dims[2];
    const int64_t group = t.q.dims[1] / kv_heads, sequences = t.kv_lengths.dims[0];
    const int64_t busy = device.multiprocessors;
    chunks = CeilDivide(positions, kChunk);
    groups = d <= 64 ? 2 : d <= 128 ? 4 : 8;
    tiles = CeilDivide(tokens, std::max<int64_t>(sequences, 1)) * group >= kTileRows / 2 &&
            d <= kMaxTileWidth && sizeof(TileShared) <= device.shared_bytes;
    if (tiles) {
      parts = static_cast<uint32_t>(CeilDivide(tokens * group, kTileRows));
      split = chunks > 1 && parts * kv_heads < 2 * busy &&
              ScratchBytes(t, tokens, chunks) <= kMostScratchBytes;
      return;
    }
    heads = groups == 8 ? 2 : 4;
    const auto blocks = [&] { return CeilDivide(group, heads) * kv_heads * tokens; };
    // Heads that share a block read the cache once, but too few blocks leave the device idle.
    while (heads > 1 && (heads >= 2 * group || blocks() * chunks < busy)) heads /= 2;
    parts = static_cast<uint32_t>(CeilDivide(group, heads));
    split =
        chunks > 1 && blocks() < 8 * busy && ScratchBytes(t, tokens, chunks) <= kMostScratchBytes;
  }
};

// Returns the most tokens whose chunks may be split.
int64_t MostSplitTokens(const AttentionTensors& t, const DeviceShape& device) {
  const int64_t kv_heads = t.k.dims[2], group = t.q.dims[1] / kv_heads;
  const int64_t busy = device.multiprocessors;
  const int64_t of_tiles = (2 * busy - 1) / kv_heads * kTileRows / group;
  const int64_t of_heads = (8 * busy - 1) / kv_heads;
  return std::max<int64_t>({of_tiles, of_heads, 0});
}

// Returns the most chunks that `tokens` tokens in a row can see together.
int64_t MostChunks(const reference::AttentionParams& params, int64_t tokens, int64_t chunks) {
  if (params.window <= 0 || !params.causal || params.window >= chunks * kChunk) return chunks;
  return std::min(chunks, CeilDivide(params.window + tokens - 2, kChunk) + 1);
}

CacheArgs CacheOf(const Tensor& cache) {
  uint64_t row_bytes = 0;
  (void)quant::RowBytes(cache.type, cache.dims[0], &row_bytes);
  return {cache.data,
          cache.strides[1],
          cache.strides[2],
          cache.strides[3],
          static_cast<uint32_t>(cache.dims[0]),
          static_cast<uint32_t>(row_bytes),
          cache.type};
}

const int32_t* Integers(const Tensor& t) { return reinterpret_cast<const int32_t*>(t.data); }

NewRows NewRowsOf(const RotateStore& work) {
  NewRows rows;
  rows.k = reinterpret_cast<const float*>(work.k.data);
  rows.v = reinterpret_cast<const float*>(work.v.data);
  rows.k_head = work.k.strides[1];
  rows.v_head = work.v.strides[1];
  rows.cosines = reinterpret_cast<const float*>(work.table.data);
  rows.slot = Integers(work.slots);
  rows.pairs = static_cast<uint32_t>(work.table.dims[0] / 2);
  rows.slots = static_cast<uint32_t>(work.key_cache.dims[1] * work.key_cache.dims[3]);
  rows.halves = work.mode == reference::RopeMode::kHalves;
  if (work.q_norm.weight.present()) {
    rows.q_norm = reinterpret_cast<const float*>(work.q_norm.weight.data);
    rows.k_norm = reinterpret_cast<const float*>(work.k_norm.weight.data);
    rows.q_eps = work.q_norm.eps;
    rows.k_eps = work.k_norm.eps;
    rows.inverse_width = quant::Recip(static_cast<float>(work.k.dims[0]));
  }
  return rows;
}

AttentionArgs ArgsOf(const AttentionTensors& t, const reference::AttentionParams& params,
                     const Cut& cut, std::byte* scratch, const QuantizedColumns& quantized,
                     const RotateStore* before) {
  AttentionArgs args = {};
  args.q = t.q.data;
  args.early = t.block_table.constant && t.q_offsets.constant && t.kv_lengths.constant;
  if (before != nullptr) {
    args.q = before->q.data;
    args.before = NewRowsOf(*before);
    args.early &= before->table.constant && before->slots.constant;
    if (before->q_norm.weight.present()) {
      args.early &= before->q_norm.weight.constant && before->k_norm.weight.constant;
    }
  }
  args.q_head = before != nullptr ? before->q.strides[1] : t.q.strides[1];
  args.q_token = t.q.strides[2];
  args.k = CacheOf(t.k);
  args.v = CacheOf(t.v);
  args.block_table = Integers(t.block_table);
  args.table_sequence = t.block_table.strides[1] / static_cast<int64_t>(sizeof(int32_t));
  args.q_offsets = Integers(t.q_offsets);
  args.kv_lengths = Integers(t.kv_lengths);
  args.sinks = reinterpret_cast<const float*>(t.sinks.data);
  args.y = t.y.data;
  args.y_head = t.y.strides[1];
  args.y_token = t.y.strides[2];
  args.quantized = quantized;
  args.scale = params.scale;
  args.softcap = params.softcap;
  args.inverse_cap = params.softcap != 0.0f ? quant::Recip(params.softcap) : 0.0f;
  // A window as long as the longest possible sequence limits nothing.
  const bool windowed = params.window > 0 && params.window < std::numeric_limits<int32_t>::max();
  args.window = windowed ? static_cast<int32_t>(params.window) : 0;
  args.causal = params.causal;
  args.split = cut.split;
  args.tokens = static_cast<uint32_t>(t.q.dims[2]);
  args.heads = static_cast<uint32_t>(t.q.dims[1]);
  args.group = static_cast<uint32_t>(t.q.dims[1] / t.k.dims[2]);
  args.sequences = static_cast<uint32_t>(std::min(t.q_offsets.dims[0] - 1, t.kv_lengths.dims[0]));
  args.block_positions = static_cast<uint32_t>(t.k.dims[1]);
  args.parts = cut.parts;
  args.chunks = static_cast<uint32_t>(MostChunks(params, 1, cut.chunks));
  args.padded_width = static_cast<uint32_t>(PaddedWidth(t));
  if (cut.split) {
    args.scratch_values = reinterpret_cast<float*>(scratch);
    args.scratch_sums = args.scratch_values + static_cast<int64_t>(args.tokens) * args.heads *
                                                  args.chunks * args.padded_width;
  }
  return args;
}

Launch RowsLaunchOf(CacheForm form, const Cut& cut, const AttentionArgs& args, uint32_t chunks) {
  const auto launch = [&]<CacheForm kForm>() {
    return RowsLaunch<kForm>(cut.tiles, cut.heads, cut.groups, args, chunks);
  };
  switch (form) {
    case CacheForm::kF32:
      return launch.operator()<CacheForm::kF32>();
    case CacheForm::kF16:
      return launch.operator()<CacheForm::kF16>();
    case CacheForm::kBf16:
      return launch.operator()<CacheForm::kBf16>();
    case CacheForm::kQ8:
      return launch.operator()<CacheForm::kQ8>();
    case CacheForm::kAny:
      break;
  }
  return launch.operator()<CacheForm::kAny>();
}

}  // namespace

uint64_t AttentionScratchBytes(const AttentionTensors& tensors, int64_t positions,
                               const DeviceShape& device) {
  if (tensors.y.elements() == 0) return 0;
  const int64_t chunks = CeilDivide(positions, kChunk);
  const int64_t tokens = std::min(tensors.q.dims[2], MostSplitTokens(tensors, device));
  if (chunks < 2 || tokens < 1) return 0;
  return static_cast<uint64_t>(std::min(ScratchBytes(tensors, tokens, chunks), kMostScratchBytes));
}

uint64_t AttentionScratchUsed(const AttentionTensors& tensors, int64_t positions,
                              const DeviceShape& device) {
  const Cut cut(tensors, positions, device);
  return cut.split ? static_cast<uint64_t>(ScratchBytes(tensors, tensors.q.dims[2], cut.chunks))
                   : 0;
}

bool CanAttendAlong(const AttentionTensors& tensors, const RotateStore& before, int64_t positions,
                    const DeviceShape& device) {
  // Rotated rows fit any device's shared memory.
  const int64_t most_width = before.q_norm.weight.present() ? int64_t{kMostNormedHead} : 512;
  return tensors.q.dims[2] == 1 && tensors.k.dims[0] <= most_width && tensors.y.elements() != 0 &&
         before.q_norm.weight.present() == before.k_norm.weight.present() &&
         before.table.present() && !before.rotated_k.present() &&
         before.key_cache.type != Type::kQ8_KV && before.value_cache.type != Type::kQ8_KV &&
         !Cut(tensors, positions, device).tiles;
}

void AddAttention(const AttentionTensors& tensors, const reference::AttentionParams& params,
                  int64_t positions, std::byte* scratch, const QuantizedColumns& quantized,
                  const RotateStore* before, const DeviceShape& device,
                  std::vector<Launch>* launches) {
  if (tensors.y.elements() == 0) return;
  const Cut cut(tensors, positions, device);
  const AttentionArgs args = ArgsOf(tensors, params, cut, scratch, quantized, before);
  const CacheForm k = FormOf(tensors.k), form = k == FormOf(tensors.v) ? k : CacheForm::kAny;
  // The most tokens of a tile.
  const int64_t tokens = cut.tiles ? CeilDivide(kTileRows, args.group) + 1 : 1;
  const int64_t chunk_blocks = cut.split ? MostChunks(params, tokens, cut.chunks) : 1;
  launches->push_back(RowsLaunchOf(form, cut, args, static_cast<uint32_t>(chunk_blocks)));
  if (cut.split) launches->push_back(JoinLaunch(args));
}

}  // namespace trine::hip
