#include "dispatch/guessed_costs.h"

#include <algorithm>

#include "kernels/quant/block_types.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

struct Guess {
  double bytes_per_second;     // weights
  double products_per_second;  // of one weight and one value
  double run_ns;
  double op_ns;
  double move_ns;
  double move_bytes_per_second;
};

// Two channels of DDR4, shared by the cores; each multiplies eight-bit numbers in vectors.
Guess GuessCpu(uint32_t threads) {
  const double n = std::max<uint32_t>(threads, 1);
  return {std::min(10e9 * n, 40e9), 30e9 * n, 3e3, 500, 200, 8e9};
}

Guess GuessDevice(const trine_device_info& info, uint32_t threads) {
  Guess cpu = GuessCpu(threads);
  if ((info.flags & TRINE_DEVICE_SOFTWARE) != 0) {
    // The CPU in disguise, by way of a driver or an emulator.
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

}  // namespace

DeviceCosts GuessCosts(const trine_device_info& info, uint32_t threads) {
  const Guess guess = GuessDevice(info, threads);
  DeviceCosts costs;
  costs.run_ns = guess.run_ns;
  costs.matmul_ns = costs.attention_ns = guess.op_ns;
  for (const quant::Type type : quant::kAllTypes) {
    const auto dtype = static_cast<uint32_t>(type);
    const double bytes = static_cast<double>(sdk::ValueBytes(dtype, 256)) / 256;
    const double read_ns = bytes / guess.bytes_per_second * 1e9;
    // Floats take several times what eight-bit numbers do.
    const double factor = quant::IsQuantized(type) ? 1 : 4;
    const double product_ns = factor / guess.products_per_second * 1e9;
    std::vector<CostCurve::Point> points;
    for (const double tokens : {1, 4, 16, 64, 256}) {
      points.push_back({tokens, std::max(read_ns, product_ns * tokens)});
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

}  // namespace trine
