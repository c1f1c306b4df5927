// The attributes of ops, as the kernels' parameters.
#ifndef TRINE_BACKENDS_COMMON_OP_ATTRIBUTES_H_
#define TRINE_BACKENDS_COMMON_OP_ATTRIBUTES_H_

#include <string>

#include "kernels/reference/ops.h"
#include "trine/backend_sdk.h"

namespace trine::backends {

reference::ActivationKind ActivationOf(const sdk::Op& op);
reference::AttentionParams AttentionParamsOf(const sdk::Op& op);
reference::GluParams GluParamsOf(const sdk::Op& op);
reference::RopeMode RopeModeOf(const sdk::Op& op);
reference::MoeRouteParams RouteParamsOf(const sdk::Op& op);

// "" or which attribute of an op is one that only a newer host knows.
std::string WhyNotAttributes(const sdk::Op& op);

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_OP_ATTRIBUTES_H_
