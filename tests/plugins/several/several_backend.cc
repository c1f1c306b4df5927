// The CPU backend as four devices of another tier, each exact, so that code for several devices can
// be tested anywhere. The last two devices report memory of their own. A run of a plan takes
// TRINE_FIXTURE_SEVERAL microseconds, or the CPU's time if that is more; it sleeps for the rest.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/plugins/cpu_table.h"
#include "trine/backend_sdk.h"

namespace sdk = trine::sdk;

namespace {

constexpr uint32_t kDevices = 4;

std::chrono::microseconds RunTime() {
  const char* text = std::getenv("TRINE_FIXTURE_SEVERAL");
  return std::chrono::microseconds(text == nullptr ? 0 : std::atoi(text));
}

trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  if (index >= kDevices) return sdk::Fail(err, TRINE_NOT_FOUND, "there are four devices");
  const trine_status s = Cpu().device_info(backend, 0, &info, err);
  if (s != TRINE_OK) return s;
  info.tier = TRINE_TIER_OTHER;
  if (index >= kDevices / 2) {
    info.flags &= ~static_cast<uint32_t>(TRINE_DEVICE_UNIFIED_MEMORY);
    std::snprintf(info.memory_pool, sizeof(info.memory_pool), "several %u", index);
    std::snprintf(info.bandwidth_domain, sizeof(info.bandwidth_domain), "several %u", index);
  }
  std::snprintf(info.name, sizeof(info.name), "Several %u", index);
  sdk::WriteOut(out, info);
  return TRINE_OK;
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err) {
  const auto end = std::chrono::steady_clock::now() + RunTime();
  const trine_status status = Cpu().plan_run(plan, args, err);
  std::this_thread::sleep_until(end);
  return status;
}

trine_plugin Table() {
  trine_plugin t = Cpu();
  t.name = TRINE_FIXTURE_NAME;
  t.version = "1.0";
  t.device_count = [](trine_backend*) { return kDevices; };
  t.device_info = DeviceInfo;
  t.device_open = [](trine_backend* backend, uint32_t index, trine_device** out, trine_error* err) {
    return Cpu().device_open(backend, index >= kDevices ? index : 0, out, err);
  };
  t.plan_run = PlanRun;
  return t;
}

}  // namespace

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  static const trine_plugin table = Table();
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &table : nullptr;
}
