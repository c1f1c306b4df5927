// Computes the expected results of a graph with the scalar kernels, on images of its slots, and
// compares a device's results with them, byte for byte or within the tolerance of FAST answers.
#pragma once

#include <string>
#include <vector>

#include "plugins/conformance/cases/device_plan.h"
#include "plugins/conformance/cases/graph_spec.h"

namespace trine::conformance {

// The largest error of FAST results, as a fraction of the largest magnitude in their row. It is the
// rounding of f16 operands in a dot product of a few hundred terms, with a margin.
inline constexpr double kFastTolerance = 0.02;

// Runs every op in order, on the images. Allocates the images of TEMP slots.
void RunOracle(const GraphSpec& graph, const std::vector<int64_t>& params, Images* images);

// Returns "" if `got` is right, else the first difference: tensor, index, both values as decimals
// and bits. Exact or not, bytes outside of every output must equal those of `expected`.
std::string CompareImages(const GraphSpec& graph, const std::vector<int64_t>& params,
                          const Images& expected, const Images& got, bool exact);

}  // namespace trine::conformance
