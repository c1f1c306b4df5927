// Owns a timeline of a device. It tells how submitted work ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/handles.h"

namespace trine {

class TimelineHandle : public Owned<trine_timeline, &trine_plugin::timeline_destroy> {
 public:
  using Owned::Owned;
  static absl::StatusOr<TimelineHandle> Create(std::shared_ptr<Device> device, uint64_t initial) {
    trine_timeline* handle = nullptr;
    absl::Status status = device->Call("timeline_create", &trine_plugin::timeline_create,
                                       device->handle(), initial, &handle);
    if (!status.ok()) return status;
    return TimelineHandle(std::move(device), handle);
  }
  absl::Status Signal(uint64_t value) const {
    return Call("timeline_signal", &trine_plugin::timeline_signal, value);
  }
  absl::Status SetFailed(const absl::Status& failure) const {
    const std::string message(failure.message());
    return Call("timeline_fail", &trine_plugin::timeline_fail,
                static_cast<trine_status>(failure.code()), message.c_str());
  }
  absl::Status Wait(uint64_t value, uint64_t timeout_ns) const {
    return Call("timeline_wait", &trine_plugin::timeline_wait, value, timeout_ns);
  }
  absl::StatusOr<uint64_t> Value() const {
    uint64_t value = 0;
    absl::Status status = Call("timeline_query", &trine_plugin::timeline_query, &value);
    if (!status.ok()) return status;
    return value;
  }
};

}  // namespace trine
