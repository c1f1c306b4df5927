#include "dispatch/planner/problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// Bounds of a problem. The searches count in sixteenths of a nanosecond, so that a cost is at most
// 2^57. The prices of all shared groups together add at most as much (AreModest in search.cc). So
// all sums stay below the searches' infinity, 2^61.
constexpr int kMostUnits = 60000;
constexpr int64_t kMostRequestNs = int64_t{1} << 53;
constexpr int64_t kMostBytes = int64_t{1} << 50;

absl::Status Wrong(const PlanDevice& device, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("plan: device ", device.name, ": ", why));
}

absl::Status CheckTimes(const PlanDevice& device, const PassTimes& times, size_t units) {
  if (times.unit_ns.size() != units) return Wrong(device, "not one time per unit");
  if (!times.domain_ns.empty() && times.domain_ns.size() != units) {
    return Wrong(device, "not one domain time per unit");
  }
  for (const int64_t ns : times.unit_ns) {
    if (ns < 0) return Wrong(device, "a negative time");
  }
  for (const int64_t ns : times.domain_ns) {
    if (ns < 0) return Wrong(device, "a negative domain time");
  }
  if (times.run_ns < 0) return Wrong(device, "a negative time of a run");
  return absl::OkStatus();
}

absl::Status CheckBytes(const PlanDevice& device, size_t units) {
  if (device.weight_bytes.size() != units) return Wrong(device, "not one size per unit");
  if (!device.kv_bytes.empty() && device.kv_bytes.size() != units) {
    return Wrong(device, "not one KV size per unit");
  }
  double total = static_cast<double>(device.fixed_bytes);
  for (const uint64_t bytes : device.weight_bytes) total += static_cast<double>(bytes);
  for (const uint64_t bytes : device.kv_bytes) total += static_cast<double>(bytes);
  if (total > static_cast<double>(kMostBytes)) return Wrong(device, "sizes beyond reason");
  const uint64_t ends = device.weight_bytes.front() + device.weight_bytes.back();
  if (device.tied_bytes > ends) return Wrong(device, "more tied bytes than the ends have");
  return absl::OkStatus();
}

absl::Status CheckTransfers(const std::vector<std::vector<int64_t>>& transfers, size_t devices) {
  bool good = transfers.size() == devices;
  for (const std::vector<int64_t>& row : transfers) {
    good = good && row.size() == devices;
    for (const int64_t ns : row) good = good && ns >= 0;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError("plan: not one transfer time for each pair of devices");
}

absl::Status CheckParts(const PlanProblem& p, size_t entry) {
  const PlanDevice& device = p.devices[entry];
  const auto is_first = [&](size_t i) {
    return i < p.devices.size() && !p.devices[i].mode_of.has_value();
  };
  if (!is_first(FirstEntry(p, entry))) {
    return Wrong(device, "a mode of a device that is not there");
  }
  const size_t units = static_cast<size_t>(p.units());
  for (const PlanShare& share : device.elsewhere) {
    if (!is_first(share.device) || share.device == FirstEntry(p, entry)) {
      return Wrong(device, "parts on a device that is not there");
    }
    double bytes = 0;
    for (const uint64_t n : share.bytes) bytes += static_cast<double>(n);
    if (bytes > static_cast<double>(kMostBytes)) return Wrong(device, "sizes beyond reason");
    for (const std::vector<int64_t>* times : {&share.decode_ns, &share.prefill_ns}) {
      if (times->size() != units || share.bytes.size() != units) {
        return Wrong(device, "not one size and time per unit");
      }
      for (size_t u = 0; u < units; ++u) {
        const bool within =
            CanRun(device, static_cast<int>(u)) ? (*times)[u] <= kMostRequestNs : (*times)[u] == 0;
        if ((*times)[u] < 0 || !within) return Wrong(device, "a wrong time of parts elsewhere");
      }
    }
  }
  return absl::OkStatus();
}

double WorstPassNs(const PlanDevice& device, const PassTimes& times) {
  double total = static_cast<double>(times.run_ns);
  for (int unit = 0; unit < static_cast<int>(times.unit_ns.size()); ++unit) {
    if (CanRun(device, unit)) total += static_cast<double>(times.unit_ns[unit]);
  }
  return total;
}

double WorstTransferNs(const std::vector<std::vector<int64_t>>& transfers) {
  double total = 0;
  for (const std::vector<int64_t>& row : transfers) {
    for (const int64_t ns : row) total += static_cast<double>(ns);
  }
  return total;
}

absl::Status CheckTotals(const PlanProblem& p, const NominalRequest& request) {
  double decode = WorstTransferNs(p.decode_transfer_ns);
  double prefill = WorstTransferNs(p.prefill_transfer_ns);
  for (const PlanDevice& device : p.devices) {
    decode += WorstPassNs(device, device.decode);
    prefill += WorstPassNs(device, device.prefill);
  }
  const double total =
      decode * request.written_tokens + prefill * request.prompt_tokens / p.prefill_tokens;
  if (total < static_cast<double>(kMostRequestNs)) return absl::OkStatus();
  return absl::InvalidArgumentError("plan: times beyond reason");
}

}  // namespace

absl::Status CheckProblem(const PlanProblem& p, const NominalRequest& request) {
  if (p.layers < 0 || p.units() > kMostUnits) {
    return absl::InvalidArgumentError(absl::StrCat("plan: a model of ", p.layers, " layers"));
  }
  if (p.prefill_tokens < 1 || request.prompt_tokens < 0 || request.written_tokens < 0) {
    return absl::InvalidArgumentError("plan: a wrong count of tokens");
  }
  const size_t units = static_cast<size_t>(p.units());
  for (size_t i = 0; i < p.devices.size(); ++i) {
    const PlanDevice& device = p.devices[i];
    if (device.pool >= p.pools.size()) return Wrong(device, "a pool that is not there");
    if (absl::Status s = CheckBytes(device, units); !s.ok()) return s;
    if (absl::Status s = CheckTimes(device, device.decode, units); !s.ok()) return s;
    if (absl::Status s = CheckTimes(device, device.prefill, units); !s.ok()) return s;
    if (absl::Status s = CheckParts(p, i); !s.ok()) return s;
  }
  for (const auto* transfers : {&p.decode_transfer_ns, &p.prefill_transfer_ns}) {
    if (absl::Status s = CheckTransfers(*transfers, p.devices.size()); !s.ok()) return s;
  }
  return CheckTotals(p, request);
}

int64_t RequestNs(const PlanProblem& problem, const NominalRequest& request, int64_t decode_ns,
                  int64_t prefill_ns) {
  const double prompt = static_cast<double>(prefill_ns) * request.prompt_tokens;
  return decode_ns * request.written_tokens +
         static_cast<int64_t>(prompt / problem.prefill_tokens + 0.5);
}

uint64_t UnitBytes(const PlanDevice& device, int unit) {
  return device.weight_bytes[unit] + (device.kv_bytes.empty() ? 0 : device.kv_bytes[unit]);
}

size_t FirstEntry(const PlanProblem& problem, size_t entry) {
  return problem.devices[entry].mode_of.value_or(entry);
}

bool CanRun(const PlanDevice& device, int unit) {
  return device.decode.unit_ns[unit] != kCannotRun && device.prefill.unit_ns[unit] != kCannotRun;
}

int64_t DomainNs(const PassTimes& times, int unit) {
  return times.domain_ns.empty() ? 0 : std::min(times.domain_ns[unit], times.unit_ns[unit]);
}

}  // namespace trine
