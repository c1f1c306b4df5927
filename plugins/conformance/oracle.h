// What a graph must compute: runs it with the scalar kernels on images of its slots, and compares
// what a device made of them, byte for byte or within the tolerance of FAST answers.
#ifndef TRINE_PLUGINS_CONFORMANCE_ORACLE_H_
#define TRINE_PLUGINS_CONFORMANCE_ORACLE_H_

#include <string>
#include <vector>

#include "plugins/conformance/device_plan.h"
#include "plugins/conformance/graph_spec.h"

namespace trine::conformance {

// FAST results stay within this part of the largest magnitude in their row: the rounding of f16
// operands over a dot product of a few hundred terms, with room.
inline constexpr double kFastTolerance = 0.02;

// Runs every op in order. Images of TEMP slots are made here.
void RunOracle(const GraphSpec& graph, const std::vector<int64_t>& params, Images* images);

// "" when `got` is right. Bytes outside of every output must be those of `expected` in either mode.
// Else the first difference: tensor, index, both values as decimals and bits.
std::string CompareImages(const GraphSpec& graph, const std::vector<int64_t>& params,
                          const Images& expected, const Images& got, bool exact);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_ORACLE_H_
