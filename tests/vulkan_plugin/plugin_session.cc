#include "tests/vulkan_plugin/plugin_session.h"

#include <stdlib.h>

#include "backends/vulkan/backend.h"
#include "backends/vulkan/exec/verdicts.h"

namespace trine::vulkan::testing {

const trine_plugin& Table() { return *trine_plugin_query(TRINE_ABI_VERSION); }

void UseFakeDriver() {
  setenv("TRINE_VULKAN_CACHE", "off", 1);
  ForgetVerdicts();
  FindVulkanBy([] { return LoadGlobal(FakeDriver::Entry()); });
}

FakeHost::FakeHost() {
  host_.struct_size = sizeof(host_);
  host_.abi_version = TRINE_ABI_VERSION;
  host_.worker_count = 1;
  host_.self = this;
  // Keep messages for people, not signs of life.
  host_.log = [](void* self, uint32_t level, const char* message) {
    if (level > TRINE_LOG_DEBUG) static_cast<FakeHost*>(self)->logs.emplace_back(message);
  };
  host_.profiling = &profiling;
  host_.op_done = [](void* self, const char* name, uint64_t) {
    static_cast<FakeHost*>(self)->op_times.emplace_back(name);
  };
}

trine_status Alloc(trine_device* device, uint64_t bytes, trine_buffer** out, trine_error* err) {
  const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, bytes};
  return Table().buffer_alloc(device, &desc, out, err);
}

PlanOnDevice::PlanOnDevice(trine_device* device) : device_(device) {
  constexpr int64_t kIn = 256, kOut = 8;
  const int64_t columns = builder.Param(1, 64);
  const uint32_t w = builder.Tensor(TRINE_DTYPE_Q8_0, {kIn, kOut}, TRINE_ROLE_CONSTANT, kOut * 272);
  const uint32_t x = builder.Tensor(TRINE_DTYPE_F32, {kIn, columns}, TRINE_ROLE_IO, kIn * 64 * 4);
  const uint32_t y = builder.Tensor(TRINE_DTYPE_F32, {kOut, columns}, TRINE_ROLE_IO, kOut * 64 * 4);
  builder.Op(TRINE_OP_MATMUL, {w, x}, {y});
  buffers.resize(builder.slots.size());
}

PlanOnDevice::~PlanOnDevice() {
  if (plan != nullptr) Table().plan_destroy(plan);
  for (trine_buffer* buffer : buffers) {
    if (buffer != nullptr) Table().buffer_free(buffer);
  }
  if (scratch != nullptr) Table().buffer_free(scratch);
}

trine_status PlanOnDevice::MakeBuffers(trine_error* err) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] != nullptr) continue;
    const trine_status status = Alloc(device_, builder.slots[i].bytes, &buffers[i], err);
    if (status != TRINE_OK) return status;
  }
  return TRINE_OK;
}

trine_status PlanOnDevice::Fill(trine_error* err) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::vector<std::byte> zeros(builder.slots[i].bytes);
    const trine_status status =
        Table().buffer_write(buffers[i], 0, zeros.data(), zeros.size(), err);
    if (status != TRINE_OK) return status;
  }
  return TRINE_OK;
}

trine_status PlanOnDevice::Query(trine_error* err) {
  graph_ = builder.Abi();
  graph_.numerics = TRINE_NUMERICS_FAST;  // a fake device computes nothing
  info_.struct_size = sizeof(info_);
  const trine_status status = Table().plan_query(device_, &graph_, &info_, err);
  if (status != TRINE_OK || scratch != nullptr) return status;
  return Alloc(device_, info_.scratch_bytes, &scratch, err);
}

trine_plan_desc PlanOnDevice::Desc() {
  bindings.clear();
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    bindings.push_back({i, 0, {buffers[i], 0, builder.slots[i].bytes}});
  }
  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_bindings = static_cast<uint32_t>(bindings.size());
  desc.binding_stride = sizeof(trine_binding);
  desc.graph = &graph_;
  desc.bindings = bindings.data();
  desc.scratch = {scratch, 0, info_.scratch_bytes};
  return desc;
}

trine_status PlanOnDevice::Create(trine_error* err) {
  const trine_plan_desc desc = Desc();
  return Table().plan_create(device_, &desc, &plan, err);
}

trine_status PlanOnDevice::Run(int64_t columns, trine_error* err, const trine_sync& sync) {
  trine_run_args args{};
  args.struct_size = sizeof(args);
  args.n_params = 1;
  args.params = &columns;
  args.sync = sync;
  return Table().plan_run(plan, &args, err);
}

trine_status PlanOnDevice::Read(trine_error* err) {
  std::vector<std::byte> bytes(builder.slots.back().bytes);
  return Table().buffer_read(buffers.back(), 0, bytes.data(), bytes.size(), err);
}

trine_status PlanOnDevice::CopyInside(trine_error* err) {
  trine_copy copy{};
  copy.src.buffer = buffers[1];
  copy.dst.buffer = buffers[2];
  copy.bytes = 100;
  trine_copy_args args{};
  args.struct_size = sizeof(args);
  args.n_copies = 1;
  args.copy_stride = sizeof(copy);
  args.copies = &copy;
  return Table().copy_run(device_, &args, err);
}

}  // namespace trine::vulkan::testing
