// Runs shaders on a driver for tests: operands in, operands back, with the validation layers on.
#ifndef TRINE_TESTS_VULKAN_SHADER_RUNNER_H_
#define TRINE_TESTS_VULKAN_SHADER_RUNNER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/queue.h"
#include "backends/vulkan/recorder.h"
#include "backends/vulkan/transfer.h"
#include "gtest/gtest.h"
#include "kernels/reference/test_tensor.h"
#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

using Bytes = std::vector<std::byte>;

// A device, opened once for all tests of a program.
class ShaderRunner {
 public:
  // Null where there is none, with the reason.
  static ShaderRunner* Get(std::string* why);

  // Runs them in order, on copies of the operands (by number, as KernelRun::operands counts them),
  // which come back as they are then. An operand that is another one too is the same pointer. What
  // lies behind an operand must stay as it is.
  absl::Status Run(const std::vector<KernelRun>& runs, const std::vector<Bytes*>& operands,
                   uint64_t scratch_bytes = 0);

  // Nanoseconds of each run, of the second of two goes.
  std::vector<double> Times(const std::vector<KernelRun>& runs, const std::vector<Bytes*>& operands,
                            uint64_t scratch_bytes = 0);

  // What the validation layers have said since the last call.
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

// Skips where there is no device, or fails where TRINE_REQUIRE_VULKAN is set; fails on any word of
// the validation layers.
class ShaderTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  ShaderRunner* runner_ = nullptr;
};

// A tensor as an operand: its bytes behind `offset` others, which nobody may touch.
TensorView ViewOf(const reference::Tensor& tensor, uint64_t offset = 0);
Bytes OperandOf(const reference::Tensor& tensor, uint64_t offset = 0);

// Where two operands differ, in words of 32 bits; "" where they don't.
std::string Difference(const Bytes& got, const Bytes& want);

}  // namespace trine::vulkan

#endif  // TRINE_TESTS_VULKAN_SHADER_RUNNER_H_
