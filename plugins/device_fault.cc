#include "plugins/device_fault.h"

#include "absl/strings/cord.h"

namespace trine {
namespace {

constexpr char kKey[] = "trine/device";

// As opposed to a refusal, or to the caller's mistake.
bool IsFault(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return false;
    default:
      return true;
  }
}

}  // namespace

absl::Status OnDevice(const std::string& device, absl::Status status) {
  if (status.ok() || device.empty() || status.GetPayload(kKey).has_value()) return status;
  status.SetPayload(kKey, absl::Cord(device));
  return status;
}

std::string FaultyDevice(const absl::Status& status) {
  if (!IsFault(status.code())) return "";
  const auto device = status.GetPayload(kKey);
  return device.has_value() ? std::string(*device) : "";
}

}  // namespace trine
