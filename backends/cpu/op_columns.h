// One share of an op cut by columns: by features, or by heads, of all tokens. A worker that takes
// the same share of several such ops in a row needs to wait for nobody in between.
#ifndef TRINE_BACKENDS_CPU_OP_COLUMNS_H_
#define TRINE_BACKENDS_CPU_OP_COLUMNS_H_

#include "backends/cpu/op_run.h"

namespace trine::cpu {

// For ops that AccessesOf can split by columns. Features are cut at multiples of kFeatureMultiple.
OpFunction FindColumnFunction(uint32_t kind, bool by_heads);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_OP_COLUMNS_H_
