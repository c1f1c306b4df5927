#include "runtime/model/weights/canonical_check.h"

#include <algorithm>
#include <iterator>

#include "kernels/quant/scalar.h"
#include "plugins/handles.h"

namespace trine {
namespace {

absl::Status Garbage(const std::string& device) {
  return OnDevice(device, absl::DataLossError("it handed on values that no exact device does"));
}

}  // namespace

absl::Status CheckCanonical(std::span<const float> values, const std::string& device) {
  constexpr size_t kLanes = 16;  // so that the compiler vectorises the loop
  uint32_t bad[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) bad[j] |= !quant::IsCanonical(values[i + j]);
  }
  for (; i < values.size(); ++i) bad[0] |= !quant::IsCanonical(values[i]);
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
