#include "dispatch/cost/device_costs.h"

#include <cmath>
#include <utility>

#include "kernels/quant/block_types.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

struct Guess {
  double bytes_per_second;     // of weights
  double products_per_second;  // of one weight and one value
  double run_ns;
  double op_ns;
  double move_ns;
  double move_bytes_per_second;
};

// Assumes two channels of DDR4 for all cores, and vectors of eight-bit numbers on each core.
Guess GuessCpu(uint32_t threads) {
  const double n = std::max<uint32_t>(threads, 1);
  return {std::min(10e9 * n, 40e9), 30e9 * n, 3e3, 500, 200, 8e9};
}

Guess GuessDevice(const trine_device_info& info, uint32_t threads) {
  Guess cpu = GuessCpu(threads);
  if ((info.flags & TRINE_DEVICE_SOFTWARE) != 0) {
    // A software device runs on the CPU, through a driver or an emulator.
    return {cpu.bytes_per_second / 30, cpu.products_per_second / 100, 1e6, 1e5, 1e4, 8e9};
  }
  switch (info.tier) {
    case TRINE_TIER_IGPU:  // on the CPU's own bus
      return {40e9, 1e12, 60e3, 4e3, 5e3, 8e9};
    case TRINE_TIER_DGPU:  // a middling card, eight lanes of PCIe 4
      return {300e9, 10e12, 30e3, 3e3, 15e3, 12e9};
    default:
      return cpu;
  }
}

bool IsMissing(double ns) { return ns == 0; }
bool IsMissing(const OpCost& cost) { return cost.op_ns == 0 && cost.value_ns == 0; }
bool IsMissing(const MoveCost& cost) { return cost.call_ns == 0 && cost.byte_ns == 0; }

// Calls `take(name, member)` for every cost that MissingCosts may name, but for attention, which is
// several members.
template <class Take>
void ForEachSimpleCost(Take take) {
  take("runs", &DeviceCosts::run_ns);
  take("norm", &DeviceCosts::norm);
  take("rope", &DeviceCosts::rope);
  take("glu", &DeviceCosts::glu);
  take("plain ops", &DeviceCosts::plain);
  take("moves to it", &DeviceCosts::in);
  take("moves from it", &DeviceCosts::out);
}

}  // namespace

CostCurve::CostCurve(std::vector<Point> points) : points_(std::move(points)) {
  const auto good = [](const Point& p) {
    return std::isfinite(p.at) && std::isfinite(p.cost) && p.at > 0 && p.cost > 0;
  };
  const auto before = [](const Point& a, const Point& b) { return a.at >= b.at; };
  if (!std::all_of(points_.begin(), points_.end(), good) ||
      std::adjacent_find(points_.begin(), points_.end(), before) != points_.end()) {
    points_.clear();
  }
}

double CostCurve::At(double size) const {
  if (points_.empty()) return 0;
  if (size <= points_.front().at) return points_.front().cost;
  const Point& last = points_.back();
  if (size >= last.at) return last.cost * size / last.at;
  const auto above =
      std::upper_bound(points_.begin(), points_.end(), size,
                       [](double value, const Point& point) { return value < point.at; });
  const Point& a = *(above - 1);
  const Point& b = *above;
  const double part = std::log(size / a.at) / std::log(b.at / a.at);
  return a.cost * std::pow(b.cost / a.cost, part);
}

DeviceCosts GuessCosts(const trine_device_info& info, uint32_t threads) {
  const Guess guess = GuessDevice(info, threads);
  DeviceCosts costs;
  costs.run_ns = guess.run_ns;
  costs.matmul_ns = costs.attention_ns = guess.op_ns;
  // A fast device that is no GPU is taken for a library of float products. It decodes weights
  // first, and its products are not bound to the contract's order.
  const bool gpu = info.tier == TRINE_TIER_IGPU || info.tier == TRINE_TIER_DGPU;
  const bool library = info.numerics == TRINE_NUMERICS_FAST && !gpu;
  for (const quant::Type type : quant::kAllTypes) {
    const auto dtype = static_cast<uint32_t>(type);
    const double bytes = static_cast<double>(sdk::ValueBytes(dtype, 256)) / 256;
    const double read_ns = bytes / guess.bytes_per_second * 1e9;
    // Products of floats take several times as long as products of eight-bit numbers.
    const double factor = library ? 1.5 : quant::IsQuantized(type) ? 1 : 4;
    const double product_ns = factor / guess.products_per_second * 1e9;
    const double decode_ns = library ? 16 / guess.products_per_second * 1e9 : 0;
    std::vector<CostCurve::Point> points;
    for (const double tokens : {1, 4, 16, 64, 256}) {
      points.push_back({tokens, std::max(read_ns, product_ns * tokens + decode_ns)});
    }
    costs.matmul[dtype] = CostCurve(std::move(points));
  }
  const double value_ns = 8 / guess.bytes_per_second * 1e9;
  const double product_ns = 8 / guess.products_per_second * 1e9;
  costs.attention = CostCurve({{1, std::max(value_ns / 8, product_ns)}, {256, 256 * product_ns}});
  costs.norm = costs.rope = costs.glu = costs.plain = {guess.op_ns, value_ns};
  costs.in = costs.out = {guess.move_ns, 1e9 / guess.move_bytes_per_second};
  costs.bytes_per_second = guess.bytes_per_second;
  return costs;
}

std::vector<std::string> MissingCosts(const DeviceCosts& costs) {
  std::vector<std::string> names;
  ForEachSimpleCost([&](const char* name, auto member) {
    if (IsMissing(costs.*member)) names.push_back(name);
  });
  if (costs.attention.empty()) names.push_back("attention");
  return names;
}

DeviceCosts WithMissingCosts(DeviceCosts measured, const DeviceCosts& guessed) {
  ForEachSimpleCost([&](const char*, auto member) {
    if (IsMissing(measured.*member)) measured.*member = guessed.*member;
  });
  if (measured.attention.empty()) {
    measured.attention = guessed.attention;
    measured.attention_ns = guessed.attention_ns;
    measured.attention_kv_ns = guessed.attention_kv_ns;
  }
  return measured;
}

}  // namespace trine
