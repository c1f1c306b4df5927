#include "kernels/hip/gemv.h"

#include <limits>

#include "kernels/hip/gemv_parts.h"
#include "kernels/hip/weight_group.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {
namespace {

// All rows of all experts begin at a multiple of so many bytes.
bool RowsAreAligned(const Tensor& w, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(w.data) % static_cast<uintptr_t>(bytes) == 0 &&
         w.strides[1] % bytes == 0 && w.strides[2] % bytes == 0;
}

GemvArgs ArgsOf(const Product& p, const DeviceShape& shape) {
  GemvArgs args;
  args.weights = p.w.data;
  args.row_stride = p.w.strides[1];
  args.expert_stride = p.w.strides[2];
  args.k = static_cast<uint32_t>(p.w.dims[0]);
  args.n = static_cast<uint32_t>(p.w.dims[1]);
  args.columns = static_cast<uint32_t>(p.columns());
  args.q = p.q;
  args.x = RowsOf(p.x);
  args.x_columns = static_cast<uint32_t>(p.x.dims[1]);
  args.y_columns = static_cast<uint32_t>(p.y.dims[1]);
  args.bias = reinterpret_cast<const float*>(p.bias.data);
  args.bias_stride = p.bias.strides[1];
  args.y = RowsOf(p.y);
  args.ids = reinterpret_cast<const int32_t*>(p.ids.data);
  args.ids_stride = p.ids.strides[1];
  args.experts = static_cast<uint32_t>(p.w.dims[2]);
  // Two rows to a group of lanes then still leave each multiprocessor 16 groups and more.
  args.many_rows = p.w.dims[1] >= int64_t{32} * shape.multiprocessors;
  return args;
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

Launch GemvLaunch(const Product& p, const DeviceShape& shape) {
  const GemvArgs args = ArgsOf(p, shape);
  const Type type = p.w.type;
  Launch launch;
  if (type == Type::kF32 || type == Type::kF16 || type == Type::kBF16) {
    launch = p.w.packed ? PackedF16Gemv(args)
                        : FloatGemv(type, RowsAreAligned(p.w, type == Type::kF32 ? 16 : 8), args);
  } else if (p.w.packed) {
    launch = PackedGemv(type, args);
  } else {
    const bool words = HasWordBlocks(type) && RowsAreAligned(p.w, 4);
    launch = quant::Traits(type).block_values == quant::kSuperValues
                 ? SuperBlockGemv(type, words, args)
                 : SmallBlockGemv(type, words, args);
  }
  return launch;
}

}  // namespace trine::hip
