// Computes the expected results of a graph with the scalar kernels, on images of its slots, and
// compares a device's results with them.
#pragma once

#include <string>
#include <vector>

#include "plugins/conformance/cases/device_plan.h"
#include "plugins/conformance/cases/graph_spec.h"

namespace trine::conformance {

// The largest error of FAST results, as a fraction of the largest magnitude in their row. It is the
// rounding of f16 operands in a dot product of a few hundred terms, with a margin.
inline constexpr double kFastTolerance = 0.02;

// What the slots of a graph hold after a run.
struct Expected {
  // The results of the contract, bit for bit.
  Images contract;
  // For a FAST graph with products, the results if products are computed without rounding. The
  // contract rounds activations to 8 bits where weights are quantised. A FAST device may do so as
  // well, or use activations as they are, which is nearer to the truth. So each row of a FAST
  // result must be near one of the two. Else empty.
  Images unrounded;
};

// Runs every op in order on copies of the images.
Expected RunOracle(const GraphSpec& graph, const std::vector<int64_t>& params,
                   const Images& images);

// Returns "" if `got` is right by the graph's numerics, else the first difference: tensor, index,
// both values as decimals and bits. With FAST numerics, floats may be off by the tolerance but must
// be canonical (docs/numerics.md, rule 2): exact kernels of another device may go on with them.
// Bytes outside of every output must be equal.
std::string CompareResults(const GraphSpec& graph, const std::vector<int64_t>& params,
                           const Expected& expected, const Images& got);

// Does the same with equal bits required, whatever the graph's numerics.
std::string CompareBits(const GraphSpec& graph, const std::vector<int64_t>& params,
                        const Images& expected, const Images& got);

// Checks FAST results whose values can't be judged: floats must be canonical, ids must be ids, and
// bytes outside of every output must be equal. Returns "" or the first that is wrong.
std::string CheckCanonical(const GraphSpec& graph, const std::vector<int64_t>& params,
                           const Expected& expected, const Images& got);

}  // namespace trine::conformance
