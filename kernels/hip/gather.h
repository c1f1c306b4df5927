// Rows of a table by their ids: token embeddings.
#ifndef TRINE_KERNELS_HIP_GATHER_H_
#define TRINE_KERNELS_HIP_GATHER_H_

#include <string>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

// "" if GatherRowsLaunch can do it, or what it can not.
std::string WhyNotGatherRows(const Tensor& table);

// y f32 [k, n] = canon'd rows ids i32 [n] of table [k, rows], of any weight type, packed or not;
// zeros for an id outside the table.
Launch GatherRowsLaunch(const Tensor& table, const Tensor& ids, const Tensor& y);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GATHER_H_
