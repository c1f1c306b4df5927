// Measures the speed of products with many columns on the device that this is built for.
//
//   trine-hip-gemm-bench [TYPE] [dot4|mma]
//
// Prints, for every type (f16, q4_0, ..; with + after it: packed), rows, values of a row and
// columns, the time of a product in microseconds, and its 10^12 multiply-adds per second.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/hip/gemm/gemm.h"
#include "kernels/hip/gpu/runtime.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {
namespace {

bool Check(gpuError error, const char* what) {
  if (error == gpuSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, gpuGetErrorString(error));
  return false;
}

// Returns device memory filled with small numbers, or null. It is never freed.
std::byte* Fill(uint64_t bytes) {
  void* p = nullptr;
  if (!Check(gpuMalloc(&p, bytes), "allocation")) return nullptr;
  std::vector<unsigned char> host(bytes);
  uint32_t state = 1;
  for (unsigned char& byte : host) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24 & 0x3fu);
  }
  if (!Check(gpuMemcpyAsync(p, host.data(), bytes, gpuMemcpyHostToDevice, nullptr), "copy") ||
      !Check(gpuStreamSynchronize(nullptr), "copy")) {
    return nullptr;
  }
  return static_cast<std::byte*>(p);
}

struct Form {
  quant::Type type;
  bool packed;
};

std::string NameOf(const Form& form) {
  return std::string(quant::Traits(form.type).name) + (form.packed ? "+" : "");
}

class Bench {
 public:
  static constexpr int64_t kMost = 14336, kColumns = 2048;

  // Prepares for several matrices in turn: as in a model, none is in a cache from its last use.
  bool Prepare() {
    weights_bytes_ = uint64_t{1} << 30;
    weights_ = Fill(weights_bytes_);
    x_ = Fill(kMost * kColumns * 4);
    quantized_ = Fill(QuantizedBytes(kMost / 32, kColumns));
    y_ = Fill(kMost * kColumns * 4);
    return weights_ != nullptr && x_ != nullptr && quantized_ != nullptr && y_ != nullptr &&
           Check(gpuEventCreate(&begin_), "event") && Check(gpuEventCreate(&end_), "event");
  }

  bool Run(const Form& form, int64_t k, int64_t n, int64_t m, const DeviceShape& shape) {
    uint64_t row_bytes = 0;
    if (form.packed ? !quant::PackedRowBytes(form.type, k, &row_bytes)
                    : !quant::RowBytes(form.type, k, &row_bytes)) {
      return true;
    }
    const uint64_t bytes = row_bytes * static_cast<uint64_t>(n);
    std::vector<Launch> launches;
    for (uint64_t at = 0; at + bytes <= weights_bytes_ && launches.size() < 16; at += bytes) {
      Product product;
      product.w = Matrix(weights_ + at / 16 * 16, k, n, static_cast<int64_t>(row_bytes));
      product.w.type = form.type;
      product.w.packed = form.packed;
      product.x = Matrix(x_, k, m, k * 4);
      product.y = Matrix(y_, n, m, n * 4);
      product.q = QuantizedAt(quantized_, k / 32, m);
      AddGemm(product, shape, nullptr, &launches);
    }
    constexpr int kRounds = 4;
    float ms = 0.0f;
    for (int round = -1; round < kRounds; ++round) {
      if (round == 0 && !Check(gpuEventRecord(begin_, nullptr), "event")) return false;
      for (const Launch& launch : launches) {
        if (!Check(gpuStart(launch, nullptr), "start")) return false;
      }
    }
    if (!Check(gpuEventRecord(end_, nullptr), "event") ||
        !Check(gpuEventSynchronize(end_), "kernel") ||
        !Check(gpuEventElapsedTime(&ms, begin_, end_), "event")) {
      return false;
    }
    const double us =
        1000.0 * static_cast<double>(ms) / kRounds / static_cast<double>(launches.size());
    const double work = static_cast<double>(k) * static_cast<double>(n) * static_cast<double>(m);
    std::printf("%-8s %6lld %6lld %5lld %10.1f us %7.1f\n", NameOf(form).c_str(),
                static_cast<long long>(n), static_cast<long long>(k), static_cast<long long>(m), us,
                work / us * 1e-6);
    return true;
  }

 private:
  static Tensor Matrix(std::byte* data, int64_t k, int64_t rows, int64_t row_bytes) {
    Tensor t;
    t.data = data;
    t.dims = {k, rows, 1, 1};
    t.strides = {0, row_bytes, row_bytes * rows, row_bytes * rows};
    return t;
  }

  std::byte *weights_ = nullptr, *x_ = nullptr, *quantized_ = nullptr, *y_ = nullptr;
  uint64_t weights_bytes_ = 0;
  gpuEvent begin_{}, end_{};
};

int Main(int argc, char** argv) {
  DeviceShape shape;
#if defined(TRINE_GPU_NVIDIA)
  shape.unit = MatrixUnit::kMma;
#endif
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "dot4") == 0) {
      shape.unit = MatrixUnit::kDot4;
    } else if (std::strcmp(argv[i], "mma") == 0) {
      shape.unit = MatrixUnit::kMma;
    } else {
      only = argv[i];
    }
  }
  int processors = 0;
  if (!Check(gpuSetDevice(0), "device") ||
      !Check(gpuGetAttribute(&processors, gpuAttribute::kMultiprocessors, 0), "device")) {
    return 2;
  }
  shape.multiprocessors = static_cast<uint32_t>(processors);
  Bench bench;
  if (!bench.Prepare()) return 2;
  for (const quant::Type type : quant::kAllTypes) {
    for (const bool packed : {false, true}) {
      const Form form{type, packed};
      if (type == quant::Type::kI32 || (packed && !quant::HasPackedLayout(type))) continue;
      if (!only.empty() && NameOf(form) != only) continue;
      const struct {
        int64_t n, k, m;
      } sizes[] = {{4096, 4096, 16},   {4096, 4096, 64},   {4096, 4096, 512},
                   {14336, 4096, 512}, {4096, 14336, 512}, {4096, 4096, 2048}};
      for (const auto& size : sizes) {
        if (!bench.Run(form, size.k, size.n, size.m, shape)) return 2;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace trine::hip

int main(int argc, char** argv) { return trine::hip::Main(argc, argv); }
