#include "kernels/hip/gemm/gemm.h"

#include <algorithm>
#include <limits>

#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/gemm/gemm_choice.h"
#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {
namespace {

int64_t Tiles(int64_t count, uint32_t size) { return (count + size - 1) / size; }

constexpr uint32_t kListThreads = 512;
constexpr int64_t kMaxExperts = 4096;  // two words of shared memory for each

struct ListArgs {
  const std::byte* ids;
  int64_t ids_stride;
  uint32_t* lists;
  uint32_t columns, slots, experts;
  uint32_t tile_columns, max_tiles;
};

TRINE_DEVICE uint32_t ExpertOf(const ListArgs& args, uint32_t column) {
  const auto* ids =
      reinterpret_cast<const int32_t*>(args.ids + column / args.slots * args.ids_stride);
  const auto id = static_cast<uint32_t>(ids[column % args.slots]);
  return id < args.experts ? id : args.experts;
}

// Lists the columns of each expert, in any order: no result depends on it.
TRINE_KERNEL(kListThreads) ListKernel(ListArgs args) {
  BeginAfterEarlier();
  TRINE_DYNAMIC_SHARED(uint32_t, counts);
  uint32_t* next = counts + args.experts + 1;  // the place of the next column of an expert
  const uint32_t columns_at = kListTiles + kListTileWords * args.max_tiles;
  for (uint32_t e = ThreadX(); e <= args.experts; e += kListThreads) counts[e] = 0;
  SyncBlock();
  for (uint32_t c = ThreadX(); c < args.columns; c += kListThreads) {
    AtomicAdd(&counts[ExpertOf(args, c)], 1);
  }
  SyncBlock();
  for (uint32_t e = ThreadX(); e <= args.experts; e += kListThreads) {
    uint32_t first = columns_at, tile = 0;
    for (uint32_t i = 0; i < e; ++i) {
      first += counts[i];
      tile += (counts[i] + args.tile_columns - 1) / args.tile_columns;
    }
    next[e] = first;
    for (uint32_t done = 0; done < counts[e]; done += args.tile_columns) {
      const uint32_t left = counts[e] - done;
      uint32_t* to = args.lists + kListTiles + kListTileWords * tile++;
      to[0] = e;
      to[1] = first + done;
      to[2] = left < args.tile_columns ? left : args.tile_columns;
    }
    if (e == args.experts) args.lists[0] = tile;
  }
  SyncBlock();
  for (uint32_t c = ThreadX(); c < args.columns; c += kListThreads) {
    args.lists[AtomicAdd(&next[ExpertOf(args, c)], 1)] = c;
  }
}

bool Aligned(const Tensor& t, uint64_t bytes) {
  const auto all = reinterpret_cast<uintptr_t>(t.data) | static_cast<uint64_t>(t.strides[1]) |
                   static_cast<uint64_t>(t.strides[2]);
  return all % bytes == 0;
}

}  // namespace

std::string WhyNotGemm(const Product& product) {
  const Tensor &w = product.w, &x = product.x, &y = product.y;
  const quant::Type type = w.type;
  const bool quantized = quant::IsQuantized(type);
  if (quant::Traits(type).block_bytes == 0 || type == quant::Type::kI32 ||
      type == quant::Type::kQ8_KV) {
    return "the weights have a type that products do not take";
  }
  if (w.packed && (!quant::HasPackedLayout(type) || !Aligned(w, quant::kPackedAlignment))) {
    return "the weights are packed in a way that their type does not have";
  }
  uint64_t row_bytes = 0;
  if (!quant::RowBytes(type, w.dims[0], &row_bytes))
    return "the weights have a row of no whole blocks";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (w.dims[0] > kMost || w.dims[1] > kMost || product.columns() > kMost) {
    return "a dimension is too large";
  }
  if (quantized && (!product.q.present() || product.q.blocks != w.dims[0] / 32)) {
    return "the activations are not in blocks of the weights' number";
  }
  if (x.dims[0] != w.dims[0] || y.dims[0] != w.dims[1]) return "the shapes do not fit";
  if ((x.dims[1] != y.dims[1] && x.dims[1] != 1) || x.dims[2] != y.dims[2]) {
    return "the columns do not fit";
  }
  if (product.ids.present() && w.dims[2] > kMaxExperts) return "there are too many experts";
  return "";
}

uint64_t GemmScratchBytes(const Product& product) {
  if (!product.ids.present()) return 0;
  // Counts the narrowest tiles, because they are the most numerous, and a product of the same
  // weights with fewer columns may use them.
  TileShape tile;
  tile.columns = kLeastTileColumns;
  const int64_t tiles = ColumnTiles(product, tile);
  return 4 * static_cast<uint64_t>(kListTiles + kListTileWords * tiles + product.columns());
}

void AddGemm(const Product& product, const DeviceShape& shape, std::byte* scratch,
             std::vector<Launch>* launches) {
  AddGemmBy(ChooseGemm(product, shape), product, scratch, launches);
}

void AddGemmBy(const TiledGemm& kernel, const Product& product, std::byte* scratch,
               std::vector<Launch>* launches) {
  const Tensor &w = product.w, &x = product.x, &y = product.y;
  if (y.elements() == 0) return;
  const TileShape& tile = kernel.tile;
  const int64_t tiles = ColumnTiles(product, tile);
  GemmArgs args{};
  args.w = w.data;
  args.w_stride = w.strides[1];
  args.w_expert = w.strides[2];
  args.q = product.q;
  args.x = x.data;
  const bool repeated = x.dims[1] == 1;
  args.x_stride[0] = repeated ? 0 : x.strides[1];
  args.x_stride[1] = x.strides[2];
  args.q_stride[0] = repeated ? 0 : 1;
  args.q_stride[1] = x.dims[1];
  args.bias = product.bias.data;
  args.bias_expert = product.bias.strides[1];
  args.y = y.data;
  args.y_stride[0] = y.strides[1];
  args.y_stride[1] = y.strides[2];
  args.k = static_cast<uint32_t>(w.dims[0]);
  args.n = static_cast<uint32_t>(w.dims[1]);
  args.columns = static_cast<uint32_t>(product.columns());
  args.slots = static_cast<uint32_t>(y.dims[1]);
  args.experts = static_cast<uint32_t>(w.dims[2]);
  if (product.ids.present()) {
    ListArgs lists;
    lists.ids = product.ids.data;
    lists.ids_stride = product.ids.strides[1];
    lists.lists = reinterpret_cast<uint32_t*>(scratch);
    lists.columns = args.columns;
    lists.slots = args.slots;
    lists.experts = args.experts;
    lists.tile_columns = tile.columns;
    lists.max_tiles = static_cast<uint32_t>(tiles);
    launches->push_back(MakeLaunch(ListKernel, {1}, {kListThreads}, lists, 8 * (args.experts + 1)));
    args.lists = lists.lists;
  }
  const auto row_tiles = static_cast<uint32_t>(Tiles(args.n, tile.rows));
  launches->push_back(MakeLaunch(kernel.kernel,
                                 {static_cast<uint32_t>(tiles), std::min(row_tiles, kMaxGridYZ)},
                                 {tile.threads}, args, kernel.shared_bytes));
}

}  // namespace trine::hip
