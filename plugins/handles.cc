#include "plugins/handles.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

absl::Status GaveNothing(const std::string& what) {
  return absl::InternalError(what + ": succeeded but gave nothing");
}

// Makes a call that returns a handle. OK without a handle is a breach of the ABI: INTERNAL.
template <class Handle, class Call>
absl::StatusOr<Handle*> Obtain(const std::string& what, Call call) {
  Handle* handle = nullptr;
  absl::Status status = CallPlugin(what, [&](trine_error* err) { return call(&handle, err); });
  if (!status.ok()) return status;
  if (handle == nullptr) return GaveNothing(what);
  return handle;
}

// Makes an object of the device, by the function of the table that takes `desc`.
template <class Thing, class Handle, class Desc>
absl::StatusOr<Thing> Make(std::shared_ptr<Device> device, const char* name,
                           trine_status (*trine_plugin::*make)(trine_device*, const Desc*, Handle**,
                                                               trine_error*),
                           const Desc* desc) {
  Handle* handle = nullptr;
  absl::Status status = device->Call(name, make, device->handle(), desc, &handle);
  if (!status.ok()) return status;
  if (handle == nullptr) return OnDevice(device->label(), GaveNothing(device->Name(name)));
  return Thing(std::move(device), handle);
}

constexpr char kKey[] = "trine/device";

// Returns whether the code means a failure of the device. Returns false for refusals and for
// mistakes of the caller.
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

absl::StatusOr<std::shared_ptr<Backend>> Backend::Open(std::shared_ptr<PluginLibrary> library,
                                                       const HostServices& host,
                                                       const std::string& options,
                                                       const BackendWrapper& wrap) {
  const trine_plugin& table = library->table();
  auto handle = Obtain<trine_backend>(std::string(table.name) + ": open",
                                      [&](trine_backend** out, trine_error* err) {
                                        return table.open(host.table(), options.c_str(), out, err);
                                      });
  if (!handle.ok()) return handle.status();
  OpenedBackend opened{&table, *handle};
  if (wrap) opened = wrap(table, host.table(), *handle);
  return std::shared_ptr<Backend>(new Backend(std::move(library), opened));
}

Backend::~Backend() {
  CallPluginQuietly([&] { table().close(opened_.handle); });
}

absl::StatusOr<trine_device_info> Backend::DeviceInfo(uint32_t index) const {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  absl::Status status = CallPlugin(name() + ": device_info", [&](trine_error* err) {
    return table().device_info(opened_.handle, index, &info, err);
  });
  if (!status.ok()) return status;
  return info;
}

absl::StatusOr<std::shared_ptr<Device>> Device::Open(std::shared_ptr<Backend> backend,
                                                     uint32_t index, std::string label) {
  auto info = backend->DeviceInfo(index);
  if (!info.ok()) return OnDevice(label, info.status());
  const trine_plugin& table = backend->table();
  auto handle = Obtain<trine_device>(backend->name() + ": device_open",
                                     [&](trine_device** out, trine_error* err) {
                                       return table.device_open(backend->handle(), index, out, err);
                                     });
  if (!handle.ok()) return OnDevice(label, handle.status());
  // A device whose results are not exact has no exact op either, whatever it says of one.
  const bool trusted =
      info->numerics == TRINE_NUMERICS_EXACT && table.numerics_version == TRINE_NUMERICS_VERSION;
  std::shared_ptr<Device> device(new Device(std::move(backend), *handle, *info, std::move(label)));
  if (!trusted) device->Distrust();
  return device;
}

Device::~Device() {
  CallPluginQuietly([&] { table().device_close(handle_); });
}

absl::StatusOr<trine_op_support> Device::QueryOp(const trine_graph& graph, uint32_t op,
                                                 const int64_t* params) const {
  trine_op_support support{};
  support.struct_size = sizeof(support);
  absl::Status status =
      Call("op_query", &trine_plugin::op_query, handle_, &graph, op, params, &support);
  if (!status.ok()) return status;
  if (support.support == TRINE_SUPPORT_EXACT && !trusted_) {
    support.support = TRINE_SUPPORT_FAST;
  }
  return support;
}

absl::StatusOr<trine_plan_info> Device::QueryPlan(const trine_graph& graph) const {
  trine_plan_info info{};
  info.struct_size = sizeof(info);
  absl::Status status = Call("plan_query", &trine_plugin::plan_query, handle_, &graph, &info);
  if (!status.ok()) return status;
  // More memory than any machine has, and low enough that sums of sizes do not wrap.
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  if (info.scratch_bytes > kMostBytes) {
    return OnDevice(label_, absl::InternalError(absl::StrCat(Name("plan_query"), ": asks for ",
                                                             info.scratch_bytes,
                                                             " bytes of scratch, which can't be")));
  }
  return info;
}

absl::Status Device::Copy(const trine_copy_args& args) const {
  return Call("copy_run", &trine_plugin::copy_run, handle_, &args);
}

absl::StatusOr<std::vector<PackedLayout>> Device::ListLayouts(const trine_graph& graph,
                                                              uint32_t tensor) const {
  constexpr uint32_t kCapacity = 16;  // callers try only the first few layouts
  if (table().layout_list == nullptr || table().layout_convert == nullptr) {
    return std::vector<PackedLayout>();
  }
  std::vector<trine_layout_info> infos(kCapacity);
  trine_layout_list list{sizeof(list), sizeof(trine_layout_info), kCapacity, 0, infos.data()};
  absl::Status status =
      Call("layout_list", &trine_plugin::layout_list, handle_, &graph, tensor, &list);
  if (!status.ok()) return status;
  std::vector<PackedLayout> layouts;
  for (uint32_t i = 0; i < std::min(list.count, kCapacity); ++i) {
    auto layout = PackedLayout::Create(graph.tensors[tensor], infos[i], info_.buffer_alignment);
    if (!layout.ok()) {
      return OnDevice(label_, absl::InternalError(Name("layout_list: ") +
                                                  std::string(layout.status().message())));
    }
    layouts.push_back(*std::move(layout));
  }
  return layouts;
}

absl::Status Device::Pack(const PackedLayout& layout, uint64_t begin, uint64_t end,
                          const std::byte* plain, std::byte* packed) const {
  const trine_layout_convert_args args{sizeof(args),
                                       TRINE_LAYOUT_PACK,
                                       &layout.tensor(),
                                       layout.id(),
                                       layout.RowBegin(begin),
                                       layout.RowEnd(end - 1),
                                       plain,
                                       packed};
  return Call("layout_convert", &trine_plugin::layout_convert, handle_, &args);
}

absl::StatusOr<Buffer> Buffer::Allocate(std::shared_ptr<Device> device, uint64_t bytes,
                                        uint32_t memory) {
  const trine_buffer_desc desc{sizeof(trine_buffer_desc), memory, bytes};
  return Make<Buffer>(std::move(device), "buffer_alloc", &trine_plugin::buffer_alloc, &desc);
}

absl::StatusOr<Buffer> Buffer::Import(std::shared_ptr<Device> device,
                                      const trine_import_desc& desc) {
  if (device->table().buffer_import == nullptr) {
    return absl::UnimplementedError(device->Name("the plugin does not import host memory"));
  }
  return Make<Buffer>(std::move(device), "buffer_import", &trine_plugin::buffer_import, &desc);
}

absl::Status Buffer::Write(uint64_t offset, const void* data, uint64_t bytes) const {
  return Call("buffer_write", &trine_plugin::buffer_write, offset, data, bytes);
}

absl::Status Buffer::Read(uint64_t offset, void* data, uint64_t bytes) const {
  return Call("buffer_read", &trine_plugin::buffer_read, offset, data, bytes);
}

void* Buffer::host_ptr() const {
  const auto call = device().table().buffer_host_ptr;
  if (call == nullptr) return nullptr;
  return CallPluginOr(static_cast<void*>(nullptr), [&] { return call(handle()); });
}

absl::StatusOr<Plan> Plan::Create(std::shared_ptr<Device> device, const trine_plan_desc& desc) {
  return Make<Plan>(std::move(device), "plan_create", &trine_plugin::plan_create, &desc);
}

absl::Status Plan::Run(const trine_run_args& args) const {
  return Call("plan_run", &trine_plugin::plan_run, &args);
}

absl::Status WithWhyNotRun(absl::Status status) {
  if (status.ok()) return status;
  const std::string why = HostServices::TakeWhyNotRun();
  if (why.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), ": ", why));
}

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
