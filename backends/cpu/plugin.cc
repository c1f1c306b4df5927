// The CPU backend's entry points: one device, synchronous, every op and type, exact.
#include "backends/cpu/device.h"

namespace trine::cpu {
namespace {

using sdk::Fail;
using sdk::Guard;

trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                  trine_error* err) {
  if (options != nullptr && *options != '\0') {
    return Fail(err, TRINE_INVALID_ARGUMENT,
                std::string("the cpu backend has no options; given: ") + options);
  }
  return Guard(err, [&]() -> trine_status {
    *out = new trine_backend(MakeBackend(host));
    return TRINE_OK;
  });
}

void Close(trine_backend* backend) { delete backend; }

uint32_t DeviceCount(trine_backend*) { return 1; }

trine_status CheckIndex(uint32_t index, trine_error* err) {
  if (index == 0) return TRINE_OK;
  return Fail(err, TRINE_NOT_FOUND, "the cpu backend has device 0 alone");
}

trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  const trine_status status = CheckIndex(index, err);
  if (status != TRINE_OK) return status;
  return Guard(err, [&]() -> trine_status {
    sdk::WriteOut(out, DescribeDevice(*backend));
    return TRINE_OK;
  });
}

trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                        trine_error* err) {
  const trine_status status = CheckIndex(index, err);
  if (status != TRINE_OK) return status;
  if (backend->choice.level == nullptr) {
    return Fail(err, TRINE_FAILED_PRECONDITION, backend->choice.reason);
  }
  return Guard(err, [&]() -> trine_status {
    *out = new trine_device{backend};
    return TRINE_OK;
  });
}

void DeviceClose(trine_device* device) { delete device; }

constexpr trine_plugin kTable = {
    .struct_size = sizeof(trine_plugin),
    .abi_version = TRINE_ABI_VERSION,
    .numerics_version = TRINE_NUMERICS_VERSION,
    .sanitizer = TRINE_SANITIZER_HERE,
    .name = "cpu",
    .version = TRINE_VERSION,
    .open = Open,
    .close = Close,
    .device_count = DeviceCount,
    .device_info = DeviceInfo,
    .device_open = DeviceOpen,
    .device_close = DeviceClose,
    .buffer_alloc = Memory::Alloc,
    .buffer_free = Memory::Free,
    .buffer_write = Memory::Write,
    .buffer_read = Memory::Read,
    .copy_run = Memory::Copy,
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
    .buffer_host_ptr = Memory::HostPtr,
    .buffer_import = Memory::Import,
    .layout_list = LayoutList,
    .layout_convert = LayoutConvert,
};

}  // namespace
}  // namespace trine::cpu

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &trine::cpu::kTable : nullptr;
}
