// The Vulkan backend's entry points: every GPU that has a driver, all ops and types, synchronous.
#include "backends/vulkan/backend.h"
#include "backends/vulkan/buffers.h"
#include "backends/vulkan/layouts.h"
#include "backends/vulkan/plan.h"
#include "trine/sdk/hardware.h"

// Devices of the kernel's, of vendors' own drivers, of emulators, and of Windows below; and
// whatever drivers somebody names.
TRINE_PLUGIN_HARDWARE(
    "/dev/dri:/dev/nvidiactl:/dev/nvidia0:/dev/nvhost-gpu:/dev/nvgpu:/dev/dxg:/dev/mali0"
    ":/dev/kgsl-3d0:/dev/pvr_sync:/dev/pvrsrvkm:/dev/galcore:/dev/goldfish_pipe"
    ":$VK_DRIVER_FILES:$VK_ADD_DRIVER_FILES:$VK_ICD_FILENAMES:$VN_DEBUG:$TRINE_VULKAN_ALLOW_CPU");

namespace trine::vulkan {
namespace {

trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                  trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    auto backend = MakeBackend(host, options != nullptr ? options : "");
    if (!backend.ok()) return Fail(err, backend.status());
    *out = backend->release();
    return TRINE_OK;
  });
}

void Close(trine_backend* backend) { delete backend; }

uint32_t DeviceCount(trine_backend* backend) { return CountDevices(*backend); }

trine_status CheckIndex(const trine_backend& backend, uint32_t index, trine_error* err) {
  if (index < CountDevices(backend)) return TRINE_OK;
  return Fail(err, TRINE_NOT_FOUND, "there is no such device");
}

trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  const trine_status status = CheckIndex(*backend, index, err);
  if (status != TRINE_OK) return status;
  return sdk::Guard(err, [&]() -> trine_status {
    sdk::WriteOut(out, DescribeDevice(backend, index));
    return TRINE_OK;
  });
}

trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                        trine_error* err) {
  const trine_status status = CheckIndex(*backend, index, err);
  if (status != TRINE_OK) return status;
  return sdk::Guard(err, [&]() -> trine_status {
    auto device = MakeDevice(backend, index);
    if (!device.ok()) return Fail(err, device.status());
    *out = device->release();
    return TRINE_OK;
  });
}

void DeviceClose(trine_device* device) { delete device; }

constexpr trine_plugin kTable = {
    .struct_size = sizeof(trine_plugin),
    .abi_version = TRINE_ABI_VERSION,
    .numerics_version = TRINE_NUMERICS_VERSION,
    .sanitizer = TRINE_SANITIZER_HERE,
    .name = "vulkan",
    .version = TRINE_VERSION,
    .open = Open,
    .close = Close,
    .device_count = DeviceCount,
    .device_info = DeviceInfo,
    .device_open = DeviceOpen,
    .device_close = DeviceClose,
    .buffer_alloc = BufferAlloc,
    .buffer_free = BufferFree,
    .buffer_write = BufferWrite,
    .buffer_read = BufferRead,
    .copy_run = BufferCopy,
    .op_query = OpQuery,
    .plan_query = PlanQuery,
    .plan_create = PlanCreate,
    .plan_run = PlanRun,
    .plan_destroy = PlanDestroy,
    .timeline_create = Timelines::Create,
    .timeline_destroy = Timelines::Destroy,
    .timeline_signal = Timelines::Signal,
    .timeline_fail = Timelines::SetFailed,
    .timeline_wait = Timelines::Wait,
    .timeline_query = Timelines::Query,
    .buffer_host_ptr = BufferHostPtr,
    .buffer_import = BufferImport,
    .layout_list = LayoutList,
    .layout_convert = LayoutConvert,
};

}  // namespace
}  // namespace trine::vulkan

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &trine::vulkan::kTable : nullptr;
}
