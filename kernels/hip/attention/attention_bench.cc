// Measures how long attention takes on the device that this is built for: the medians of many runs,
// timed with events.
//
//   trine-hip-attention-bench [multiprocessors]
//
// K and V are f16, with 32 heads of q and 8 of the cache, as many models have them. Several caches
// are used in turn: otherwise a short context's KV cache would stay in the device's own cache
// between runs, which does not happen between tokens.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/hip/attention/attention.h"
#include "kernels/hip/gpu/runtime.h"

namespace trine::hip {
namespace {

constexpr int64_t kHeads = 32, kKvHeads = 8, kBlockPositions = 256;
constexpr int kRuns = 50;
constexpr int64_t kColdBytes = int64_t{256} << 20;

void Check(gpuError error, const char* what) {
  if (error == gpuSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, gpuGetErrorString(error));
  std::exit(1);
}

std::byte* Allocate(int64_t bytes) {
  void* p = nullptr;
  Check(gpuMalloc(&p, static_cast<size_t>(bytes)), "memory");
  return static_cast<std::byte*>(p);
}

template <class T>
std::byte* Upload(const std::vector<T>& values) {
  std::byte* p = Allocate(static_cast<int64_t>(values.size() * sizeof(T)));
  Check(gpuMemcpyAsync(p, values.data(), values.size() * sizeof(T), gpuMemcpyHostToDevice, nullptr),
        "copy");
  Check(gpuStreamSynchronize(nullptr), "copy");
  return p;
}

Tensor TensorOf(std::byte* data, quant::Type type, int64_t element, std::array<int64_t, 4> dims) {
  Tensor t;
  t.data = data;
  t.type = type;
  t.dims = dims;
  t.strides = {element, element * dims[0], element * dims[0] * dims[1],
               element * dims[0] * dims[1] * dims[2]};
  return t;
}

// Returns numbers of moderate size, without the cost of a generator.
std::vector<float> Floats(int64_t count) {
  std::vector<float> v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 7919 % 257) / 256.0f - 0.5f;
  return v;
}
std::vector<uint16_t> Halves(int64_t count) {
  std::vector<uint16_t> v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<uint16_t>(0x3000 + i * 7919 % 2048);
  return v;
}

// Returns a run's median time. Times `at_once` runs in a row, so that none waits for the host.
double MedianMicroseconds(const std::vector<std::vector<Launch>>& variants, int at_once) {
  gpuStream stream = nullptr;
  gpuEvent begin = nullptr, end = nullptr;
  Check(gpuStreamCreate(&stream), "stream");
  Check(gpuEventCreate(&begin), "event");
  Check(gpuEventCreate(&end), "event");
  std::vector<double> times;
  size_t next = 0;
  for (int run = 0; run < kRuns + 5; ++run) {
    Check(gpuEventRecord(begin, stream), "event");
    for (int i = 0; i < at_once; ++i) {
      for (const Launch& launch : variants[next++ % variants.size()]) {
        Check(gpuStart(launch, stream), "start");
      }
    }
    Check(gpuEventRecord(end, stream), "event");
    Check(gpuStreamSynchronize(stream), "run");
    float ms = 0;
    Check(gpuEventElapsedTime(&ms, begin, end), "time");
    if (run >= 5) times.push_back(ms * 1e3 / at_once);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  (void)gpuEventDestroy(begin);
  (void)gpuEventDestroy(end);
  (void)gpuStreamDestroy(stream);
  return times[kRuns / 2];
}

void Measure(int64_t width, int64_t tokens, int64_t length, const DeviceShape& device) {
  const int64_t blocks = (length + kBlockPositions - 1) / kBlockPositions;
  const int64_t cache_elements = width * kBlockPositions * kKvHeads * blocks;
  const int64_t copies = std::clamp<int64_t>(kColdBytes / (4 * cache_elements), 1, 8);
  std::vector<std::byte*> memory;
  const auto keep = [&](std::byte* p) { return memory.emplace_back(p); };

  AttentionTensors t;
  const int64_t q_elements = width * kHeads * tokens;
  t.q =
      TensorOf(keep(Upload(Floats(q_elements))), quant::Type::kF32, 4, {width, kHeads, tokens, 1});
  t.y = TensorOf(keep(Allocate(4 * q_elements)), quant::Type::kF32, 4, {width, kHeads, tokens, 1});
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(table.size() - 1 - i);
  t.block_table = TensorOf(keep(Upload(table)), quant::Type::kI32, 4, {blocks, 1, 1, 1});
  const std::vector<int32_t> offsets = {0, static_cast<int32_t>(tokens)};
  t.q_offsets = TensorOf(keep(Upload(offsets)), quant::Type::kI32, 4, {2, 1, 1, 1});
  const std::vector<int32_t> lengths = {static_cast<int32_t>(length)};
  t.kv_lengths = TensorOf(keep(Upload(lengths)), quant::Type::kI32, 4, {1, 1, 1, 1});

  reference::AttentionParams params;
  params.scale = 0.125f;
  const std::vector<uint16_t> halves = Halves(cache_elements);
  const std::array<int64_t, 4> dims = {width, kBlockPositions, kKvHeads, blocks};
  const int64_t positions = blocks * kBlockPositions;
  std::vector<std::vector<Launch>> variants(static_cast<size_t>(copies));
  for (std::vector<Launch>& launches : variants) {
    t.k = TensorOf(keep(Upload(halves)), quant::Type::kF16, 2, dims);
    t.v = TensorOf(keep(Upload(halves)), quant::Type::kF16, 2, dims);
    const auto scratch = static_cast<int64_t>(AttentionScratchBytes(t, positions, device));
    AddAttention(t, params, positions, keep(Allocate(scratch + 16)), {}, nullptr, device,
                 &launches);
  }
  const double us = MedianMicroseconds(variants, tokens == 1 ? 20 : 1);
  // The bytes of the cache that must be read, and the multiplications and additions that it takes.
  const double bytes = 4.0 * static_cast<double>(width * kKvHeads * length);
  const double seen = static_cast<double>(tokens) * static_cast<double>(length) -
                      static_cast<double>(tokens) * static_cast<double>(tokens - 1) / 2;
  const double operations = seen * static_cast<double>(kHeads * width) * 4;
  std::printf("%5lld %7lld %9lld %9zu %11.1f %9.0f %9.2f\n", static_cast<long long>(width),
              static_cast<long long>(tokens), static_cast<long long>(length), variants[0].size(),
              us, bytes / us * 1e-3, operations / us * 1e-6);
  for (std::byte* p : memory) (void)gpuFree(p);
}

int Main(int argc, char** argv) {
  int devices = 0;
  if (gpuGetDeviceCount(&devices) != gpuSuccess || devices < 1) {
    std::fprintf(stderr, "no device\n");
    return 77;
  }
  int multiprocessors = argc > 1 ? std::atoi(argv[1]) : 0;
  if (multiprocessors < 1) {
    Check(gpuGetAttribute(&multiprocessors, gpuAttribute::kMultiprocessors, 0), "device");
  }
  DeviceShape device;
  device.multiprocessors = static_cast<uint32_t>(multiprocessors);
  std::printf("width  tokens positions  launches          us      GB/s     Top/s\n");
  for (const int64_t width : {64, 128}) {
    for (const int64_t length : {128, 1024, 4096, 16384}) Measure(width, 1, length, device);
    for (const int64_t tokens : {512, 2048}) Measure(width, tokens, tokens, device);
    Measure(width, 16, 4096, device);
  }
  return 0;
}

}  // namespace
}  // namespace trine::hip

int main(int argc, char** argv) { return trine::hip::Main(argc, argv); }
