// Makes the launches of products with few columns: matmul of one to eight, and moe_matmul, where
// each column has its own weights. More columns work, but the weights are read again for every
// eight.
#pragma once

#include <span>
#include <string>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/weights/product.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// Returns "" if GemvLaunch can do the product, else why not.
std::string WhyNotGemv(const Product& product);

// Makes the launch of one product.
Launch GemvLaunch(const Product& product, const DeviceShape& shape);

// Makes one launch of several products of one x, each of which GemvLaunch can do. They must have
// the same k, columns, type of weights, packing, x and q. With experts they must also have the same
// ids and the same strides from expert to expert, of weights and of biases. None may read what
// another writes. Only a single product may have an addend. The types may differ if there are no
// experts, HasMixedGemv is true of all types, and x has one column.
inline constexpr size_t kMaxGemvProducts = 4;
Launch GemvLaunch(std::span<const Product> products, const DeviceShape& shape);

// Returns whether a launch of several products may have this type of weights among others.
bool HasMixedGemv(quant::Type type, bool packed);

// Returns whether GluGemvLaunch has a kernel for weights of this type.
bool HasGluGemv(quant::Type type, bool packed);

// Makes one launch of two products of one x and of the glu of both, and quantises the result into
// `to`. Does not write the results of the products, whose y has no data. REQUIRES: GemvLaunch can
// do the two together; they have up to 8 columns, with experts up to kMaxGridYZ, and a multiple of
// 32 rows; `to` is not the memory of q, which some blocks still read when others have written.
// `norm`: null, or the norm that makes q of one column, for which IsColumnNorm holds
// (column_norm.h); null with experts. Each block computes the norm for itself, and does not write
// it.
Launch GluGemvLaunch(const Norm* norm, const Product& gate, const Product& up,
                     const reference::GluParams& params, const QuantizedColumns& to,
                     const DeviceShape& shape);

// The operands of moe_route.
struct MoeRoute {
  Tensor logits, selection_bias;  // selection_bias may be absent
  reference::MoeRouteParams params;
  Tensor ids, weights;
};

// The most experts, and the most that a token uses, of RoutedGluGemvLaunch.
inline constexpr int64_t kMostRoutedExperts = 128, kMostRoutedUsed = 32;

// Makes one launch of moe_route and of GluGemvLaunch with the experts that it selects. Each block
// selects them for itself. REQUIRES: what GluGemvLaunch requires; the ids are those of the products
// and have at least one row; the products' weights have at least as many experts as there are
// logits of a token; nothing that is written shares memory with the logits or the bias.
Launch RoutedGluGemvLaunch(const MoeRoute& route, const Product& gate, const Product& up,
                           const reference::GluParams& params, const QuantizedColumns& to,
                           const DeviceShape& shape);

// Returns whether NormedGemvLaunch can do a norm and the product of its result.
bool HasNormedGemv(const Norm& norm, const Product& product);

// Makes one launch of the norm of one column and of a product with it, whose weights are f32. Each
// block computes the norm for itself; together they write it to norm.y, if that is present, and to
// norm.quantized. REQUIRES: HasNormedGemv; nothing that is written shares memory with anything that
// is read.
Launch NormedGemvLaunch(const Norm& norm, const Product& product, const DeviceShape& shape);

// Returns whether CombineGemvLaunch has a kernel for rows of k weights of this type.
bool HasCombineGemv(quant::Type type, bool packed, int64_t k);

// Makes one launch of a product with experts and of moe_combine of its result, which is not
// written: the product's y has no data. `weights` [used, tokens] -> y [n, tokens]. `addend`: of y's
// shape, added to y; may be y itself, or absent. REQUIRES: GemvLaunch can do the product; y shares
// no memory with anything that is read, but with the addend.
Launch CombineGemvLaunch(const Product& product, const Tensor& weights, const Tensor& addend,
                         const Tensor& y, const DeviceShape& shape);

}  // namespace trine::hip
