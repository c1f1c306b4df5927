#include "tests/vulkan/shader_runner.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

#include "absl/strings/str_format.h"

namespace trine::vulkan {
namespace {

constexpr uint64_t kTimeoutNs = 120'000'000'000;
constexpr uint64_t kCanaryBytes = 256;
constexpr std::byte kCanary{0xa5};

bool Validating() {
  const char* value = std::getenv("TRINE_VULKAN_VALIDATE");
  return value == nullptr || std::strcmp(value, "0") != 0;
}

Access AccessOf(const Shader& shader, uint32_t binding) {
  const bool reads = (shader.reads >> binding & 1) != 0,
             writes = (shader.writes >> binding & 1) != 0;
  return reads && writes ? Access::kReadWrite : writes ? Access::kWrite : Access::kRead;
}

}  // namespace

struct ShaderRunner::Buffers {
  std::map<const Bytes*, Allocation> allocations;
  std::vector<BufferRange> operands;
  Allocation scratch;
};

ShaderRunner* ShaderRunner::Get(std::string* why) {
  // Never closed: a driver's threads may outlive static objects.
  static ShaderRunner* runner = new ShaderRunner;
  static const std::string failure = runner->Open();
  *why = failure;
  return failure.empty() ? runner : nullptr;
}

std::string ShaderRunner::Open() {
  const auto global = LoadVulkan();
  if (!global.ok()) return std::string(global.status().message());
  InstanceOptions options;
  options.allow_cpu = true;
  options.validate = Validating();
  options.on_message = [this](const std::string& text) { said_.push_back(text); };
  auto instance = Instance::Create(*global, options);
  if (!instance.ok()) return std::string(instance.status().message());
  instance_ = *std::move(instance);
  const auto& devices = instance_->devices();
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [](const FoundDevice& device) { return device.reason.empty(); });
  if (found == devices.end()) return instance_->NoDeviceReason();
  auto device = Device::Create(*instance_, *found);
  if (!device.ok()) return std::string(device.status().message());
  device_ = *std::move(device);
  tuning_ = ChooseTuning(device_->caps());
  memory_ = std::make_unique<Memory>(*device_);
  auto pipelines = Pipelines::Create(*device_, "");
  auto queue = Queue::Create(*device_);
  if (!pipelines.ok()) return std::string(pipelines.status().message());
  if (!queue.ok()) return std::string(queue.status().message());
  pipelines_ = *std::move(pipelines);
  queue_ = *std::move(queue);
  transfer_ = std::make_unique<Transfer>(*device_, *memory_, *pipelines_, *queue_, tuning_);
  return "";
}

absl::Status ShaderRunner::Place(const Bytes& bytes, Allocation* allocation) {
  auto allocated = memory_->Allocate(bytes.size() + kCanaryBytes, MemoryUse::kDevice);
  if (!allocated.ok()) return allocated.status();
  *allocation = *std::move(allocated);
  Bytes all = bytes;
  all.resize(bytes.size() + kCanaryBytes, kCanary);
  return transfer_->Write(*allocation, 0, all.data(), all.size());
}

absl::Status ShaderRunner::Record(Recorder& recorder, const KernelRun& run,
                                  const Buffers& buffers) const {
  Dispatch dispatch;
  dispatch.shader = run.shader;
  dispatch.constants = run.constants;
  dispatch.push = std::as_bytes(std::span(run.push));
  dispatch.subgroup_size = run.subgroup_size;
  for (uint32_t b = 0; b < run.operands.size(); ++b) {
    const uint32_t operand = run.operands[b];
    const BufferRange& range =
        operand == kScratchOperand ? buffers.scratch.range() : buffers.operands.at(operand);
    dispatch.buffers.push_back({range, AccessOf(*run.shader, b)});
  }
  dispatch.groups = run.groups;
  return recorder.Add(dispatch);
}

absl::Status ShaderRunner::RunOn(const std::vector<KernelRun>& runs, const Buffers& buffers,
                                 std::vector<double>* times) {
  Recorder recorder(*device_, *pipelines_, tuning_, {times != nullptr});
  for (const KernelRun& run : runs) {
    const absl::Status status = Record(recorder, run, buffers);
    if (!status.ok()) return status;
  }
  const auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  for (int go = 0; go < (times != nullptr ? 2 : 1); ++go) {
    const auto point = queue_->Submit(**recording);
    if (!point.ok()) return point.status();
    const absl::Status done = queue_->Wait(*point, kTimeoutNs);
    if (!done.ok()) return done;
  }
  if (times == nullptr) return absl::OkStatus();
  const auto steps = (*recording)->Times();
  if (!steps.ok()) return steps.status();
  for (const StepTime& step : *steps) times->push_back(step.ns);
  return absl::OkStatus();
}

absl::Status ShaderRunner::Run(const std::vector<KernelRun>& runs,
                               const std::vector<Bytes*>& operands, uint64_t scratch_bytes) {
  Buffers buffers;
  for (const Bytes* bytes : operands) {
    auto [at, is_new] = buffers.allocations.try_emplace(bytes);
    if (is_new) {
      const absl::Status placed = Place(*bytes, &at->second);
      if (!placed.ok()) return placed;
    }
    buffers.operands.push_back(at->second.range().Part(0, bytes->size()));
  }
  if (scratch_bytes != 0) {
    const absl::Status placed = Place(Bytes(scratch_bytes, kCanary), &buffers.scratch);
    if (!placed.ok()) return placed;
  }
  const absl::Status status = RunOn(runs, buffers, nullptr);
  if (!status.ok()) return status;
  for (Bytes* bytes : operands) {
    Bytes all(bytes->size() + kCanaryBytes);
    const absl::Status read =
        transfer_->Read(buffers.allocations[bytes], 0, all.data(), all.size());
    if (!read.ok()) return read;
    std::copy_n(all.begin(), bytes->size(), bytes->begin());
    if (std::any_of(all.begin() + static_cast<std::ptrdiff_t>(bytes->size()), all.end(),
                    [](std::byte b) { return b != kCanary; })) {
      return absl::OutOfRangeError("bytes behind an operand were written");
    }
  }
  return absl::OkStatus();
}

std::vector<double> ShaderRunner::Times(const std::vector<KernelRun>& runs,
                                        const std::vector<Bytes*>& operands,
                                        uint64_t scratch_bytes) {
  Buffers buffers;
  for (const Bytes* bytes : operands) {
    if (!Place(*bytes, &buffers.allocations[bytes]).ok()) return {};
    buffers.operands.push_back(buffers.allocations[bytes].range().Part(0, bytes->size()));
  }
  if (scratch_bytes != 0 && !Place(Bytes(scratch_bytes), &buffers.scratch).ok()) return {};
  std::vector<double> times;
  const absl::Status status = RunOn(runs, buffers, &times);
  return status.ok() ? times : std::vector<double>{};
}

std::vector<std::string> ShaderRunner::TakeMessages() { return std::exchange(said_, {}); }

void ShaderTest::SetUp() {
  std::string why;
  runner_ = ShaderRunner::Get(&why);
  if (runner_ != nullptr) return;
  if (std::getenv("TRINE_REQUIRE_VULKAN") != nullptr) FAIL() << why;
  GTEST_SKIP() << why;
}

void ShaderTest::TearDown() {
  if (runner_ == nullptr) return;
  for (const std::string& text : runner_->TakeMessages()) ADD_FAILURE() << text;
}

TensorView ViewOf(const reference::Tensor& tensor, uint64_t offset) {
  TensorView view;
  view.type = tensor.view().type;
  std::copy_n(tensor.view().dims, 4, view.dims.begin());
  std::copy_n(tensor.view().strides, 4, view.strides.begin());
  view.offset = offset;
  return view;
}

Bytes OperandOf(const reference::Tensor& tensor, uint64_t offset) {
  Bytes bytes(offset, kCanary);
  bytes.insert(bytes.end(), tensor.bytes().begin(), tensor.bytes().end());
  return bytes;
}

std::string Difference(const Bytes& got, const Bytes& want) {
  if (got.size() != want.size()) return "other sizes";
  for (size_t at = 0; at < got.size(); at += 4) {
    uint32_t a = 0, b = 0;
    std::memcpy(&a, got.data() + at, std::min<size_t>(4, got.size() - at));
    std::memcpy(&b, want.data() + at, std::min<size_t>(4, got.size() - at));
    if (a == b) continue;
    float x, y;
    std::memcpy(&x, &a, 4);
    std::memcpy(&y, &b, 4);
    return absl::StrFormat("word %d of %d: got %08x (%g), want %08x (%g)", at / 4, got.size() / 4,
                           a, x, b, y);
  }
  return "";
}

}  // namespace trine::vulkan
