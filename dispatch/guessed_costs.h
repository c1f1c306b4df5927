// What work may cost on a device that nobody has measured.
#ifndef TRINE_DISPATCH_GUESSED_COSTS_H_
#define TRINE_DISPATCH_GUESSED_COSTS_H_

#include <cstdint>

#include "dispatch/device_costs.h"
#include "trine/backend.h"

namespace trine {

// By the kind of device alone: right within a small factor, and meant to put devices in the right
// order. `threads`: of the team that works for a CPU.
DeviceCosts GuessCosts(const trine_device_info& info, uint32_t threads);

}  // namespace trine

#endif  // TRINE_DISPATCH_GUESSED_COSTS_H_
