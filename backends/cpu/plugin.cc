// The CPU backend's entry points: one device, synchronous, every op and type, exact.
#include "backends/cpu/device.h"

namespace trine::cpu {
namespace {

using sdk::Fail;
using sdk::Guard;

struct OpenCalls {
  static trine_status Open(const trine_host* host, const char* options, trine_backend** out,
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
  static void Close(trine_backend* backend) { delete backend; }
  static uint32_t DeviceCount(trine_backend*) { return 1; }
  static trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                                 trine_error* err) {
    if (index != 0) return NoDevice(err);
    return Guard(err, [&]() -> trine_status {
      sdk::WriteOut(out, DescribeDevice(*backend));
      return TRINE_OK;
    });
  }
  static trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                                 trine_error* err) {
    if (index != 0) return NoDevice(err);
    if (backend->choice.level == nullptr) {
      return Fail(err, TRINE_FAILED_PRECONDITION, backend->choice.reason);
    }
    return Guard(err, [&]() -> trine_status {
      *out = new trine_device{backend};
      return TRINE_OK;
    });
  }
  static void DeviceClose(trine_device* device) { delete device; }

 private:
  static trine_status NoDevice(trine_error* err) {
    return Fail(err, TRINE_NOT_FOUND, "the cpu backend has device 0 alone");
  }
};

constexpr trine_plugin kTable =
    backends::TableOf<OpenCalls, Memory, PlanCalls, LayoutCalls>("cpu", TRINE_VERSION);

}  // namespace
}  // namespace trine::cpu

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &trine::cpu::kTable : nullptr;
}
