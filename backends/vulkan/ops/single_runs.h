// Makes single runs: one run of a shader does an op over whole tensors, or a group of ops. Divides
// long products and attention into several shorter runs, because a driver's watchdog ends work that
// takes too long. Each part computes some of the results, and each result by the same sum as
// before, so the division changes no bit. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/vulkan/ops/op_operands.h"
#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/products.h"

namespace trine::vulkan {

// Returns the run of an op other than a product, a gather, a norm or attention.
KernelRun SimpleRun(const RunChoices& choices, const Operands& operands);

// Appends the run of a group that is not an op alone and not attention. `scratch` receives
// quantised activations. Returns "", or why it can't be done.
std::string AddFusedRun(const RunChoices& choices, const sdk::Graph& graph,
                        const Misalignment& misaligned, const OpGroup& group, const int64_t* params,
                        OpRun::Operand scratch, std::vector<OpRun>* runs);

// Divides the work of one dispatch among several, so that none runs into a driver's watchdog. A
// part computes some of the results by the same sums, so no bit depends on the division.

// Returns the product that computes rows [first, first + count) of the result, for every expert.
// The binding of the weights stays the same.
Product RowsOf(const Product& whole, int64_t first, int64_t count);

// Divides a product by rows, at least a few tiles of them, into parts of about `most` operations.
std::vector<Product> CutProduct(const Product& whole, uint64_t most);
uint64_t OperationsOf(const Product& product);

// Divides attention by tokens and, where even one token has more than `most` operations, by heads
// of the cache. Calls `add` for each part, in order, until it returns an error, which is returned.
// A part is valid only during the call. `positions` is the most positions that a token sees.
std::string CutAttention(const AttentionViews& whole, int64_t positions, uint64_t most,
                         const std::function<std::string(const AttentionViews& part)>& add);
uint64_t OperationsOf(const AttentionViews& views, int64_t positions);

}  // namespace trine::vulkan
