#include "kernels/vulkan/runs/products.h"

#include <algorithm>
#include <limits>

#include "kernels/quant/packed_rows.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using quant::Type;

// The flag of weight_types.glsl, which must agree.
constexpr uint32_t kPackedType = 256;

// Sizes that the shaders are written for.
constexpr uint32_t kGemmWorkgroup = 256;
constexpr uint32_t kListsWorkgroup = 256;
constexpr uint32_t kFloatLanes = 32;
constexpr uint32_t kMaxLanes = 32;

// The numbers of the operands, as the ABI counts them.
constexpr uint32_t kW = 0, kX = 1, kIds = 2;

bool IsMoe(const Product& p) { return p.ids.has_value(); }
bool IsQuantizedProduct(const Product& p) { return quant::IsQuantized(p.w.type); }
uint32_t BiasOperand(const Product& p) { return IsMoe(p) ? 3 : 2; }
uint32_t YOperand(const Product& p) { return IsMoe(p) ? 4 : 3; }

int64_t Slots(const Product& p) { return IsMoe(p) ? p.y.dims[1] : 1; }
int64_t Tokens(const Product& p) { return IsMoe(p) ? p.y.dims[2] : p.y.dims[1]; }
int64_t Columns(const Product& p) { return Slots(p) * Tokens(p); }
int64_t ColumnsOfX(const Product& p) { return p.x.dims[1] * p.x.dims[2]; }

// Returns the 16-byte words of a column of quantised activations: whole chunks of eight blocks,
// then a scale and two sums for each block.
int64_t QuantizedWords(int64_t k) {
  const int64_t blocks = k / quant::kGroupValues;
  return CeilDiv(blocks, 8) * 16 + CeilDiv(blocks * 8, 16);
}

int64_t TileColumns(const Product& p, const ProductTuning& t) {
  return t.gemm_columns * (IsQuantizedProduct(p) ? 4 : 2);
}
int64_t TileRows(const Product& p, const ProductTuning& t) {
  return t.gemm_rows * (IsQuantizedProduct(p) ? 8 : 4);
}

// Returns an upper bound of the tiles of all experts' columns: each expert, and the ids that are no
// expert, may leave one tile partly filled.
int64_t MaxTiles(const Product& p, const ProductTuning& t) {
  return std::min(Columns(p), Columns(p) / TileColumns(p, t) + p.experts + 1);
}

uint64_t ListsOffset(const Product& p) {
  return p.scratch_offset +
         (IsQuantizedProduct(p) ? QuantizedBytes(p.w.dims[0], ColumnsOfX(p)) : 0);
}

bool IsGemm(const Product& p, const ProductTuning& t) {
  return IsMoe(p) ? NeedsLists(p, t) : Columns(p) > t.gemv_columns;
}

const Shader* ShaderOf(const Product& p, const ProductTuning& t, bool gemm) {
  if (!IsQuantizedProduct(p)) {
    if (IsMoe(p)) return gemm ? &shaders::moe_gemm_float : &shaders::moe_gemv_float;
    return gemm ? &shaders::gemm_float : &shaders::gemv_float;
  }
  if (IsMoe(p)) {
    if (gemm) return t.int_dot ? &shaders::moe_gemm_quantized_dot : &shaders::moe_gemm_quantized;
    return t.int_dot ? &shaders::moe_gemv_quantized_dot : &shaders::moe_gemv_quantized;
  }
  if (gemm) return t.int_dot ? &shaders::gemm_quantized_dot : &shaders::gemm_quantized;
  return t.int_dot ? &shaders::gemv_quantized_dot : &shaders::gemv_quantized;
}

// Returns the push constants of product.glsl.
std::vector<uint32_t> PushWords(const Product& p, bool gemm) {
  const int64_t w_unit = p.packed ? 16 : 1;
  const int token_dim = IsMoe(p) ? 2 : 1;
  std::vector<uint32_t> push = {Word(p.w.dims[0]), Word(p.w.dims[1]), Word(Columns(p)),
                                Word(static_cast<int64_t>(p.w.offset) / w_unit),
                                Word(p.w.strides[1] / w_unit)};
  uint32_t x_slot_stride = 0;
  const bool x_has_slots = IsMoe(p) && p.x.dims[1] > 1;
  if (IsQuantizedProduct(p)) {
    const int64_t column = QuantizedWords(p.w.dims[0]);
    push.push_back(Word(static_cast<int64_t>(p.scratch_offset) / 16));
    push.push_back(Word(x_has_slots ? column * Slots(p) : column));
    if (x_has_slots) x_slot_stride = Word(column);
  } else {
    push.push_back(Word(static_cast<int64_t>(p.x.offset) / 4));
    push.push_back(Word(p.x.strides[token_dim] / 4));
    if (x_has_slots) x_slot_stride = Word(p.x.strides[1] / 4);
  }
  push.push_back(p.bias ? Word(static_cast<int64_t>(p.bias->offset) / 4) : 0);
  push.push_back(p.bias ? 1 : 0);
  push.push_back(Word(static_cast<int64_t>(p.y.offset) / 4));
  push.push_back(Word(p.y.strides[token_dim] / 4));
  if (!IsMoe(p)) return push;
  const uint64_t ids_at = gemm ? ListsOffset(p) : p.ids->offset;
  push.insert(push.end(),
              {Word(Slots(p)), x_slot_stride, Word(p.y.strides[1] / 4),
               Word(static_cast<int64_t>(ids_at) / 4), Word(p.ids->strides[1] / 4), Word(p.experts),
               Word(p.first_expert), Word(p.first_expert + p.w.dims[2]),
               Word(p.w.strides[2] / w_unit), p.bias ? Word(p.bias->strides[1] / 4) : 0});
  return push;
}

// Sets `count` groups along x and, beyond the limit, y.
void SetRowGroups(int64_t count, KernelRun* d) {
  const int64_t sides = CeilDiv(count, kMaxGroups);
  d->groups[1] = Word(sides);
  d->groups[0] = sides == 0 ? 0 : Word(CeilDiv(count, sides));
}

struct RowShape {
  uint32_t rows, lanes;
};

// Returns how many rows a slot computes at a time, and how many lanes it has.
RowShape ShapeRows(const Product& p, const ProductTuning& t, uint32_t columns) {
  const bool quantized = IsQuantizedProduct(p);
  const int64_t blocks = p.w.dims[0] / quant::kGroupValues;
  const int64_t all_rows = p.w.dims[1] * (IsMoe(p) ? Columns(p) : 1);
  // A lane's results are in registers, so it has several rows or several columns, not both.
  RowShape shape = {columns > 2 ? 1 : t.gemv_rows, quantized ? t.gemv_lanes : kFloatLanes};
  while (shape.rows > 1 && all_rows / shape.rows * shape.lanes < t.gemv_fill) shape.rows /= 2;
  while (shape.lanes < kMaxLanes && all_rows * shape.lanes < t.gemv_fill &&
         2 * shape.lanes <= blocks) {
    shape.lanes *= 2;
  }
  return shape;
}

// Returns the shared memory that the shaders declare for rows of `lanes` lanes, in bytes.
uint64_t GemvShared(bool quantized, uint64_t workgroup, uint64_t lanes, uint64_t results,
                    uint64_t blocks) {
  if (!quantized) return 4 * workgroup * results;
  const uint64_t terms = lanes == 8 ? 2 : 2 * workgroup * results * blocks;
  return 4 * (terms + workgroup / lanes * results * 8);
}

uint64_t GemmShared(bool quantized, uint64_t rows, uint64_t columns) {
  if (!quantized) {
    const uint64_t values = 128 * (4 * rows + 2 * columns), join = 128 * rows * columns;
    return 4 * std::max(values, join);
  }
  const uint64_t tile_rows = 8 * rows, tile_columns = 4 * columns;
  const uint64_t values = 16 * (tile_rows + 1 + tile_columns + 1);
  const uint64_t join = 128 * ((rows * columns + 3) / 4);
  // The last term: scales and factors of the weights, scales and sums of the activations.
  return 16 * std::max(values, join) + 8 * (16 * tile_rows + 8 * tile_columns);
}

void SetGemv(const Product& p, const ProductTuning& t, KernelRun* d) {
  const uint32_t columns =
      IsMoe(p) ? 1 : static_cast<uint32_t>(std::min<int64_t>(Columns(p), t.gemv_columns));
  const RowShape shape = ShapeRows(p, t, columns);
  d->constants = {t.gemv_workgroup, d->constants[1], shape.lanes,
                  shape.rows,       columns,         t.gemv_blocks};
  SetRowGroups(CeilDiv(p.w.dims[1], int64_t{t.gemv_workgroup} / shape.lanes * shape.rows), d);
  d->groups[2] = columns == 0 ? 0 : Word(CeilDiv(Columns(p), columns));
  d->subgroup_size = t.gemv_subgroup;
  d->shared_bytes = GemvShared(IsQuantizedProduct(p), t.gemv_workgroup, shape.lanes,
                               uint64_t{shape.rows} * columns, t.gemv_blocks);
}

void SetGemm(const Product& p, const ProductTuning& t, KernelRun* d) {
  d->constants = {kGemmWorkgroup, d->constants[1], t.gemm_rows, t.gemm_columns};
  const int64_t tiles = IsMoe(p) ? MaxTiles(p, t) : CeilDiv(Columns(p), TileColumns(p, t));
  const int64_t sides = CeilDiv(tiles, kMaxGroups);
  d->groups = {Word(CeilDiv(p.w.dims[1], TileRows(p, t))),
               sides == 0 ? 0 : Word(CeilDiv(tiles, sides)), Word(sides)};
  d->shared_bytes = GemmShared(IsQuantizedProduct(p), t.gemm_rows, t.gemm_columns);
}

// Returns whether 32 bits can address the whole view, whose rows have `row_bytes`.
bool FitsBinding(const TensorView& view, uint64_t row_bytes) {
  uint64_t end = view.offset + row_bytes;
  for (int i = 1; i < 4; ++i) {
    if (view.dims[i] < 1) return true;
    end += static_cast<uint64_t>(view.dims[i] - 1) * static_cast<uint64_t>(view.strides[i]);
  }
  return end <= std::numeric_limits<uint32_t>::max();
}

std::string WhyNotWeights(const Product& p) {
  const quant::TypeTraits traits = quant::Traits(p.w.type);
  if (p.w.type == Type::kI32 || p.w.type == Type::kQ8_KV || traits.block_bytes == 0) {
    return std::string(traits.name) + " is no type of weights";
  }
  if (p.packed && !HasPackedLayout(p.w.type)) {
    return std::string(traits.name) + " has no packed layout";
  }
  if (p.w.dims[0] < 1 || p.w.dims[0] % traits.block_values != 0) {
    return "the rows of w are no whole number of blocks";
  }
  const int64_t unit = p.packed                   ? 16
                       : p.w.type == Type::kF32   ? 4
                       : p.w.type == Type::kMXFP4 ? 1
                                                  : 2;
  if (!IsWhole(p.w, unit)) return "w begins, or its rows do, between two words";
  return "";
}

}  // namespace

uint64_t GemvSharedBytes(const ProductTuning& t) {
  // ShapeRows gives several rows to a lane only with at most two columns.
  const uint64_t results = std::max<uint64_t>(2 * uint64_t{t.gemv_rows}, t.gemv_columns);
  uint64_t bytes = GemvShared(false, t.gemv_workgroup, kFloatLanes, results, t.gemv_blocks);
  for (uint32_t lanes = t.gemv_lanes; lanes <= kMaxLanes; lanes *= 2) {
    bytes = std::max(bytes, GemvShared(true, t.gemv_workgroup, lanes, results, t.gemv_blocks));
  }
  return bytes;
}

uint64_t GemmSharedBytes(const ProductTuning& t) {
  return std::max(GemmShared(false, t.gemm_rows, t.gemm_columns),
                  GemmShared(true, t.gemm_rows, t.gemm_columns));
}

std::string WhyNotProduct(const Product& p) {
  if (std::string why = WhyNotWeights(p); !why.empty()) return why;
  for (const TensorView* view : {&p.x, &p.y, p.bias ? &*p.bias : &p.x, p.ids ? &*p.ids : &p.x}) {
    if (!IsWhole(*view, 4)) return "x, y, bias or ids begin between two words";
    if (!FitsBinding(*view, static_cast<uint64_t>(view->dims[0]) * 4)) {
      return "x, y, bias or ids are larger than a binding can be";
    }
  }
  if (!FitsBinding(p.w, static_cast<uint64_t>(p.w.strides[1]))) {
    return "w is larger than a binding can be";
  }
  if (p.scratch_offset % 16 != 0) return "scratch begins between two 16-byte words";
  const int outer = IsMoe(p) ? 3 : 2;
  for (const TensorView* view : {&p.w, &p.x, &p.y}) {
    for (int i = outer; i < 4; ++i) {
      if (view->dims[i] != 1) return "w, x or y have more dimensions than a product uses";
    }
  }
  return "";
}

uint64_t QuantizedBytes(int64_t k, int64_t columns) {
  return static_cast<uint64_t>(QuantizedWords(k) * columns) * 16;
}

uint64_t ScratchBytes(const Product& p, const ProductTuning& t) {
  uint64_t bytes = ListsOffset(p) - p.scratch_offset;
  if (NeedsLists(p, t)) {
    bytes += static_cast<uint64_t>(4 + 4 * MaxTiles(p, t) + Columns(p)) * 4;
  }
  return bytes;
}

KernelRun QuantizeRun(const Product& p) {
  const int64_t blocks = p.w.dims[0] / quant::kGroupValues;
  KernelRun d;
  d.shader = &shaders::quantize_activations;
  d.constants = {kQuantizeWorkgroup};
  d.push = {Word(blocks), Word(p.x.dims[1]), Word(p.x.dims[2]),
            Word(static_cast<int64_t>(p.scratch_offset) / 4),
            Word(QuantizedWords(p.w.dims[0]) * 4)};
  AppendPlace(p.x, 3, 4, &d.push);
  d.groups = {
      CappedGroups(static_cast<uint64_t>(blocks * ColumnsOfX(p)) * kBlockLanes, kQuantizeWorkgroup),
      1, 1};
  d.operands = {kX, kScratchOperand};
  return d;
}

bool NeedsLists(const Product& p, const ProductTuning& t) {
  // With fewer columns for each expert, reading the weights once for each column costs no more.
  constexpr int64_t kColumnsOfExpert = 2;
  return IsMoe(p) && (Columns(p) > std::max<int64_t>(t.gemv_columns, p.experts * kColumnsOfExpert));
}

KernelRun ListColumnsRun(const Product& p, const ProductTuning& t) {
  KernelRun d;
  d.shader = &shaders::moe_lists;
  d.constants = {kListsWorkgroup, Word(p.experts), Word(TileColumns(p, t))};
  d.push = {Word(Slots(p)), Word(Tokens(p))};
  AppendPlace(*p.ids, 2, 4, &d.push);
  d.push.push_back(Word(static_cast<int64_t>(ListsOffset(p)) / 4));
  d.push.push_back(Word(MaxTiles(p, t)));
  d.operands = {kIds, kScratchOperand};
  d.shared_bytes = 8 * (static_cast<uint64_t>(p.experts) + 1);
  return d;
}

KernelRun ProductRun(const Product& p, const ProductTuning& t) {
  const bool gemm = IsGemm(p, t);
  KernelRun d;
  d.shader = ShaderOf(p, t, gemm);
  d.constants = {0, static_cast<uint32_t>(p.w.type) | (p.packed ? kPackedType : 0)};
  d.push = PushWords(p, gemm);
  gemm ? SetGemm(p, t, &d) : SetGemv(p, t, &d);
  d.operands = {kW, IsQuantizedProduct(p) ? kScratchOperand : kX};
  if (IsMoe(p)) d.operands.push_back(gemm ? kScratchOperand : kIds);
  d.operands.push_back(p.bias ? BiasOperand(p) : kW);
  d.operands.push_back(YOperand(p));
  return d;
}

}  // namespace trine::vulkan
