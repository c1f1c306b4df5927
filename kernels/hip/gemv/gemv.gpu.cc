#include "kernels/hip/gemv/gemv.h"

#include <algorithm>
#include <limits>

#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/weights/weight_group.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {
namespace {

// Returns whether all rows of all experts begin at a multiple of `bytes`.
bool RowsAreAligned(const Tensor& w, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(w.data) % static_cast<uintptr_t>(bytes) == 0 &&
         w.strides[1] % bytes == 0 && w.strides[2] % bytes == 0;
}

bool RowsAreAligned(std::span<const Product> products, int64_t bytes) {
  return std::all_of(products.begin(), products.end(),
                     [&](const Product& p) { return RowsAreAligned(p.w, bytes); });
}

}  // namespace

std::string WhyNotGemv(const Product& p) {
  const quant::TypeTraits traits = quant::Traits(p.w.type);
  const std::string type = traits.name;
  if (p.w.type == Type::kI32 || p.w.type == Type::kQ8_KV || traits.block_bytes == 0) {
    return type + " is no type of weights";
  }
  if (p.w.dims[0] % traits.block_values != 0) return "a row is no whole number of blocks";
  if (p.w.packed && !quant::HasPackedLayout(p.w.type)) return type + " has no packed layout";
  if (p.w.packed && !RowsAreAligned(p.w, quant::kPackedAlignment)) {
    return "packed rows begin at multiples of 16 bytes";
  }
  if (quant::IsQuantized(p.w.type) && !p.q.present()) return "the activations are not quantised";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (p.w.dims[0] > kMost || p.w.dims[1] > kMost || p.columns() > kMost || p.w.dims[2] > kMost) {
    return "a dimension is larger than 2^31 - 1";
  }
  if (p.y.dims[3] != 1) return "the result has four dimensions";
  return {};
}

GemvArgs GemvArgsOf(std::span<const Product> products, const DeviceShape& shape) {
  GemvArgs args;
  int64_t rows = 0;
  args.count = 0;
  args.constant = true;
  for (const Product& p : products) {
    args.types[args.count] = p.w.type;
    GemvPart& part = args.parts[args.count++];
    part.weights = p.w.data;
    part.row_stride = p.w.strides[1];
    part.bias = reinterpret_cast<const float*>(p.bias.data);
    part.y = p.y.data;
    part.y_strides[0] = p.y.strides[1];
    part.y_strides[1] = p.y.strides[2];
    part.n = static_cast<uint32_t>(p.w.dims[1]);
    rows += p.w.dims[1];
    args.constant &= p.w.constant;
  }
  const Product& p = products.front();
  args.k = static_cast<uint32_t>(p.w.dims[0]);
  args.columns = static_cast<uint32_t>(p.columns());
  args.q = p.q;
  args.addend = p.addend.data;
  args.addend_strides[0] = p.addend.strides[1];
  args.addend_strides[1] = p.addend.strides[2];
  args.x = RowsOf(p.x);
  args.x_columns = static_cast<uint32_t>(p.x.dims[1]);
  args.y_columns = static_cast<uint32_t>(p.y.dims[1]);
  args.expert_stride = p.w.strides[2];
  args.bias_stride = p.bias.strides[1];
  args.ids = reinterpret_cast<const int32_t*>(p.ids.data);
  args.ids_stride = p.ids.strides[1];
  args.experts = static_cast<uint32_t>(p.w.dims[2]);
  // With two rows for each group of lanes, a multiprocessor still has 16 groups or more.
  args.many_rows = rows >= int64_t{32} * shape.multiprocessors;
  args.most_rows = rows >= int64_t{512} * shape.multiprocessors;
  args.is_little = rows * p.w.dims[0] <= int64_t{128} * 1024 * shape.multiprocessors;
  return args;
}

bool HasMixedGemv(Type type, bool packed) { return packed && quant::PackedBlockTypes::Has(type); }

Launch GemvLaunch(const Product& product, const DeviceShape& shape) {
  return GemvLaunch(std::span(&product, 1), shape);
}

Launch GemvLaunch(std::span<const Product> products, const DeviceShape& shape) {
  const GemvArgs args = GemvArgsOf(products, shape);
  const Type type = products.front().w.type;
  const bool packed = products.front().w.packed;
  if (std::any_of(products.begin(), products.end(),
                  [&](const Product& p) { return p.w.type != type; })) {
    return MixedGemv(args);
  }
  if (type == Type::kF32 || type == Type::kF16 || type == Type::kBF16) {
    return packed ? PackedF16Gemv(args)
                  : FloatGemv(type, RowsAreAligned(products, type == Type::kF32 ? 16 : 8), args);
  }
  if (packed && IsForSplitGemv(args)) {
    if (const Launch split = SplitGemv(type, args); split.kernel != nullptr) return split;
  }
  if (packed) return PackedGemv(type, args);
  const bool words = HasWordBlocks(type) && RowsAreAligned(products, 4);
  return quant::Traits(type).block_values == quant::kSuperValues
             ? SuperBlockGemv(type, words, args)
             : SmallBlockGemv(type, words, args);
}

}  // namespace trine::hip
