// Holds the parts that the plugins of GPUs share: the calls of the table, and the keys of plans.
// The calls use these members of the handles that a plugin defines:
//
//   trine_device   exact, Health, Alignment, Allocate, Import, Write, Read, CanCopy, RunCopies,
//                  WhyNotOp, OwnScratch
//   trine_buffer   BufferOf, At, HostPtr
//   trine_plan     device, graph, places, scratch_place, Prepare, Run
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "backends/common/op_attributes.h"
#include "backends/common/packed_layout.h"
#include "backends/common/plugin.h"
#include "trine/backend_sdk.h"

namespace trine::backends {

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

// Makes the functions of the table that open and describe from a backend's own functions. Functions
// that make something return a StatusOr of a unique_ptr.
template <auto kMakeBackend, auto kCountDevices, auto kDescribeDevice, auto kMakeDevice,
          class Backend = trine_backend, class Device = trine_device>
struct OpenCalls {
  static trine_status Open(const trine_host* host, const char* options, Backend** out,
                           trine_error* err) {
    return sdk::Guard(err, [&]() -> trine_status {
      auto backend = kMakeBackend(host, options != nullptr ? options : "");
      if (!backend.ok()) return Fail(err, backend.status());
      *out = backend->release();
      return TRINE_OK;
    });
  }
  static void Close(Backend* backend) { delete backend; }
  static uint32_t DeviceCount(Backend* backend) { return kCountDevices(*backend); }
  static trine_status DeviceInfo(Backend* backend, uint32_t index, trine_device_info* out,
                                 trine_error* err) {
    if (index >= kCountDevices(*backend)) return NoDevice(err);
    return sdk::Guard(err, [&]() -> trine_status {
      sdk::WriteOut(out, kDescribeDevice(backend, index));
      return TRINE_OK;
    });
  }
  static trine_status DeviceOpen(Backend* backend, uint32_t index, Device** out, trine_error* err) {
    if (index >= kCountDevices(*backend)) return NoDevice(err);
    return sdk::Guard(err, [&]() -> trine_status {
      auto device = kMakeDevice(backend, index);
      if (!device.ok()) return Fail(err, device.status());
      *out = device->release();
      return TRINE_OK;
    });
  }
  static void DeviceClose(Device* device) { delete device; }

 private:
  static trine_status NoDevice(trine_error* err) {
    return Fail(err, TRINE_NOT_FOUND, "there is no such device");
  }
};

// A buffer, for a plugin to derive its trine_buffer from. Has `bytes`; the memory may have more.
template <class Device, class Memory>
struct BufferOf {
  Device* device = nullptr;
  Memory memory;
  uint64_t bytes = 0;
  bool read_only = false;

  bool InRange(uint64_t offset, uint64_t n) const { return offset <= bytes && n <= bytes - offset; }
};

// The functions of the table for memory and copies. Every one reports that a device is lost.
template <class Device = trine_device, class Buffer = trine_buffer>
struct BufferCalls {
  static trine_status Alloc(Device* device, const trine_buffer_desc* given, Buffer** out,
                            trine_error* err) {
    const trine_buffer_desc desc = sdk::ReadIn(given);
    if (desc.bytes == 0) return Fail(err, TRINE_INVALID_ARGUMENT, "a buffer needs some bytes");
    return Make(
        device, desc.memory, desc.bytes, /*read_only=*/false,
        [&] { return device->Allocate(desc.bytes, desc.memory == TRINE_MEMORY_IO); }, out, err);
  }

  static trine_status Import(Device* device, const trine_import_desc* given, Buffer** out,
                             trine_error* err) {
    const trine_import_desc desc = sdk::ReadIn(given);
    if (desc.host_ptr == nullptr || desc.bytes == 0) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "nothing to import");
    }
    const bool read_only = (desc.flags & TRINE_IMPORT_READ_ONLY) != 0;
    return Make(
        device, desc.memory, desc.bytes, read_only,
        [&] { return device->Import(desc.host_ptr, desc.bytes, read_only); }, out, err);
  }

  static void Free(Buffer* buffer) { delete buffer; }
  static void* HostPtr(Buffer* buffer) { return buffer->HostPtr(); }

  static trine_status Write(Buffer* buffer, uint64_t offset, const void* src, uint64_t bytes,
                            trine_error* err) {
    if (!buffer->InRange(offset, bytes)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the write reaches beyond the buffer");
    }
    if (buffer->read_only) return Fail(err, TRINE_INVALID_ARGUMENT, "the buffer is read-only");
    return sdk::Guard(err, [&] {
      absl::Status status = buffer->device->Health();
      if (status.ok() && bytes != 0) status = buffer->device->Write(*buffer, offset, src, bytes);
      return Answer(err, status);
    });
  }

  static trine_status Read(Buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                           trine_error* err) {
    if (!buffer->InRange(offset, bytes)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the read reaches beyond the buffer");
    }
    return sdk::Guard(err, [&] {
      absl::Status status = buffer->device->Health();
      if (status.ok() && bytes != 0) status = buffer->device->Read(*buffer, offset, dst, bytes);
      return Answer(err, status);
    });
  }

  static trine_status Copy(Device* device, const trine_copy_args* given, trine_error* err) {
    const trine_copy_args args = sdk::ReadIn(given);
    if (args.copies == nullptr && args.n_copies != 0) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the copies are null");
    }
    return sdk::Guard(err, [&]() -> trine_status {
      std::vector<trine_copy> copies;
      for (uint32_t i = 0; i < args.n_copies; ++i) {
        copies.push_back(sdk::At(args.copies, args.copy_stride, i));
        const std::string why = WhyNot(*device, copies.back());
        if (!why.empty()) {
          return Fail(err, TRINE_INVALID_ARGUMENT, absl::StrCat("copy ", i, " ", why));
        }
      }
      return device->RunCopies(std::move(copies), args.sync, err);
    });
  }

 private:
  template <class MakeMemory>
  static trine_status Make(Device* device, uint32_t kind, uint64_t bytes, bool read_only,
                           MakeMemory make, Buffer** out, trine_error* err) {
    if (kind < TRINE_MEMORY_WEIGHTS || kind > TRINE_MEMORY_IO) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
    }
    return sdk::Guard(err, [&]() -> trine_status {
      if (absl::Status status = device->Health(); !status.ok()) return Fail(err, status);
      auto memory = make();
      if (!memory.ok()) return Fail(err, memory.status());
      *out = new Buffer{{device, *std::move(memory), bytes, read_only}};
      return TRINE_OK;
    });
  }

  // Returns "" or why the copy can't be done.
  static std::string WhyNot(const Device& device, const trine_copy& copy) {
    const Buffer *from = copy.src.buffer, *to = copy.dst.buffer;
    const auto is_end = [&](const Buffer* buffer, const trine_copy_end& end) {
      return buffer != nullptr ? buffer->InRange(end.offset, copy.bytes)
                               : end.host != nullptr || copy.bytes == 0;
    };
    if (!is_end(from, copy.src) || !is_end(to, copy.dst)) {
      return "has no memory at one end or reaches beyond it";
    }
    if (to != nullptr && to->read_only) return "goes into a read-only buffer";
    return device.CanCopy(from, to) ? "" : "has no end in a buffer of this device's";
  }
};

// The functions of the table for layouts: those of a layout that depends on no device.
template <const PackedLayout& kLayout>
struct LayoutCalls {
  static trine_status List(trine_device*, const trine_graph* graph, uint32_t tensor,
                           trine_layout_list* out, trine_error* err) {
    return kLayout.List(graph, tensor, out, err);
  }
  static trine_status Convert(trine_device*, const trine_layout_convert_args* args,
                              trine_error* err) {
    return kLayout.Convert(args, err);
  }
};

// The functions of the table for plans. The scratch of a plan has the TEMP slots, then the device's
// own part. Spans begin at multiples of the device's alignment, a power of two.
template <class Device = trine_device, class Buffer = trine_buffer, class Plan = trine_plan>
struct PlanCalls {
  static trine_status QueryOp(Device* device, const trine_graph* graph, uint32_t op, const int64_t*,
                              trine_op_support* out, trine_error* err) {
    if (absl::Status status = device->Health(); !status.ok()) return Fail(err, status);
    return sdk::AnswerOpQuery(graph, op, SupportOf(*device), RefusalOf(*device), out, err);
  }

  static trine_status Query(Device* device, const trine_graph* given, trine_plan_info* out,
                            trine_error* err) {
    return sdk::Guard(err, [&]() -> trine_status {
      sdk::Graph graph;
      const trine_status status = Accept(*device, given, &graph, err);
      if (status != TRINE_OK) return status;
      trine_plan_info info{};
      info.scratch_alignment = static_cast<uint32_t>(device->Alignment());
      const uint64_t own = device->OwnScratch(graph);
      info.scratch_bytes =
          own == 0 ? sdk::LayOutScratch(graph, nullptr) : OwnOffset(*device, graph) + own;
      sdk::WriteOut(out, info);
      return TRINE_OK;
    });
  }

  static trine_status Create(Device* device, const trine_plan_desc* given, Plan** out,
                             trine_error* err) {
    return sdk::Guard(err, [&]() -> trine_status {
      const trine_plan_desc desc = sdk::ReadIn(given);
      auto plan = std::make_unique<Plan>();
      plan->device = device;
      trine_status status = Accept(*device, desc.graph, &plan->graph, err);
      if (status == TRINE_OK) status = plan->places.Bind(plan->graph, desc, PlaceOf, err);
      if (status == TRINE_OK) status = CheckSpans(*plan, desc, err);
      if (status != TRINE_OK) return status;
      const auto own = plan->Prepare(desc);  // the bytes of the device's part of the scratch
      if (!own.ok()) return Fail(err, own.status());
      if (*own != 0) {
        const auto scratch = PlaceOf(desc.scratch);
        const uint64_t offset = OwnOffset(*device, plan->graph);
        if (scratch == decltype(scratch){} || desc.scratch.bytes < offset + *own) {
          return Fail(err, TRINE_INVALID_ARGUMENT, "the scratch is missing or too small");
        }
        plan->scratch_place = scratch + offset;
      }
      *out = plan.release();
      return TRINE_OK;
    });
  }

  static trine_status Run(Plan* plan, const trine_run_args* given, trine_error* err) {
    const trine_run_args args = sdk::ReadIn(given);
    return sdk::Guard(err, [&]() -> trine_status {
      const trine_status status = sdk::CheckRun(plan->graph, args, err);
      return status == TRINE_OK ? plan->Run(args, err) : status;
    });
  }

  static void Destroy(Plan* plan) { delete plan; }

 private:
  static uint32_t SupportOf(const Device& device) {
    return device.exact ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST;
  }
  static auto RefusalOf(const Device& device) {
    return [&device](const sdk::Graph& graph, size_t op) { return device.WhyNotOp(graph, op); };
  }
  static trine_status Accept(const Device& device, const trine_graph* given, sdk::Graph* graph,
                             trine_error* err) {
    if (absl::Status status = device.Health(); !status.ok()) return Fail(err, status);
    return sdk::AcceptGraph(given, SupportOf(device), RefusalOf(device), graph, err);
  }

  // Returns where the device's own part of the scratch begins.
  static uint64_t OwnOffset(const Device& device, const sdk::Graph& graph) {
    const uint64_t alignment = device.Alignment();
    return (sdk::LayOutScratch(graph, nullptr) + alignment - 1) / alignment * alignment;
  }

  // Returns where a span begins, or nowhere if it is out of range.
  static auto PlaceOf(const trine_span& span) {
    const Buffer* buffer = span.buffer;
    using Place = decltype(buffer->At(0));
    return buffer != nullptr && buffer->InRange(span.offset, span.bytes) ? buffer->At(span.offset)
                                                                         : Place{};
  }

  // Returns "" or why the device can't use a span, which is in range. `written`: kernels write it.
  static std::string WhyNotSpan(const Device& device, const trine_span& span, bool written) {
    const Buffer* buffer = span.buffer;
    if (buffer == nullptr) return "";
    if (buffer->device != &device) return "is in a buffer of another device";
    if (buffer->read_only && written) return "is memory that can't be written";
    if (span.offset % device.Alignment() == 0) return "";
    return absl::StrCat("begins at ", span.offset, ", which is no multiple of ",
                        device.Alignment());
  }
  static trine_status CheckSpans(const Plan& plan, const trine_plan_desc& desc, trine_error* err) {
    for (uint32_t i = 0; i < desc.n_bindings; ++i) {
      const trine_binding b = sdk::At(desc.bindings, desc.binding_stride, i);
      const bool written = plan.graph.slots[b.slot].role != TRINE_ROLE_CONSTANT;
      const std::string why = WhyNotSpan(*plan.device, b.span, written);
      if (!why.empty()) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    absl::StrCat("what slot ", b.slot, " is bound to ", why));
      }
    }
    const std::string why = WhyNotSpan(*plan.device, desc.scratch, true);
    return why.empty() ? TRINE_OK : Fail(err, TRINE_INVALID_ARGUMENT, "the scratch " + why);
  }
};

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
