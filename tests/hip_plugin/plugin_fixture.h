// Calls the plugin over the emulator, without a library in between: backends with given options,
// and plans whose constants are where a test wants them.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/hip/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/hip/gpu/emulated_runtime.h"
#include "tests/abi/graph_builder.h"

namespace trine::hip {

using Bytes = std::vector<std::byte>;
using BufferPtr = std::unique_ptr<trine_buffer, void (*)(trine_buffer*)>;
using PlanPtr = std::unique_ptr<trine_plan, void (*)(trine_plan*)>;

// Where a test keeps a plan's constants.
enum class Keep { kDevice, kPinned, kRegistered, kFile };
inline constexpr Keep kHostKeeps[] = {Keep::kPinned, Keep::kRegistered, Keep::kFile};

class PluginFixture : public ::testing::Test {
 protected:
  PluginFixture() {
    setenv("TRINE_HIP_ALLOW_HOST", "1", 1);
    unsetenv("TRINE_HIP_TUNING");
    host_.struct_size = sizeof(host_);
    host_.self = this;
    host_.log = [](void* self, uint32_t, const char* message) {
      static_cast<PluginFixture*>(self)->log_ += std::string(message) + "\n";
    };
    host_.profiling = &profiling_;
    host_.op_done = [](void* self, const char* name, uint64_t) {
      static_cast<PluginFixture*>(self)->timed_.emplace_back(name);
    };
  }
  ~PluginFixture() override { emulator::Reset({}); }

  // Opens a backend whose devices count as exact untested: another test covers the self-test.
  std::unique_ptr<trine_backend> Backend(const std::string& options) {
    auto backend = MakeBackend(&host_, options);
    EXPECT_TRUE(backend.ok()) << backend.status();
    for (auto& verdict : (*backend)->verdicts) verdict = "";
    return *std::move(backend);
  }
  static std::unique_ptr<trine_device> Device(trine_backend* backend, uint32_t index = 0) {
    auto device = MakeDevice(backend, index);
    EXPECT_TRUE(device.ok()) << device.status();
    return *std::move(device);
  }

  BufferPtr Alloc(trine_device* device, uint64_t bytes, uint32_t memory = TRINE_MEMORY_STATE) {
    const trine_buffer_desc desc{sizeof(desc), memory, bytes};
    trine_buffer* buffer = nullptr;
    status_ = Table().buffer_alloc(device, &desc, &buffer, &err_);
    return {buffer, Table().buffer_free};
  }
  BufferPtr Import(trine_device* device, void* memory, uint64_t bytes, bool read_only) {
    trine_import_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.memory = TRINE_MEMORY_WEIGHTS;
    desc.flags = read_only ? TRINE_IMPORT_READ_ONLY : 0;
    desc.host_ptr = memory;
    desc.bytes = bytes;
    trine_buffer* buffer = nullptr;
    status_ = Table().buffer_import(device, &desc, &buffer, &err_);
    return {buffer, Table().buffer_free};
  }

  static Bytes Noise(size_t n, uint32_t seed) {
    Bytes bytes(n);
    for (std::byte& b : bytes) {
      seed = seed * 1664525u + 1013904223u;
      b = static_cast<std::byte>(seed >> 24);
    }
    return bytes;
  }

  trine_host host_{};
  uint32_t profiling_ = 0;
  std::string log_;
  std::vector<std::string> timed_;
  trine_status status_ = TRINE_OK;  // of the last call
  trine_error err_{};
};

// A plan with its memory. A failure is kept in `status` with its message.
class BoundPlan {
 public:
  BoundPlan(trine_device* device, const sdk::GraphBuilder& builder,
            const std::map<uint32_t, Bytes>& contents, Keep keep)
      : device_(device), graph_(builder.Abi()) {
    for (uint32_t slot = 0; slot < builder.slots.size() && status == TRINE_OK; ++slot) {
      const trine_slot& s = builder.slots[slot];
      if (s.role == TRINE_ROLE_TEMP) continue;
      Bind(slot, s, contents, s.role == TRINE_ROLE_CONSTANT ? keep : Keep::kDevice);
    }
    if (status == TRINE_OK) Create();
  }

  trine_status Run(const std::vector<int64_t>& params, const trine_sync& sync = {}) {
    trine_run_args args{};
    args.struct_size = sizeof(args);
    args.n_params = static_cast<uint32_t>(params.size());
    args.params = params.data();
    args.sync = sync;
    args.sync.point_stride = sizeof(trine_point);
    return status = Table().plan_run(plan_.get(), &args, &error);
  }

  Bytes Read(uint32_t slot) {
    Bytes bytes(buffers_.at(slot)->memory.bytes());
    status = Table().buffer_read(buffers_.at(slot).get(), 0, bytes.data(), bytes.size(), &error);
    return bytes;
  }
  void Write(uint32_t slot, const Bytes& bytes) {
    status = Table().buffer_write(buffers_.at(slot).get(), 0, bytes.data(), bytes.size(), &error);
  }
  trine_buffer* buffer(uint32_t slot) { return buffers_.at(slot).get(); }
  // Returns the memory of a constant that the host can see.
  std::byte* HostMemory(uint32_t slot) { return buffers_.at(slot)->memory.data(); }

  trine_status status = TRINE_OK;
  trine_error error{};

 private:
  struct Freed {
    void operator()(void* p) const { std::free(p); }
  };

  void Bind(uint32_t slot, const trine_slot& s, const std::map<uint32_t, Bytes>& contents,
            Keep keep) {
    const uint64_t bytes = (s.bytes + 255) / 256 * 256;
    trine_buffer* buffer = nullptr;
    if (keep == Keep::kRegistered || keep == Keep::kFile) {
      memory_.emplace_back(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
      trine_import_desc desc{};
      desc.struct_size = sizeof(desc);
      desc.memory = TRINE_MEMORY_WEIGHTS;
      desc.flags = keep == Keep::kFile ? TRINE_IMPORT_READ_ONLY : 0;
      desc.host_ptr = memory_.back().get();
      desc.bytes = bytes;
      status = Table().buffer_import(device_, &desc, &buffer, &error);
    } else {
      const bool io = keep == Keep::kPinned || s.role == TRINE_ROLE_IO;
      const trine_buffer_desc desc{sizeof(desc), io ? TRINE_MEMORY_IO : TRINE_MEMORY_WEIGHTS,
                                   bytes};
      status = Table().buffer_alloc(device_, &desc, &buffer, &error);
    }
    if (status != TRINE_OK) return;
    buffers_.emplace(slot, BufferPtr(buffer, Table().buffer_free));
    bindings_.push_back({slot, 0, {buffer, 0, s.bytes}});
    const auto content = contents.find(slot);
    if (content == contents.end()) return;
    if (keep == Keep::kFile) {
      std::memcpy(memory_.back().get(), content->second.data(), content->second.size());
    } else {
      Write(slot, content->second);
    }
  }

  void Create() {
    trine_plan_info info{};
    info.struct_size = sizeof(info);
    status = Table().plan_query(device_, &graph_, &info, &error);
    if (status != TRINE_OK) return;
    trine_plan_desc desc{};
    if (info.scratch_bytes != 0) {
      const trine_buffer_desc scratch{sizeof(scratch), TRINE_MEMORY_STATE, info.scratch_bytes};
      trine_buffer* buffer = nullptr;
      status = Table().buffer_alloc(device_, &scratch, &buffer, &error);
      if (status != TRINE_OK) return;
      scratch_.reset(buffer);
      desc.scratch = {buffer, 0, info.scratch_bytes};
    }
    desc.struct_size = sizeof(desc);
    desc.n_bindings = static_cast<uint32_t>(bindings_.size());
    desc.binding_stride = sizeof(trine_binding);
    desc.graph = &graph_;
    desc.bindings = bindings_.data();
    trine_plan* plan = nullptr;
    status = Table().plan_create(device_, &desc, &plan, &error);
    plan_.reset(plan);
  }

  trine_device* device_;
  trine_graph graph_;
  std::vector<std::unique_ptr<void, Freed>> memory_;
  std::map<uint32_t, BufferPtr> buffers_;  // by slot
  std::vector<trine_binding> bindings_;
  BufferPtr scratch_{nullptr, Table().buffer_free};
  PlanPtr plan_{nullptr, Table().plan_destroy};
};

}  // namespace trine::hip
