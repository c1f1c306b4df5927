// Finds the costs of a device: measured costs, and guesses for what was not measured.
#pragma once

#include <cstdint>

#include "dispatch/cost/device_costs.h"
#include "dispatch/devices/inventory.h"
#include "runtime/placement/calibration.h"

namespace trine {

// Returns the measured costs of the device, with guesses in place of missing measurements.
KnownCosts FindCosts(const Calibration& calibration, const Inventory& inventory,
                     const InventoryDevice& device, uint32_t threads);

// Returns the costs with lower times for passes of few tokens, if the bytes that a token reads are
// so few that they stay in caches for the next token.
KnownCosts WithReuse(KnownCosts known, double bytes_per_token);

}  // namespace trine
