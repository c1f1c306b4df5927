// Skews the routers of a model of random weights: a tenth of a layer's experts gets a given part of
// the hits, as some experts of trained models are chosen more than others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// Returns how many times as large the logits of the much chosen tenth must be, so that its experts
// get `share` of the hits. Assumes that logits are normally distributed, as those of random weights
// are. Returns INVALID_ARGUMENT if the tenth has too few experts for that many hits: a token
// chooses an expert at most once.
absl::StatusOr<double> SkewFactor(int64_t experts, int64_t used, double share);

// Returns a factor for each row of a router: 1 for the tenth, which the router's name picks at
// random, and 1 / `factor` for the others.
std::vector<float> SkewedRows(const std::string& router, int64_t experts, double factor);

}  // namespace trine
