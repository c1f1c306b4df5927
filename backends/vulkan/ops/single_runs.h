// Makes single runs: one run of a shader that does a whole op, or a whole group of ops. op_runs.h
// makes the runs of all other ops.
//
// Also divides a long product or attention into parts, each of which is a run of its own, because a
// driver's watchdog ends a run that takes too long. A part computes some of the results, each by
// the same sum as the whole would, so no bit depends on the division. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/vulkan/ops/op_operands.h"
#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/products.h"

namespace trine::vulkan {

// Returns the run of one op. Its operands are numbers that Operands::Bind binds to tensors.
// REQUIRES: the op is no product, gather_rows, norm or attention.
KernelRun SimpleRun(const RunChoices& choices, const Operands& operands);

// Appends the run of a group. If group.quantizes, the run also quantises the group's result into
// `scratch`. Returns "", or why the device can't do the run; the run is appended in either case.
// REQUIRES: group.kind is kNorm, kGlu, kRotate, kStore or kRotateStore.
std::string AddFusedRun(const RunChoices& choices, const sdk::Graph& graph,
                        const Misalignment& misaligned, const OpGroup& group, const int64_t* params,
                        OpRun::Operand scratch, std::vector<OpRun>* runs);

// Returns the product with rows [first, first + count) of the weights, of every expert. It computes
// these values of each column of the result. Only the views of w, bias and y move: the part binds
// the same bytes as the whole.
Product RowsOf(const Product& whole, int64_t first, int64_t count);

// Divides a product into parts of consecutive rows of the weights. A part has about `most`
// operations (OperationsOf) or fewer, but never fewer than 64 rows, unless no more are left.
std::vector<Product> CutProduct(const Product& whole, uint64_t most);
// Returns how many multiplications and additions a product has.
uint64_t OperationsOf(const Product& product);

// Divides attention into parts of about `most` operations or fewer: into consecutive tokens, and if
// one token still has too many, into consecutive KV heads with their query heads. Calls `add` for
// each part, by increasing token, then head. `add` returns "" or an error. Returns the first error
// and stops there, or returns "". A part is valid only during its call of `add`. `positions`: the
// most positions that a token sees.
std::string CutAttention(const AttentionViews& whole, int64_t positions, uint64_t most,
                         const std::function<std::string(const AttentionViews& part)>& add);
// Returns how many multiplications and additions attention has if each token sees `positions`
// positions.
uint64_t OperationsOf(const AttentionViews& views, int64_t positions);

}  // namespace trine::vulkan
