// Measures the products of gemv.h on the device at hand: microseconds and GB/s of weights read.
//
// Launches go over copies of the weights that together are larger than the device's caches, in one
// graph. On the emulator it measures nothing, and shows only that everything runs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gpu/runtime.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {
namespace {

constexpr char kHelp[] =
    "trine-hip-bench [OPTION]...\n"
    "Times products of few columns on the first GPU.\n"
    "  --types LIST     names of weight types, with commas: q8_0,q4_0 (default: all)\n"
    "  --shapes LIST    rows x values of the weights: 4096x14336,2048x2048\n"
    "  --columns LIST   1,2,4,8\n"
    "  --plain          weights in the file's form, where they would be packed\n"
    "  --sms N          what launches are shaped for, in place of the device's number\n"
    "  --bytes N        memory that the copies of the weights fill (default: 4 times the L2)\n";

struct Options {
  std::vector<std::string> types;
  std::vector<std::pair<int64_t, int64_t>> shapes = {{4096, 4096}, {4096, 14336}, {14336, 4096},
                                                     {2048, 2048}, {8192, 2048},  {2048, 8192}};
  std::vector<int64_t> columns = {1, 2, 4, 8};
  bool plain = false;
  int sms = 0;
  uint64_t bytes = 0;
};

void Must(gpuError error, const char* what) {
  if (error == gpuSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, gpuGetErrorString(error));
  std::exit(2);
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--plain") {
      options->plain = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (name == "--types") {
      options->types = Split(value);
    } else if (name == "--columns") {
      options->columns.clear();
      for (const std::string& m : Split(value)) options->columns.push_back(std::atoll(m.c_str()));
    } else if (name == "--shapes") {
      options->shapes.clear();
      for (const std::string& shape : Split(value)) {
        const size_t x = shape.find('x');
        if (x == std::string::npos) return false;
        options->shapes.emplace_back(std::atoll(shape.c_str()), std::atoll(shape.c_str() + x + 1));
      }
    } else if (name == "--sms") {
      options->sms = std::atoi(value.c_str());
    } else if (name == "--bytes") {
      options->bytes = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      return false;
    }
  }
  return true;
}

class Memory {
 public:
  explicit Memory(uint64_t bytes) { Must(gpuMalloc(&data_, bytes), "device memory"); }
  ~Memory() { (void)gpuFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

// Returns the best time of one of `launches`, in microseconds.
double Time(const std::vector<Launch>& launches, gpuStream stream) {
  gpuGraph graph = nullptr;
  gpuGraphExec exec = nullptr;
  Must(gpuStreamBeginCapture(stream), "capture");
  const bool early = gpuCanStartEarly(launches.front().kernel);
  for (size_t i = 0; i < launches.size(); ++i) {
    Must(gpuStart(launches[i], stream, early && i > 0), "start");
  }
  Must(gpuStreamEndCapture(stream, &graph), "capture");
  Must(gpuGraphInstantiate(&exec, graph), "graph");
  gpuEvent from = nullptr, to = nullptr;
  Must(gpuEventCreate(&from), "event");
  Must(gpuEventCreate(&to), "event");
  float best = 1e30f;
  for (int i = 0; i < 7; ++i) {
    Must(gpuEventRecord(from, stream), "event");
    Must(gpuGraphLaunch(exec, stream), "graph");
    Must(gpuEventRecord(to, stream), "event");
    Must(gpuEventSynchronize(to), "run");
    float ms = 0.0f;
    Must(gpuEventElapsedTime(&ms, from, to), "time");
    if (i > 0) best = std::min(best, ms);  // the first time warms up
  }
  (void)gpuEventDestroy(from);
  (void)gpuEventDestroy(to);
  (void)gpuGraphExecDestroy(exec);
  (void)gpuGraphDestroy(graph);
  return 1e3 * static_cast<double>(best) / static_cast<double>(launches.size());
}

// Returns the GB/s read and written by copies of a quarter of `bytes` each.
double CopyRate(uint64_t bytes, gpuStream stream) {
  const uint64_t part = std::max<uint64_t>(bytes / 4, 1 << 20);
  const Memory memory(4 * part);
  gpuEvent from = nullptr, to = nullptr;
  Must(gpuEventCreate(&from), "event");
  Must(gpuEventCreate(&to), "event");
  double best = 0.0;
  for (int i = 0; i < 6; ++i) {
    Must(gpuEventRecord(from, stream), "event");
    for (uint64_t j = 0; j < 2; ++j) {
      Must(gpuMemcpyAsync(memory.data() + (2 * j + 1) * part, memory.data() + 2 * j * part, part,
                          gpuMemcpyDeviceToDevice, stream),
           "copy");
    }
    Must(gpuEventRecord(to, stream), "event");
    Must(gpuEventSynchronize(to), "copy");
    float ms = 0.0f;
    Must(gpuEventElapsedTime(&ms, from, to), "time");
    if (ms > 0.0f) best = std::max(best, 4.0 * static_cast<double>(part) / 1e6 / ms);
  }
  (void)gpuEventDestroy(from);
  (void)gpuEventDestroy(to);
  return best;
}

// Returns bytes that are weights of any type: halves and bf16s, and so all scales, are of ordinary
// size.
std::vector<std::byte> SomeWeights(uint64_t bytes) {
  std::vector<std::byte> weights(bytes);
  uint64_t state = 1;
  for (uint64_t i = 0; i < bytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    weights[i] = static_cast<std::byte>((state >> 56) & 0x3f);
  }
  return weights;
}

struct Bench {
  const Options& options;
  DeviceShape shape;
  uint64_t bytes;  // bytes of weights that launches go over
  gpuStream stream = nullptr;

  void Run(quant::Type type, int64_t n, int64_t k) const {
    const bool packed = !options.plain && quant::HasPackedLayout(type);
    uint64_t row = 0;
    if (!(packed ? quant::PackedRowBytes(type, k, &row) : quant::RowBytes(type, k, &row))) return;
    const uint64_t matrix = (row * static_cast<uint64_t>(n) + 255) / 256 * 256;
    const uint64_t copies = std::clamp<uint64_t>(bytes / matrix, 2, 256);
    const Memory weights(copies * matrix);
    const std::vector<std::byte> some = SomeWeights(matrix);
    for (uint64_t i = 0; i < copies; ++i) {
      Must(gpuMemcpyAsync(weights.data() + i * matrix, some.data(), matrix, gpuMemcpyHostToDevice,
                          stream),
           "copy");
    }
    Must(gpuStreamSynchronize(stream), "copy");
    for (const int64_t m : options.columns) {
      const auto columns = static_cast<uint64_t>(m);
      const Memory x(static_cast<uint64_t>(k) * columns * 4);
      const Memory y(static_cast<uint64_t>(n) * columns * 4);
      const Memory q(QuantizedBytes((k + 31) / 32, m));
      const std::vector<float> values(static_cast<uint64_t>(k) * columns, 0.5f);
      Must(
          gpuMemcpyAsync(x.data(), values.data(), values.size() * 4, gpuMemcpyHostToDevice, stream),
          "copy");
      Product product;
      product.w.type = type;
      product.w.packed = packed;
      product.w.constant = true;
      product.w.dims = {k, n, 1, 1};
      const auto stride = static_cast<int64_t>(row);
      product.w.strides = {0, stride, stride * n, stride * n};
      product.x.data = x.data();
      product.x.dims = {k, m, 1, 1};
      product.x.strides = {4, 4 * k, 4 * k * m, 4 * k * m};
      product.y = product.x;
      product.y.data = y.data();
      product.y.dims = {n, m, 1, 1};
      product.y.strides = {4, 4 * n, 4 * n * m, 4 * n * m};
      if (quant::IsQuantized(type)) {
        product.q = QuantizedAt(q.data(), k / 32, m);
        Must(gpuStart(QuantizeLaunch(product.x, product.q), stream), "quantize");
      }
      Must(gpuStreamSynchronize(stream), "copy");
      std::vector<Launch> launches;
      for (uint64_t i = 0; i < copies; ++i) {
        product.w.data = weights.data() + i * matrix;
        if (const std::string why = WhyNotGemv(product); !why.empty()) {
          std::printf("%-8s %s\n", quant::Traits(type).name, why.c_str());
          return;
        }
        launches.push_back(GemvLaunch(product, shape));
      }
      const double us = Time(launches, stream);
      std::printf("%-8s %-7s %6lldx%-6lld %2lld columns %9.2f us %7.0f GB/s\n",
                  quant::Traits(type).name, packed ? "packed" : "file", static_cast<long long>(n),
                  static_cast<long long>(k), static_cast<long long>(m), us,
                  static_cast<double>(row * static_cast<uint64_t>(n)) / 1e3 / us);
    }
  }
};

int Main(int argc, char** argv) {
  Options options;
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (!Parse(argc, argv, &options)) {
    std::fputs(kHelp, stderr);
    return 1;
  }
  int devices = 0;
  if (gpuGetDeviceCount(&devices) != gpuSuccess || devices < 1) {
    std::fputs("no device\n", stderr);
    return 77;
  }
  char name[256] = "";
  int sms = 0, l2 = 0;
  Must(gpuSetDevice(0), "device");
  Must(gpuGetName(name, sizeof(name), 0), "name");
  Must(gpuGetAttribute(&sms, gpuAttribute::kMultiprocessors, 0), "attribute");
  Must(gpuGetAttribute(&l2, gpuAttribute::kL2Bytes, 0), "attribute");
  Bench bench{options, {}, options.bytes != 0 ? options.bytes : 4 * static_cast<uint64_t>(l2)};
  bench.shape.multiprocessors = static_cast<uint32_t>(options.sms > 0 ? options.sms : sms);
  Must(gpuStreamCreate(&bench.stream), "stream");
  std::printf("%s: %d multiprocessors, %d MiB of L2\n", name, sms, l2 >> 20);
  std::printf("copy     %.0f GB/s, read and written\n", CopyRate(bench.bytes, bench.stream));
  for (const quant::Type type : quant::kAllTypes) {
    const std::string type_name = quant::Traits(type).name;
    if (type == quant::Type::kI32 || type == quant::Type::kQ8_KV) continue;
    if (!options.types.empty() &&
        std::find(options.types.begin(), options.types.end(), type_name) == options.types.end()) {
      continue;
    }
    for (const auto& [n, k] : options.shapes) bench.Run(type, n, k);
  }
  Must(gpuStreamDestroy(bench.stream), "stream");
  return 0;
}

}  // namespace
}  // namespace trine::hip

int main(int argc, char** argv) { return trine::hip::Main(argc, argv); }
