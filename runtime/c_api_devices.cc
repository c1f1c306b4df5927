// What devices do, and what becomes of them, in the C API.
#include <chrono>
#include <vector>

#include "runtime/c_api_support.h"

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

int32_t trine_engine_segment(const trine_engine* engine, size_t index, trine_segment_info* out) {
  return Guarded(nullptr, [&]() -> absl::Status {
    if (engine == nullptr || out == nullptr) return NullArgument("engine or info");
    if (!PlausibleSize(*out)) return BadStruct("info");
    const std::vector<trine::SegmentCounters> all = engine->engine->segments();
    if (index >= all.size()) return absl::OutOfRangeError("there are fewer segments");
    const trine::SegmentCounters& segment = all[index];
    trine_segment_info info{};
    info.placement = static_cast<uint32_t>(segment.placement);
    CopyText(segment.device_name, info.device);
    info.first_layer = segment.begin;
    info.end_layer = segment.end;
    info.passes = segment.stage.jobs;
    info.tokens = segment.tokens;
    info.busy_ns = segment.stage.busy_ns;
    info.waiting_ns = segment.stage.waiting_ns;
    info.blocked_ns = segment.stage.blocked_ns;
    info.busy_ratio = segment.busy_ratio();
    info.bytes_in = segment.bytes_in;
    info.bytes_out = segment.bytes_out;
    info.detours = segment.detours;
    CopyText(segment.helper, info.helper);
    WriteStruct(info, out);
    return absl::OkStatus();
  });
}

int32_t trine_engine_lost_device(const trine_engine* engine, size_t index, trine_lost_device* out) {
  return Guarded(nullptr, [&]() -> absl::Status {
    if (engine == nullptr || out == nullptr) return NullArgument("engine or lost");
    if (!PlausibleSize(*out)) return BadStruct("lost");
    const std::vector<trine::LostDevice> all = engine->engine->lost_devices();
    if (index >= all.size()) return absl::OutOfRangeError("fewer devices are lost");
    const auto ago = std::chrono::steady_clock::now() - all[index].since;
    trine_lost_device lost{};
    CopyText(all[index].name, lost.device);
    CopyText(trine::Printable(all[index].reason), lost.reason);
    lost.lost_ms =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(ago).count());
    WriteStruct(lost, out);
    return absl::OkStatus();
  });
}

int32_t trine_engine_readmit(trine_engine* engine, const char* device, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (engine == nullptr) return NullArgument("engine");
    return engine->engine->Readmit(std::string(device == nullptr ? "" : device));
  });
}

int32_t trine_engine_write_trace(trine_engine* engine, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (engine == nullptr) return NullArgument("engine");
    return engine->engine->WriteTrace();
  });
}

}  // extern "C"
