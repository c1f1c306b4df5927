#include "dispatch/planner/shapes.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class Maker {
 public:
  Maker(int devices, int layers, const PlanShape& settings)
      : devices_(devices), settings_(settings), random_(12345) {
    problem_.layers = layers;
    problem_.prefill_tokens = 512;
    for (int u = 0; u < problem_.units(); ++u) {
      const bool end = u == 0 || u == layers + 1;
      const double factor = settings_.uneven ? 0.5 + Uniform() : 1;
      bytes_.push_back(static_cast<uint64_t>((end ? 500 : 400) * factor * kMiB));
      total_ += bytes_.back();
    }
  }

  PlanProblem Make() {
    for (int d = 0; d < devices_; ++d) AddDevice(d);
    for (auto* rows : {&problem_.decode_transfer_ns, &problem_.prefill_transfer_ns}) {
      for (int from = 0; from < devices_; ++from) {
        std::vector<int64_t>& row = rows->emplace_back();
        for (int to = 0; to < devices_; ++to) {
          const int64_t factor = settings_.uneven ? 1 + to % 3 : 1;
          row.push_back(settings_.transfer_ns * factor);
        }
      }
    }
    return problem_;
  }

 private:
  double Uniform() { return static_cast<double>(random_() % 4096) / 4096; }

  double Speed(int d) const {
    if (d == 0) return settings_.cpu_speed;
    if (d == 1) return settings_.igpu_speed;
    double speed = settings_.dgpu_speed;
    for (int i = 2; i < d; ++i) speed *= settings_.dgpu_spread;
    return speed;
  }

  size_t GroupOf(int d) {
    const int group = d < 2 ? 0 : settings_.all_share ? d / 2 : d - 1;
    while (static_cast<int>(problem_.pools.size()) <= group) {
      PlanPool& pool = problem_.pools.emplace_back();
      pool.name = absl::StrCat("pool", problem_.pools.size() - 1);
      pool.capacity_bytes = Part(settings_.pool_share);
      if (group == 0) continue;
      const int sharers = settings_.all_share ? 2 : 1;
      pool.capacity_bytes = Part(settings_.dgpu_share * sharers / std::max(devices_ - 2, 1));
    }
    return static_cast<size_t>(group);
  }

  uint64_t Part(double share) const {
    return static_cast<uint64_t>(share * static_cast<double>(total_));
  }

  void AddDevice(int d) {
    PlanDevice device;
    device.name = d == 0 ? "cpu" : d == 1 ? "igpu0" : absl::StrCat("dgpu", d - 2);
    device.tier = d == 0 ? "cpu" : d == 1 ? "igpu" : "dgpu";
    device.pool = device.domain = GroupOf(d);
    device.fixed_bytes = 100 * kMiB;
    if (d < 2) {
      device.limit_bytes = Part(settings_.pool_share * settings_.single_limit);
    }
    for (const uint64_t bytes : bytes_) {
      const double factor = settings_.uneven ? 0.8 + 0.4 * Uniform() : 1;
      const double decode = static_cast<double>(bytes) * 0.1 / Speed(d) * factor;
      device.decode.unit_ns.push_back(static_cast<int64_t>(decode));
      device.decode.domain_ns.push_back(static_cast<int64_t>(decode * 0.8));
      device.prefill.unit_ns.push_back(static_cast<int64_t>(decode * 4));
      device.prefill.domain_ns.push_back(static_cast<int64_t>(decode * 0.5));
      const double own = settings_.uneven ? 0.95 + 0.1 * Uniform() : 1;
      device.weight_bytes.push_back(static_cast<uint64_t>(static_cast<double>(bytes) * own));
    }
    device.decode.run_ns = 10000;
    device.prefill.run_ns = 10000;
    problem_.devices.push_back(device);
  }

  const int devices_;
  const PlanShape& settings_;
  std::mt19937 random_;
  PlanProblem problem_;
  std::vector<uint64_t> bytes_;
  uint64_t total_ = 0;
};

}  // namespace

PlanProblem PlanShape::make(int devices, int layers) const {
  return Maker(devices, layers, *this).Make();
}

}  // namespace trine
