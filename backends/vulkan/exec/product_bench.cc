// trine-vulkan-bench: measures the matrix products on a Vulkan device. "bytes_per_second" counts
// the weights' bytes ("decode": one column, "few": eight), "items_per_second" counts multiply-adds
// ("prefill": 512 columns). Times are the device's own, of the product alone: activations are
// quantised once before. The weights are repeated until they exceed the caches. "copy" is the
// yardstick: it copies from buffer to buffer and counts both the bytes read and the bytes written.
//
//   trine-vulkan-bench [--device=N] [--copies_mb=256] [--tuning=gemv_lanes=32,gemv_rows=1]...
//                      --benchmark_filter='decode/packed/q4_k'
//
// Measures every given tuning, in turn with the others; without any, the device's own. GPUs leave
// their low clocks only under load: --benchmark_min_warmup_time=0.3 gives them time. Devices that
// run on the CPU need TRINE_VULKAN_ALLOW_CPU; on them only ratios between shaders mean anything.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/exec/recorder.h"
#include "backends/vulkan/exec/transfer.h"
#include "kernels/quant/packed_rows.h"
#include "kernels/quant/test_util.h"
#include "kernels/vulkan/runs/products.h"

namespace trine::vulkan {
namespace {

using quant::Type;

constexpr uint64_t kTimeoutNs = 60'000'000'000;

struct Shape {
  const char* name;
  int64_t k, n;
};
// A square of a large model, a shape of a 0.5B model, up and down of a 1B model.
constexpr Shape kShapes[] = {{"4096x4096", 4096, 4096},
                             {"896x4864", 896, 4864},
                             {"2048x8192", 2048, 8192},
                             {"8192x2048", 8192, 2048}};

struct Options {
  size_t device = 0;
  uint64_t copies_bytes = uint64_t{256} << 20;
  std::vector<std::string> tunings;
};

// Several copies of a matrix on the device.
struct Matrix {
  std::string name;
  TensorView view;
  uint64_t bytes = 0;  // size of one copy
  std::vector<Allocation> copies;
};

struct NamedTuning {
  std::string name;  // "": the device's own
  ProductTuning tuning;
};

// A device and all that is needed to run work on it.
struct Bench {
  std::unique_ptr<Instance> instance;
  std::unique_ptr<Device> device;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Pipelines> pipelines;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Transfer> transfer;
  Tuning tuning;
  std::vector<NamedTuning> tunings;
  uint64_t copies_bytes = 0;
  Matrix matrix;  // the last one used: making it takes longer than multiplying by it
};

absl::Status SetTuning(const std::string& text, ProductTuning* tuning) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  uint32_t* member = nullptr;
  if (parts[0] == "gemv_workgroup") member = &tuning->gemv_workgroup;
  if (parts[0] == "gemv_subgroup") member = &tuning->gemv_subgroup;
  if (parts[0] == "gemv_lanes") member = &tuning->gemv_lanes;
  if (parts[0] == "gemv_blocks") member = &tuning->gemv_blocks;
  if (parts[0] == "gemv_rows") member = &tuning->gemv_rows;
  if (parts[0] == "gemv_fill") member = &tuning->gemv_fill;
  if (parts[0] == "gemv_columns") member = &tuning->gemv_columns;
  if (parts[0] == "gemm_rows") member = &tuning->gemm_rows;
  if (parts[0] == "gemm_columns") member = &tuning->gemm_columns;
  if (member == nullptr || parts.size() != 2 || !absl::SimpleAtoi(parts[1], member)) {
    return absl::InvalidArgumentError(absl::StrCat(text, " is no tuning of products"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bench> Open(const Options& options) {
  Bench b;
  b.copies_bytes = options.copies_bytes;
  const auto global = LoadVulkan();
  if (!global.ok()) return global.status();
  auto instance = Instance::Create(*global, InstanceOptionsFromEnvironment());
  if (!instance.ok()) return instance.status();
  b.instance = *std::move(instance);
  std::vector<const FoundDevice*> usable;
  for (const FoundDevice& found : b.instance->devices()) {
    if (found.reason.empty()) usable.push_back(&found);
  }
  if (options.device >= usable.size()) {
    return absl::NotFoundError(absl::StrCat(
        "there are ", usable.size(), " devices to choose from; ", b.instance->NoDeviceReason()));
  }
  auto device = Device::Create(*b.instance, *usable[options.device]);
  if (!device.ok()) return device.status();
  b.device = *std::move(device);
  b.tuning = ChooseTuning(b.device->caps());
  b.memory = std::make_unique<Memory>(*b.device);
  auto pipelines = Pipelines::Create(*b.device, "");
  if (!pipelines.ok()) return pipelines.status();
  b.pipelines = *std::move(pipelines);
  auto queue = Queue::Create(*b.device);
  if (!queue.ok()) return queue.status();
  b.queue = *std::move(queue);
  b.transfer = std::make_unique<Transfer>(*b.device, *b.memory, *b.pipelines, *b.queue, b.tuning);
  const ProductTuning own = ChooseProductTuning(b.device->caps(), b.tuning);
  for (const std::string& text : options.tunings) {
    NamedTuning named{text, own};
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      const absl::Status set = SetTuning(std::string(part), &named.tuning);
      if (!set.ok()) return set;
    }
    b.tunings.push_back(std::move(named));
  }
  if (b.tunings.empty()) b.tunings.push_back({"", own});
  return b;
}

// Returns a random matrix as it is bound, and fills its view.
std::vector<std::byte> Weights(Type type, Shape shape, bool packed, TensorView* view) {
  quant::Random random(1);
  std::vector<std::byte> plain = quant::RandomWeights(type, shape.k * shape.n, false, &random);
  view->type = type;
  view->dims = {shape.k, shape.n, 1, 1};
  view->strides[1] = static_cast<int64_t>(plain.size()) / shape.n;
  if (!packed) return plain;
  uint64_t row_bytes = 0;
  PackedRowBytes(type, shape.k, &row_bytes);
  std::vector<std::byte> bytes(row_bytes * static_cast<uint64_t>(shape.n));
  for (int64_t r = 0; r < shape.n; ++r) {
    PackRow(type, shape.k, plain.data() + r * view->strides[1],
            bytes.data() + row_bytes * static_cast<uint64_t>(r));
  }
  view->strides[1] = static_cast<int64_t>(row_bytes);
  return bytes;
}

TensorView Floats(int64_t inner, int64_t rows) {
  TensorView view;
  view.dims = {inner, rows, 1, 1};
  view.strides[1] = 4 * inner;
  return view;
}

absl::StatusOr<Allocation> Place(Bench& b, std::span<const std::byte> bytes) {
  auto allocation = b.memory->Allocate(bytes.size(), MemoryUse::kDevice);
  if (!allocation.ok()) return allocation.status();
  const absl::Status status = b.transfer->Write(*allocation, 0, bytes.data(), bytes.size());
  if (!status.ok()) return status;
  return allocation;
}

absl::Status PlaceMatrix(Bench& b, Type type, Shape shape, bool packed) {
  const std::string name =
      absl::StrCat(quant::Traits(type).name, packed ? " packed " : " ", shape.name);
  if (b.matrix.name == name) return absl::OkStatus();
  b.matrix = {};
  const std::vector<std::byte> weights = Weights(type, shape, packed, &b.matrix.view);
  b.matrix.bytes = weights.size();
  const uint64_t copies = std::max<uint64_t>(1, b.copies_bytes / weights.size());
  for (uint64_t i = 0; i < copies; ++i) {
    auto copy = Place(b, weights);
    if (!copy.ok()) return copy.status();
    b.matrix.copies.push_back(*std::move(copy));
  }
  b.matrix.name = name;
  return absl::OkStatus();
}

// One product over several copies of its weights.
struct Work {
  size_t copies = 0;
  Allocation x, y, scratch;
  std::unique_ptr<Recording> multiply;
};

absl::Status Record(Recorder& recorder, const KernelRun& run,
                    const std::vector<BufferRange>& operands, const BufferRange& scratch,
                    uint64_t operations) {
  Dispatch dispatch;
  dispatch.shader = run.shader;
  dispatch.constants = run.constants;
  dispatch.push = std::as_bytes(std::span(run.push));
  dispatch.subgroup_size = run.subgroup_size;
  dispatch.groups = run.groups;
  dispatch.operations = operations;
  for (size_t i = 0; i < run.operands.size(); ++i) {
    const uint32_t operand = run.operands[i];
    const BufferRange& range = operand == kScratchOperand ? scratch : operands.at(operand);
    const bool writes = (run.shader->writes >> i & 1) != 0;
    dispatch.buffers.push_back({range, writes ? Access::kWrite : Access::kRead});
  }
  return recorder.Add(dispatch);
}

absl::Status RunOnce(Bench& b, const Recording& recording) {
  const auto point = b.queue->Submit(recording);
  if (!point.ok()) return point.status();
  return b.queue->Wait(*point, kTimeoutNs);
}

absl::Status Prepare(Bench& b, Type type, Shape shape, bool packed, int64_t columns,
                     const ProductTuning& tuning, Work* work) {
  absl::Status status = PlaceMatrix(b, type, shape, packed);
  if (!status.ok()) return status;
  Product p;
  p.w = b.matrix.view;
  p.packed = packed;
  p.x = Floats(shape.k, columns);
  p.y = Floats(shape.n, columns);
  work->copies = columns > 8 ? 1 : b.matrix.copies.size();
  quant::Random random(2);
  std::vector<float> x(static_cast<size_t>(shape.k * columns));
  for (float& value : x) value = random.Uniform();
  auto x_at = Place(b, std::as_bytes(std::span(x)));
  auto y_at = b.memory->Allocate(static_cast<uint64_t>(4 * shape.n * columns), MemoryUse::kDevice);
  auto scratch =
      b.memory->Allocate(std::max<uint64_t>(16, ScratchBytes(p, tuning)), MemoryUse::kDevice);
  if (!x_at.ok() || !y_at.ok() || !scratch.ok()) return absl::ResourceExhaustedError("no memory");
  work->x = *std::move(x_at);
  work->y = *std::move(y_at);
  work->scratch = *std::move(scratch);

  const BufferRange& spare = work->scratch.range();
  if (quant::IsQuantized(type)) {
    Recorder recorder(*b.device, *b.pipelines, b.tuning);
    status = Record(recorder, QuantizeRun(p), {spare, work->x.range()}, spare, 0);
    if (!status.ok()) return status;
    auto recording = recorder.Finish();
    if (!recording.ok()) return recording.status();
    status = RunOnce(b, **recording);
    if (!status.ok()) return status;
  }
  const KernelRun run = ProductRun(p, tuning);
  Recorder recorder(*b.device, *b.pipelines, b.tuning, {true});
  for (size_t i = 0; i < work->copies; ++i) {
    const BufferRange& w = b.matrix.copies[i].range();
    status = Record(recorder, run, {w, work->x.range(), w, work->y.range()}, spare,
                    static_cast<uint64_t>(2 * shape.k * shape.n * columns));
    if (!status.ok()) return status;
  }
  auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  work->multiply = *std::move(recording);
  return RunOnce(b, *work->multiply);  // for drivers that compile on the first run
}

absl::Status Measure(benchmark::State& state, Bench& b, const Recording& recording) {
  for (auto _ : state) {
    absl::Status status = RunOnce(b, recording);
    if (!status.ok()) return status;
    const auto times = recording.Times();
    if (!times.ok()) return times.status();
    double ns = 0;
    for (const StepTime& step : *times) ns += step.ns;
    state.SetIterationTime(ns * 1e-9);
  }
  return absl::OkStatus();
}

void RunProduct(benchmark::State& state, Bench& b, Type type, Shape shape, bool packed,
                int64_t columns, const ProductTuning& tuning) {
  Work work;
  absl::Status status = Prepare(b, type, shape, packed, columns, tuning, &work);
  if (status.ok()) status = Measure(state, b, *work.multiply);
  if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  const int64_t products = state.iterations() * static_cast<int64_t>(work.copies);
  state.SetBytesProcessed(products * static_cast<int64_t>(b.matrix.bytes));
  state.SetItemsProcessed(products * shape.k * shape.n * columns);
}

absl::Status Copy(benchmark::State& state, Bench& b) {
  auto from = b.memory->Allocate(b.copies_bytes, MemoryUse::kDevice);
  auto to = b.memory->Allocate(b.copies_bytes, MemoryUse::kDevice);
  if (!from.ok()) return from.status();
  if (!to.ok()) return to.status();
  Recorder recorder(*b.device, *b.pipelines, b.tuning, {true});
  absl::Status status = recorder.Copy(from->range(), to->range());
  if (!status.ok()) return status;
  auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  status = Measure(state, b, **recording);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * b.copies_bytes));
  return status;
}

void RegisterTimed(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->Unit(benchmark::kMicrosecond)
      ->UseManualTime()
      ->MeasureProcessCPUTime();
}

// Names: {decode,few,prefill}/[packed/]TYPE/SHAPE[/dot][/TUNING].
void RegisterProducts(Bench& b, Type type, const Shape& shape, bool packed) {
  for (const auto& [work, columns] :
       {std::pair("decode", 1), std::pair("few", 8), std::pair("prefill", 512)}) {
    for (const bool int_dot : {false, true}) {
      if (int_dot && (!quant::IsQuantized(type) || !b.device->caps().int_dot)) continue;
      for (const NamedTuning& named : b.tunings) {
        ProductTuning tuning = named.tuning;
        tuning.int_dot = int_dot;
        const std::string name = absl::StrCat(
            work, "/", packed ? "packed/" : "", quant::Traits(type).name, "/", shape.name,
            int_dot ? "/dot" : "", named.name.empty() ? "" : "/", named.name);
        RegisterTimed(name, [=, &b, columns = columns](benchmark::State& state) {
          RunProduct(state, b, type, shape, packed, columns, tuning);
        });
      }
    }
  }
}

void Register(Bench& b) {
  RegisterTimed("copy", [&b](benchmark::State& state) {
    const absl::Status status = Copy(state, b);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  });
  for (const Shape& shape : kShapes) {
    for (const Type type : quant::kWeightTypes) {
      if (shape.k % quant::Traits(type).block_values != 0) continue;
      RegisterProducts(b, type, shape, false);
      if (HasPackedLayout(type)) RegisterProducts(b, type, shape, true);
    }
  }
}

// Removes this program's own options from the command line; the rest are the benchmark library's.
bool TakeOptions(int* argc, char** argv, Options* options) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string argument = argv[i];
    uint64_t megabytes = 0;
    if (argument.rfind("--device=", 0) == 0) {
      if (!absl::SimpleAtoi(argument.substr(9), &options->device)) return false;
    } else if (argument.rfind("--copies_mb=", 0) == 0) {
      if (!absl::SimpleAtoi(argument.substr(12), &megabytes)) return false;
      options->copies_bytes = megabytes << 20;
    } else if (argument.rfind("--tuning=", 0) == 0) {
      options->tunings.push_back(argument.substr(9));
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  if (!TakeOptions(&argc, argv, &options)) {
    std::fprintf(stderr, "trine-vulkan-bench: a number is needed\n");
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  absl::StatusOr<Bench> bench = Open(options);
  if (!bench.ok()) {
    std::fprintf(stderr, "trine-vulkan-bench: %s\n", bench.status().ToString().c_str());
    return 1;
  }
  std::printf("%s, %s\n", bench->device->caps().name.c_str(), bench->device->caps().driver.c_str());
  Register(*bench);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace trine::vulkan

int main(int argc, char** argv) { return trine::vulkan::Main(argc, argv); }
