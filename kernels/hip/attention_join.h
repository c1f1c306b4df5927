// The chunks that blocks of attention have left in scratch, joined.
#ifndef TRINE_KERNELS_HIP_ATTENTION_JOIN_H_
#define TRINE_KERNELS_HIP_ATTENTION_JOIN_H_

#include "kernels/hip/attention_args.h"
#include "kernels/hip/gpu/launch.h"

namespace trine::hip {

Launch JoinLaunch(const AttentionArgs& args);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ATTENTION_JOIN_H_
