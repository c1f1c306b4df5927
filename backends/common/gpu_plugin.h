// Holds the parts that the plugins of GPUs share: the calls that open backends and devices, and the
// keys and checks of plans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "backends/common/op_attributes.h"
#include "trine/backend_sdk.h"

struct trine_timeline : trine::sdk::Timeline {
  using Timeline::Timeline;
};

namespace trine::backends {

using Timelines = sdk::TimelineCalls<trine_timeline>;
inline sdk::Timeline& TimelineOf(trine_timeline* timeline) { return *timeline; }

// The type of a function of the plugin's table.
template <auto kMember>
using Call =
    std::remove_pointer_t<std::remove_cvref_t<decltype(std::declval<trine_plugin>().*kMember)>>;

using sdk::Fail;
// The codes of absl and of the ABI are the same numbers.
inline trine_status Fail(trine_error* err, const absl::Status& status) {
  return sdk::Fail(err, static_cast<trine_status>(status.code()), std::string(status.message()));
}
inline trine_status Answer(trine_error* err, const absl::Status& status) {
  return status.ok() ? TRINE_OK : Fail(err, status);
}

inline void Log(const trine_host& host, uint32_t level, const std::string& message) {
  host.log(host.self, level, message.c_str());
}

// Sets a text of an ABI struct to as many whole UTF-8 characters as fit, and a terminating 0.
template <size_t N>
void SetText(char (&field)[N], const std::string& text) {
  size_t n = std::min(text.size(), N - 1);
  const auto goes_on = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; };
  if (n < text.size()) {
    while (n > 0 && goes_on(text[n])) --n;
  }
  std::memcpy(field, text.data(), n);
  field[n] = 0;
}

// Makes the functions of the table that open and describe from a backend's own functions. Functions
// that make something return a StatusOr of a unique_ptr.
template <auto kMakeBackend, auto kCountDevices, auto kDescribeDevice, auto kMakeDevice>
struct OpenCalls {
  static trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                           trine_error* err) {
    return sdk::Guard(err, [&]() -> trine_status {
      auto backend = kMakeBackend(host, options != nullptr ? options : "");
      if (!backend.ok()) return Fail(err, backend.status());
      *out = backend->release();
      return TRINE_OK;
    });
  }
  static uint32_t DeviceCount(trine_backend* backend) { return kCountDevices(*backend); }
  static trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                                 trine_error* err) {
    if (index >= kCountDevices(*backend)) return NoDevice(err);
    return sdk::Guard(err, [&]() -> trine_status {
      sdk::WriteOut(out, kDescribeDevice(backend, index));
      return TRINE_OK;
    });
  }
  static trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                                 trine_error* err) {
    if (index >= kCountDevices(*backend)) return NoDevice(err);
    return sdk::Guard(err, [&]() -> trine_status {
      auto device = kMakeDevice(backend, index);
      if (!device.ok()) return Fail(err, device.status());
      *out = device->release();
      return TRINE_OK;
    });
  }

 private:
  static trine_status NoDevice(trine_error* err) {
    return Fail(err, TRINE_NOT_FOUND, "there is no such device");
  }
};

// Checks the spans that a plan is bound to. `why_not(span, written)` returns why the device can't
// use a span, or "". `written` is true if kernels write the span, false if they only read it.
template <class WhyNot>
trine_status CheckSpans(const sdk::Graph& graph, const trine_plan_desc& desc, WhyNot why_not,
                        trine_error* err) {
  for (uint32_t i = 0; i < desc.n_bindings; ++i) {
    const trine_binding b = sdk::At(desc.bindings, desc.binding_stride, i);
    const std::string why = why_not(b.span, graph.slots[b.slot].role != TRINE_ROLE_CONSTANT);
    if (!why.empty()) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  absl::StrCat("what slot ", b.slot, " is bound to ", why));
    }
  }
  const std::string why = why_not(desc.scratch, true);
  return why.empty() ? TRINE_OK : Fail(err, TRINE_INVALID_ARGUMENT, "the scratch " + why);
}

// The facts that a recording was made for. Positions are rounded up to whole chunks, because
// attention depends on nothing finer.
struct RunKey {
  RunKey(const sdk::Graph& graph, const trine_run_args& args, bool is_timed = false)
      : params(args.params, args.params + args.n_params), timed(is_timed) {
    for (size_t i = 0; i < params.size(); ++i) {
      if (graph.params[i].kind == TRINE_PARAM_KV_POSITIONS) params[i] = WholeChunks(params[i]);
    }
    if (args.n_alternates != 0) {
      alternates.assign(args.alternates, args.alternates + args.n_alternates);
    }
  }
  const uint32_t* Alternates() const { return alternates.empty() ? nullptr : alternates.data(); }
  bool operator==(const RunKey&) const = default;

  std::vector<int64_t> params;
  std::vector<uint32_t> alternates;
  bool timed;  // the recording measures its steps
};

// Keeps a plan's recordings: enough for the passes of a prompt and a few batch sizes.
template <class Recording>
class KeptRecordings {
 public:
  // Returns the recording for a key, or null if there is none.
  Recording* Find(const RunKey& key) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& kept) { return kept.first == key; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return found->second.get();
  }
  // Call it before Add. If the store is full, removes the least recently used recording and
  // returns it; otherwise returns null.
  std::unique_ptr<Recording> MakeRoom() {
    if (kept_.size() < kMost) return nullptr;
    std::unique_ptr<Recording> last = std::move(kept_.back().second);
    kept_.pop_back();
    return last;
  }
  Recording* Add(RunKey key, std::unique_ptr<Recording> recording) {
    kept_.emplace_front(std::move(key), std::move(recording));
    return kept_.front().second.get();
  }

 private:
  static constexpr size_t kMost = 48;
  std::list<std::pair<RunKey, std::unique_ptr<Recording>>> kept_;  // most recently used first
};

}  // namespace trine::backends
