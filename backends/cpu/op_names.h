// What ops are called where times are told: constants that live as long as the plugin.
#ifndef TRINE_BACKENDS_CPU_OP_NAMES_H_
#define TRINE_BACKENDS_CPU_OP_NAMES_H_

#include "trine/backend_sdk.h"

namespace trine::cpu {

inline constexpr const char* kWaitName = "wait";
inline constexpr const char* kQuantizeName = "quantize";

// The op's, with the type of the weights of a matrix product: "matmul q4_0".
const char* TimedName(const sdk::Graph& graph, const sdk::Op& op);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_OP_NAMES_H_
