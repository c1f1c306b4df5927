// For tests that compare kernels with the reference, on the platform of this build: device memory,
// filled from host tensors, and launches in every order that the emulator has.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/hip/gpu/runtime.h"
#if defined(TRINE_GPU_HOST)
#include "kernels/hip/gpu/emulator.h"
#endif
#include "kernels/hip/weights/tensor.h"
#include "kernels/reference/view.h"

namespace trine::hip::testing {

class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : bytes_(bytes) {
    void* p = nullptr;
    EXPECT_EQ(gpuMalloc(&p, bytes == 0 ? 1 : bytes), gpuSuccess);
    data_ = static_cast<std::byte*>(p);
  }
  ~DeviceMemory() { (void)gpuFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  void Write(const void* from) const {
    if (bytes_ == 0) return;
    EXPECT_EQ(gpuMemcpyAsync(data_, from, bytes_, gpuMemcpyHostToDevice, nullptr), gpuSuccess);
    EXPECT_EQ(gpuStreamSynchronize(nullptr), gpuSuccess);
  }
  void Read(void* to) const {
    if (bytes_ == 0) return;
    EXPECT_EQ(gpuMemcpyAsync(to, data_, bytes_, gpuMemcpyDeviceToHost, nullptr), gpuSuccess);
    EXPECT_EQ(gpuStreamSynchronize(nullptr), gpuSuccess);
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
};

// Returns the number of bytes from a view's first byte to its last. The view is of host memory.
inline size_t BytesOf(const reference::View& view) {
  uint64_t row = 0;
  EXPECT_TRUE(quant::RowBytes(view.type, view.dims[0], &row));
  auto bytes = static_cast<int64_t>(row);
  for (int i = 1; i < 4; ++i) {
    if (view.dims[i] == 0) return 0;
    bytes += (view.dims[i] - 1) * view.strides[i];
  }
  return static_cast<size_t>(bytes);
}

// A tensor on the device, filled with the bytes of a view, `offset` bytes into an allocation.
class OnDevice {
 public:
  explicit OnDevice(const reference::View& view, size_t offset = 0)
      : view_(view), offset_(offset), memory_(offset + BytesOf(view)) {
    std::vector<std::byte> bytes(memory_.bytes());
    if (bytes.size() > offset) std::memcpy(bytes.data() + offset, view.data, bytes.size() - offset);
    memory_.Write(bytes.data());
  }

  Tensor tensor() const {
    Tensor t;
    t.data = memory_.data() + offset_;
    t.type = view_.type;
    for (int i = 0; i < 4; ++i) {
      t.dims[static_cast<size_t>(i)] = view_.dims[i];
      t.strides[static_cast<size_t>(i)] = view_.strides[i];
    }
    return t;
  }
  void Write(const std::vector<std::byte>& bytes) const {
    EXPECT_EQ(bytes.size(), memory_.bytes());
    memory_.Write(bytes.data());
  }
  // Returns the view's bytes, including the gaps between rows, which must not change.
  std::vector<std::byte> Bytes() const {
    std::vector<std::byte> bytes(memory_.bytes());
    memory_.Read(bytes.data());
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(offset_));
    return bytes;
  }

 private:
  reference::View view_;
  size_t offset_;
  DeviceMemory memory_;
};

inline std::vector<std::byte> BytesIn(const reference::View& view) {
  return {view.data, view.data + BytesOf(view)};
}

inline void RunLaunches(std::span<const Launch> launches) {
  for (const Launch& launch : launches) {
    if (launch.empty()) continue;
    const gpuError error = gpuStart(launch, nullptr);
    std::string why = gpuGetErrorString(error);
#if defined(TRINE_GPU_HOST)
    why += ": " + emulator::LastFailure();
#endif
    ASSERT_EQ(error, gpuSuccess) << why;
  }
  ASSERT_EQ(gpuStreamSynchronize(nullptr), gpuSuccess);
}
inline void RunLaunch(const Launch& launch) { RunLaunches({&launch, 1}); }

// Runs `body` under every schedule of the emulator; on a device, once.
inline void UnderEverySchedule(const std::function<void()>& body) {
#if defined(TRINE_GPU_HOST)
  using emulator::Order;
  for (const uint32_t wave : {32u, 64u}) {
    for (const Order order : {Order::kForward, Order::kReverse, Order::kRandom}) {
      SCOPED_TRACE("waves of " + std::to_string(wave) + ", order " +
                   std::to_string(static_cast<int>(order)));
      emulator::Configure({wave, order, 1});
      body();
    }
  }
  emulator::Configure({});
#else
  body();
#endif
}

}  // namespace trine::hip::testing
