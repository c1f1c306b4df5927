#include "runtime/model/canonical_check.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "kernels/quant/scalar.h"
#include "plugins/device_fault.h"

namespace trine {
namespace {

absl::Status Garbage(const std::string& device) {
  return OnDevice(device, absl::DataLossError("it handed on values that no exact device does"));
}

}  // namespace

absl::Status CheckCanonical(std::span<const float> values, const std::string& device) {
  constexpr uint32_t kLeast = std::bit_cast<uint32_t>(quant::kTiny);
  constexpr uint32_t kMost = std::bit_cast<uint32_t>(quant::kHuge);
  const auto is_bad = [](float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint32_t>(bits != 0) &
           static_cast<uint32_t>((bits & 0x7fffffffu) - kLeast > kMost - kLeast);
  };
  constexpr size_t kLanes = 16;  // a loop of known length becomes vectors
  uint32_t bad[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) bad[j] |= is_bad(values[i + j]);
  }
  for (; i < values.size(); ++i) bad[0] |= is_bad(values[i]);
  if (std::all_of(std::begin(bad), std::end(bad), [](uint32_t b) { return b == 0; })) {
    return absl::OkStatus();
  }
  return Garbage(device);
}

absl::Status CheckIds(std::span<const int32_t> ids, int64_t limit, const std::string& device) {
  const bool good = std::all_of(ids.begin(), ids.end(),
                                [&](int32_t id) { return id >= 0 && int64_t{id} < limit; });
  return good ? absl::OkStatus() : Garbage(device);
}

}  // namespace trine
