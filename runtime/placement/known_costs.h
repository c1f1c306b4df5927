// What a device costs, as far as it is known: measured, and guessed where it was not.
#ifndef TRINE_RUNTIME_PLACEMENT_KNOWN_COSTS_H_
#define TRINE_RUNTIME_PLACEMENT_KNOWN_COSTS_H_

#include <cstdint>

#include "dispatch/device_costs.h"
#include "dispatch/inventory.h"
#include "runtime/placement/calibration.h"

namespace trine {

KnownCosts FindCosts(const Calibration& calibration, const Inventory& inventory,
                     const InventoryDevice& device, uint32_t threads);

// The same where what a token reads stays in caches from one to the next: few tokens pay less.
KnownCosts WithReuse(KnownCosts known, double bytes_per_token);

}  // namespace trine

#endif  // TRINE_RUNTIME_PLACEMENT_KNOWN_COSTS_H_
