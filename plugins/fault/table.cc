// The wrapper's function table.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "plugins/fault/faulty_handles.h"
#include "trine/sdk/status.h"

namespace trine::fault {
namespace {

using sdk::Fail;
using sdk::Guard;

// More memory than any device has, and small enough that a sum of a few such sizes does not
// overflow.
constexpr uint64_t kAbsurdBytes = uint64_t{1} << 60;

// ---- Backend and device -------------------------------------------------------------------------

trine_status Open(const trine_host*, const char*, trine_backend**, trine_error* err) {
  return Fail(err, TRINE_FAILED_PRECONDITION, "a backend is opened before faults are put into it");
}

void Close(trine_backend* handle) { Of(handle)->injector->Close(Of(handle)); }

uint32_t DeviceCount(trine_backend* handle) {
  return Of(handle)->real.device_count(Of(handle)->handle);
}

trine_status DeviceInfo(trine_backend* handle, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  return Of(handle)->real.device_info(Of(handle)->handle, index, out, err);
}

trine_status DeviceOpen(trine_backend* handle, uint32_t index, trine_device** out,
                        trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    FaultyBackend& backend = *Of(handle);
    if (index >= backend.faults.size()) {  // the wrapper has no names for it, or it does not exist
      return Fail(err, TRINE_NOT_FOUND, "there is no device of that number");
    }
    auto device = std::make_unique<FaultyDevice>();
    device->backend = &backend;
    device->faults = backend.faults[index];
    if (const auto gone = device->faults->TryOpen()) return Fail(err, TRINE_UNAVAILABLE, *gone);
    if (const trine_status s = Meet(*device, Moment::kOpen, err); s != TRINE_OK) return s;
    trine_device_info info{};
    info.struct_size = sizeof(info);
    const trine_status s = backend.real.device_info(backend.handle, index, &info, nullptr);
    device->async = s != TRINE_OK || (info.flags & TRINE_DEVICE_ASYNC) != 0;
    const trine_status opened =
        backend.real.device_open(backend.handle, index, &device->handle, err);
    if (opened != TRINE_OK) return opened;
    *out = reinterpret_cast<trine_device*>(device.get());
    backend.injector->AddDevice(&backend, std::move(device));
    return TRINE_OK;
  });
}

void DeviceClose(trine_device* handle) {
  FaultyDevice& device = *Of(handle);
  Meet(device, Moment::kShutdown, nullptr);
  device.Drain();
  device.AwaitWork();
  const std::unique_ptr<FaultyDevice> taken = device.injector().TakeDevice(&device);
  taken->real().device_close(taken->handle);
}

// ---- Objects that a device makes ---------------------------------------------------------------

// Wraps a handle that the plugin made, and registers it with the device.
template <class Thing, class Handle>
trine_status Keep(FaultyDevice& device, std::set<Thing*> FaultyDevice::*where,
                  std::unique_ptr<Thing> thing, Handle** out) {
  const std::lock_guard<std::mutex> lock(device.mutex);
  (device.*where).insert(thing.get());
  *out = reinterpret_cast<Handle*>(thing.release());
  return TRINE_OK;
}

template <class Thing>
std::unique_ptr<Thing> Take(std::set<Thing*> FaultyDevice::*where, Thing* thing) {
  FaultyDevice& device = *thing->device;
  device.Drain();
  const std::lock_guard<std::mutex> lock(device.mutex);
  (device.*where).erase(thing);
  return std::unique_ptr<Thing>(thing);
}

// Gives a handle back to the plugin. Counts as a call of kFree if `kCounts`.
template <auto kWhere, auto kDestroy, bool kCounts, class Handle>
void Destroy(Handle* handle) {
  if (handle == nullptr) return;
  if (kCounts) Meet(*Of(handle)->device, Moment::kFree, nullptr);
  const auto thing = Take(kWhere, Of(handle));
  (thing->device->real().*kDestroy)(thing->handle);
}

template <auto kMake, Moment kMoment, class Desc>
trine_status MakeBuffer(trine_device* handle, const Desc* desc, trine_buffer** out,
                        trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    FaultyDevice& device = *Of(handle);
    if (const trine_status s = Meet(device, kMoment, err); s != TRINE_OK) return s;
    auto buffer = std::make_unique<FaultyBuffer>(FaultyBuffer{&device, nullptr});
    const trine_status s = (device.real().*kMake)(device.handle, desc, &buffer->handle, err);
    return s != TRINE_OK ? s : Keep(device, &FaultyDevice::buffers, std::move(buffer), out);
  });
}

void* BufferHostPtr(trine_buffer* handle) {
  return Of(handle)->device->real().buffer_host_ptr(Of(handle)->handle);
}

template <auto kTransfer, Moment kMoment, class Data>
trine_status Transfer(trine_buffer* handle, uint64_t offset, Data* data, uint64_t bytes,
                      trine_error* err) {
  FaultyDevice& device = *Of(handle)->device;
  if (const trine_status s = Meet(device, kMoment, err); s != TRINE_OK) return s;
  return (device.real().*kTransfer)(Of(handle)->handle, offset, data, bytes, err);
}

// ---- Asking and planning ------------------------------------------------------------------------

trine_status OpQuery(trine_device* handle, const trine_graph* graph, uint32_t op,
                     const int64_t* params, trine_op_support* out, trine_error* err) {
  FaultyDevice& device = *Of(handle);
  if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
  return device.real().op_query(device.handle, graph, op, params, out, err);
}

trine_status PlanQuery(trine_device* handle, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err) {
  FaultyDevice& device = *Of(handle);
  Strike strike;
  if (const trine_status s = Meet(device, Moment::kQuery, err, &strike); s != TRINE_OK) return s;
  const trine_status status = device.real().plan_query(device.handle, graph, out, err);
  if (status == TRINE_OK && strike.fault != nullptr) out->scratch_bytes = kAbsurdBytes;
  return status;
}

trine_status LayoutList(trine_device* handle, const trine_graph* graph, uint32_t tensor,
                        trine_layout_list* out, trine_error* err) {
  FaultyDevice& device = *Of(handle);
  Strike strike;
  if (const trine_status s = Meet(device, Moment::kLayout, err, &strike); s != TRINE_OK) return s;
  const trine_status status = device.real().layout_list(device.handle, graph, tensor, out, err);
  if (status != TRINE_OK || strike.fault == nullptr || out->capacity == 0) return status;
  trine_layout_info info = sdk::At(out->infos, out->stride, 0);
  if (out->count == 0) info = {};
  info.packed_bytes = kAbsurdBytes;
  std::memcpy(out->infos, &info, std::min<size_t>(out->stride, sizeof(info)));
  out->count = UINT32_MAX;
  return TRINE_OK;
}

trine_status LayoutConvert(trine_device* handle, const trine_layout_convert_args* args,
                           trine_error* err) {
  FaultyDevice& device = *Of(handle);
  if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
  return device.real().layout_convert(device.handle, args, err);
}

uint32_t FindParam(const trine_graph& graph, uint32_t kind) {
  for (uint32_t i = 0; i < graph.n_params; ++i) {
    if (sdk::At(graph.params, graph.param_stride, i).kind == kind) return i;
  }
  return TRINE_NONE;
}

trine_status PlanCreate(trine_device* handle, const trine_plan_desc* given, trine_plan** out,
                        trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    FaultyDevice& device = *Of(handle);
    if (const trine_status s = Meet(device, Moment::kPlan, err); s != TRINE_OK) return s;
    trine_plan_desc desc = sdk::ReadIn(given);
    desc.struct_size = std::min<uint32_t>(given->struct_size, sizeof(desc));
    const Translated<trine_binding> bindings(
        desc.bindings, desc.n_bindings, desc.binding_stride,
        [](trine_binding* b) { b->span.buffer = RealOf(b->span.buffer); });
    desc.bindings = bindings.get();
    desc.scratch.buffer = RealOf(desc.scratch.buffer);
    auto plan = std::make_unique<FaultyPlan>();
    plan->device = &device;
    const trine_status s = device.real().plan_create(device.handle, &desc, &plan->handle, err);
    if (s != TRINE_OK) return s;
    const trine_graph graph = sdk::ReadIn(desc.graph);
    plan->tokens_param = FindParam(graph, TRINE_PARAM_TOKENS);
    plan->sequences_param = FindParam(graph, TRINE_PARAM_SEQUENCES);
    if (device.faults->spoils_outputs()) plan->outputs = PlanOutputs::Of(desc);
    return Keep(device, &FaultyDevice::plans, std::move(plan), out);
  });
}

// ---- Timelines ----------------------------------------------------------------------------------
// Timelines stay usable when their device is lost: the plugin's own timelines report the failure.

trine_status TimelineCreate(trine_device* handle, uint64_t initial, trine_timeline** out,
                            trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    FaultyDevice& device = *Of(handle);
    if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
    auto timeline = std::make_unique<FaultyTimeline>(FaultyTimeline{&device, nullptr});
    const trine_status s =
        device.real().timeline_create(device.handle, initial, &timeline->handle, err);
    return s != TRINE_OK ? s : Keep(device, &FaultyDevice::timelines, std::move(timeline), out);
  });
}

template <auto kFunction, class... Args>
trine_status PassOn(trine_timeline* handle, Args... args) {
  return (Of(handle)->device->real().*kFunction)(Of(handle)->handle, args...);
}

trine_status TimelineWait(trine_timeline* handle, uint64_t value, uint64_t timeout_ns,
                          trine_error* err) {
  FaultyDevice& device = *Of(handle)->device;
  device.waiters.fetch_add(1);
  const trine_status status =
      device.real().timeline_wait(Of(handle)->handle, value, timeout_ns, err);
  device.waiters.fetch_sub(1);
  return status;
}

}  // namespace

trine_plugin WrapTable(const trine_plugin& real) {
  trine_plugin table = real;
  table.open = Open;
  table.close = Close;
  table.device_count = DeviceCount;
  table.device_info = DeviceInfo;
  table.device_open = DeviceOpen;
  table.device_close = DeviceClose;
  table.buffer_alloc = MakeBuffer<&trine_plugin::buffer_alloc, Moment::kAlloc>;
  table.buffer_free = Destroy<&FaultyDevice::buffers, &trine_plugin::buffer_free, true>;
  table.buffer_write = Transfer<&trine_plugin::buffer_write, Moment::kWrite>;
  table.buffer_read = Transfer<&trine_plugin::buffer_read, Moment::kRead>;
  table.copy_run = CopyRun;
  table.op_query = OpQuery;
  table.plan_query = PlanQuery;
  table.plan_create = PlanCreate;
  table.plan_run = PlanRun;
  table.plan_destroy = Destroy<&FaultyDevice::plans, &trine_plugin::plan_destroy, true>;
  table.timeline_create = TimelineCreate;
  table.timeline_destroy =
      Destroy<&FaultyDevice::timelines, &trine_plugin::timeline_destroy, false>;
  table.timeline_signal = PassOn<&trine_plugin::timeline_signal>;
  table.timeline_fail = PassOn<&trine_plugin::timeline_fail>;
  table.timeline_wait = TimelineWait;
  table.timeline_query = PassOn<&trine_plugin::timeline_query>;
  if (real.buffer_host_ptr != nullptr) table.buffer_host_ptr = BufferHostPtr;
  if (real.buffer_import != nullptr) {
    table.buffer_import = MakeBuffer<&trine_plugin::buffer_import, Moment::kImport>;
  }
  if (real.layout_list != nullptr) table.layout_list = LayoutList;
  if (real.layout_convert != nullptr) table.layout_convert = LayoutConvert;
  return table;
}

}  // namespace trine::fault
