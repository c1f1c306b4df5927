#include "runtime/placement/known_costs.h"

#include <utility>
#include <vector>

namespace trine {
namespace {

// Adds guesses for costs that were not measured. Those of types of weights are scaled by the ratio
// of measured to guessed costs of a type that was measured.
DeviceCosts WithGuesses(DeviceCosts measured, const DeviceCosts& guessed) {
  const DeviceCosts known = measured;
  for (const auto& [type, curve] : guessed.matmul) {
    if (known.matmul.count(type) != 0) continue;
    double ratio = 1;
    for (const auto& [other, seen] : known.matmul) {
      const auto guess = guessed.matmul.find(other);
      if (guess != guessed.matmul.end()) ratio = seen.At(1) / guess->second.At(1);
    }
    std::vector<CostCurve::Point> points = curve.points();
    for (CostCurve::Point& p : points) p.cost *= ratio;
    measured.matmul[type] = CostCurve(std::move(points));
  }
  return WithMissingCosts(std::move(measured), guessed);
}

}  // namespace

KnownCosts FindCosts(const Calibration& calibration, const Inventory& inventory,
                     const InventoryDevice& device, uint32_t threads) {
  const trine_device_info& info = inventory.registry.devices[device.registry_device].info;
  const MeasuredCosts* found = calibration.Find(CalibrationKey(inventory, device, threads));
  const DeviceCosts guessed = GuessCosts(info, threads);
  KnownCosts known;
  known.measured = found != nullptr;
  known.costs = known.measured ? WithGuesses(found->costs, guessed) : guessed;
  if (known.measured) {
    known.guessed = MissingCosts(found->costs);
    known.busy = found->trust.busy;
  }
  return known;
}

KnownCosts WithReuse(KnownCosts known, double bytes_per_token) {
  DeviceCosts& costs = known.costs;
  if (costs.reuse.empty() || bytes_per_token >= costs.reuse.points().back().at) return known;
  const double factor = costs.reuse.At(bytes_per_token);
  for (auto& [type, curve] : costs.matmul) {
    std::vector<CostCurve::Point> points = curve.points();
    for (CostCurve::Point& p : points) {
      if (p.at <= 4) p.cost *= factor;
    }
    curve = CostCurve(std::move(points));
  }
  return known;
}

}  // namespace trine
