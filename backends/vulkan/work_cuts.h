// Work of one dispatch cut into several, so that none runs as long as a driver's watchdog waits. A
// part computes some of the results by the same sums: no bit depends on the cut. Pure.
#ifndef TRINE_BACKENDS_VULKAN_WORK_CUTS_H_
#define TRINE_BACKENDS_VULKAN_WORK_CUTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/vulkan/attention.h"
#include "kernels/vulkan/products.h"

namespace trine::vulkan {

// Rows [first, first + count) of a product's result, of every expert. The weights stay where they
// are bound.
Product RowsOf(const Product& whole, int64_t first, int64_t count);

// By rows, at least a few tiles of them, into parts of about `most` operations.
std::vector<Product> CutProduct(const Product& whole, uint64_t most);
uint64_t OperationsOf(const Product& product);

// By tokens, and where even one has more than `most` operations by heads of the cache. Calls `add`
// for each part, in order, until it says why not: what a part points to is gone afterwards.
// `positions` are those that a token sees at the most.
std::string CutAttention(const AttentionViews& whole, int64_t positions, uint64_t most,
                         const std::function<std::string(const AttentionViews& part)>& add);
uint64_t OperationsOf(const AttentionViews& views, int64_t positions);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_WORK_CUTS_H_
