// Runs shaders on a driver for tests, with the validation layers on.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/exec/recorder.h"
#include "backends/vulkan/exec/transfer.h"
#include "gtest/gtest.h"
#include "kernels/reference/test_tensor.h"
#include "kernels/vulkan/runs/dispatch.h"

namespace trine::vulkan {

using Bytes = std::vector<std::byte>;

// A device, opened once for all tests of a program.
class ShaderRunner {
 public:
  // Returns null and the reason if there is no device.
  static ShaderRunner* Get(std::string* why);

  // Runs them in order on copies of the operands (by number, as KernelRun::operands counts them),
  // and copies the results back. An operand that occurs twice is the same pointer. Fails if bytes
  // behind an operand change.
  absl::Status Run(const std::vector<KernelRun>& runs, const std::vector<Bytes*>& operands,
                   uint64_t scratch_bytes = 0);

  // Returns the nanoseconds of each run. Everything runs twice; the second time counts.
  std::vector<double> Times(const std::vector<KernelRun>& runs, const std::vector<Bytes*>& operands,
                            uint64_t scratch_bytes = 0);

  // Returns the messages of the validation layers since the last call.
  std::vector<std::string> TakeMessages();

  const Device& device() const { return *device_; }
  Tuning& tuning() { return tuning_; }

 private:
  struct Buffers;

  std::string Open();
  absl::Status Place(const Bytes& bytes, Allocation* allocation);
  absl::Status Record(Recorder& recorder, const KernelRun& run, const Buffers& buffers) const;
  absl::Status RunOn(const std::vector<KernelRun>& runs, const Buffers& buffers,
                     std::vector<double>* times);

  std::vector<std::string> said_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> device_;
  Tuning tuning_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Pipelines> pipelines_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Transfer> transfer_;
};

// Skips if there is no device, or fails if TRINE_REQUIRE_VULKAN is set. Fails on any message of the
// validation layers.
class ShaderTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  ShaderRunner* runner_ = nullptr;
};

// Makes an operand of a tensor, behind `offset` other bytes that must not change.
TensorView ViewOf(const reference::Tensor& tensor, uint64_t offset = 0);
Bytes OperandOf(const reference::Tensor& tensor, uint64_t offset = 0);

// Returns where two operands differ, in words of 32 bits; "" where they don't.
std::string Difference(const Bytes& got, const Bytes& want);

}  // namespace trine::vulkan
