// A small backend that keeps every rule: one synchronous device in host memory, with add, mul,
// scale and f32 matmul, moe_matmul and kv_store, all exact. It imports memory and files at coarser
// multiples than pages. The broken plugins beside it replace one function of its table.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "trine/backend_sdk.h"

struct trine_backend {
  trine_host host;
};
struct trine_device {
  trine_backend* backend;
};
struct trine_buffer {
  std::unique_ptr<std::byte, void (*)(void*)> data{nullptr, &std::free};
  uint64_t bytes = 0;
  bool imported = false;
  bool read_only = false;
};
struct trine_timeline {
  explicit trine_timeline(uint64_t initial) : timeline(initial) {}
  trine::sdk::Timeline timeline;
};
struct trine_plan {
  trine_device* device = nullptr;
  trine::sdk::Graph graph;
  trine::sdk::PlanStorage storage;
};

namespace sound {

namespace sdk = trine::sdk;

// Lets a broken plugin change the arithmetic: y is a finished row of a matmul.
using RowHook = void (*)(float* y, int64_t n, uint32_t workers);
extern RowHook row_hook;
extern bool skip_barrier;

inline constexpr uint32_t kImportAlignment = 1u << 18;

// The plugin's name. The ids of its layouts begin with its hash.
extern const char* const fixture_name;
#ifdef TRINE_FIXTURE_NAME
const char* const fixture_name = TRINE_FIXTURE_NAME;
#endif

// The layout of f32 matrices.
extern const uint64_t kMirrored;
// Returns the rows that a matrix of n rows takes.
int64_t RoomFor(uint64_t layout, int64_t n);
sdk::Timeline& TimelineOf(trine_timeline* timeline);
// Returns the address of one end of a copy, or null.
std::byte* EndOf(const trine_copy_end& end, uint64_t bytes);
uint64_t RowBytes(const trine_tensor& t);
// Returns whether the bytes are within the buffer.
bool InRange(const trine_buffer* buffer, uint64_t offset, uint64_t bytes);

// The functions of the table.
trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                  trine_error* err);
void Close(trine_backend* backend);
uint32_t DeviceCount(trine_backend*);
trine_status DeviceInfo(trine_backend*, uint32_t index, trine_device_info* out, trine_error* err);
trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                        trine_error* err);
void DeviceClose(trine_device* device);
trine_status BufferAlloc(trine_device*, const trine_buffer_desc* in, trine_buffer** out,
                         trine_error* err);
trine_status BufferImport(trine_device*, const trine_import_desc* in, trine_buffer** out,
                          trine_error* err);
void BufferFree(trine_buffer* buffer);
trine_status BufferWrite(trine_buffer* buffer, uint64_t offset, const void* src, uint64_t bytes,
                         trine_error* err);
trine_status BufferRead(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                        trine_error* err);
void* BufferHostPtr(trine_buffer* buffer);
trine_status CopyRun(trine_device*, const trine_copy_args* in, trine_error* err);
trine_status OpQuery(trine_device*, const trine_graph* in, uint32_t index, const int64_t*,
                     trine_op_support* out, trine_error* err);
trine_status PlanQuery(trine_device*, const trine_graph* in, trine_plan_info* out,
                       trine_error* err);
trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                        trine_error* err);
void PlanDestroy(trine_plan* plan);
trine_status PlanRun(trine_plan* plan, const trine_run_args* in, trine_error* err);
trine_status TimelineCreate(trine_device*, uint64_t initial, trine_timeline** out,
                            trine_error* err);
void TimelineDestroy(trine_timeline* timeline);
trine_status TimelineSignal(trine_timeline* timeline, uint64_t value, trine_error* err);
trine_status TimelineFail(trine_timeline* timeline, trine_status status, const char* message,
                          trine_error* err);
trine_status TimelineWait(trine_timeline* timeline, uint64_t value, uint64_t timeout_ns,
                          trine_error* err);
trine_status TimelineQuery(trine_timeline* timeline, uint64_t* value, trine_error* err);
trine_status LayoutList(trine_device*, const trine_graph* in, uint32_t tensor,
                        trine_layout_list* out, trine_error* err);
trine_status LayoutConvert(trine_device*, const trine_layout_convert_args* in, trine_error* err);
trine_plugin Table();

}  // namespace sound

// Defines the exported function: the sound table with `change(trine_plugin& t)` applied.
#define TRINE_FIXTURE(change)                                                    \
  extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) { \
    if (host_abi_version >> 16 != TRINE_ABI_MAJOR) return nullptr;               \
    static const trine_plugin table = [] {                                       \
      trine_plugin t = sound::Table();                                           \
      change(t);                                                                 \
      return t;                                                                  \
    }();                                                                         \
    return &table;                                                               \
  }
