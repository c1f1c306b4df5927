// Measures the speed of products with many columns on the device that this is built for.
//
//   trine-hip-gemm-bench [TYPE] [dot4|mma] [every]
//
// Prints, for every type (f16, q4_0, ..; with + after it: packed), rows, values of a row, columns
// and experts, the time of a product in microseconds, its 10^12 multiply-adds per second, and the
// tile of the kernel. With `every`, products of packed weights are also computed by the kernels
// that would not be chosen.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/hip/gemm/gemm.h"
#include "kernels/hip/gemm/gemm_choice.h"
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

struct Size {
  int64_t n, k, m;
  int64_t experts = 0;  // of which each of the m columns has chosen one, at random
};

class Bench {
 public:
  static constexpr int64_t kMost = 14336, kColumns = 4096;

  // Prepares for several matrices in turn: as in a model, none is in a cache from its last use.
  bool Prepare() {
    weights_bytes_ = uint64_t{1} << 30;
    weights_ = Fill(weights_bytes_);
    x_ = Fill(kMost * kColumns * 4);
    quantized_ = Fill(QuantizedBytes(kMost / 32, kColumns));
    y_ = Fill(kMost * kColumns * 4);
    scratch_ = Fill(uint64_t{1} << 20);
    return weights_ != nullptr && x_ != nullptr && quantized_ != nullptr && y_ != nullptr &&
           scratch_ != nullptr && Check(gpuEventCreate(&begin_), "event") &&
           Check(gpuEventCreate(&end_), "event");
  }

  // Measures the kernel that is chosen, and with `every` the others.
  bool Run(const Form& form, const Size& size, const DeviceShape& shape, bool every) {
    uint64_t row_bytes = 0;
    if (form.packed ? !quant::PackedRowBytes(form.type, size.k, &row_bytes)
                    : !quant::RowBytes(form.type, size.k, &row_bytes)) {
      return true;
    }
    const int64_t experts = std::max<int64_t>(1, size.experts);
    const uint64_t bytes = row_bytes * static_cast<uint64_t>(size.n * experts);
    if (bytes > weights_bytes_ || !ChooseExperts(size)) return false;
    std::vector<Product> products;
    for (uint64_t at = 0; at + bytes <= weights_bytes_ && products.size() < 16; at += bytes) {
      Product& product = products.emplace_back();
      product.w = Matrix(weights_ + at / 16 * 16, size.k, size.n, static_cast<int64_t>(row_bytes));
      product.w.dims[2] = experts;
      product.w.type = form.type;
      product.w.packed = form.packed;
      product.x = Matrix(x_, size.k, size.m, size.k * 4);
      product.y = Matrix(y_, size.n, size.m, size.n * 4);
      if (size.experts > 0) product.ids = Matrix(ids_, size.m, 1, size.m * 4);
      product.q = QuantizedAt(quantized_, size.k / 32, size.m);
    }
    const TiledGemm chosen = ChooseGemm(products.front(), shape);
    if (!Measure(form, size, products, chosen, "")) return false;
    if (!every || !form.packed || !quant::IsQuantized(form.type)) return true;
    std::vector<TiledGemm> kernels;
    for (const bool large : {false, true}) {
      kernels.push_back(
          {PackedGemm(form.type, shape.unit, large), large ? kLargeTile : kSmallTile});
    }
    for (const TiledGemms& more : {ByClassGemm(form.type), ByWarpGemm(form.type)}) {
      kernels.insert(kernels.end(), more.begin(), more.end());
    }
    for (const TiledGemm& kernel : kernels) {
      if (kernel.kernel == nullptr || kernel.kernel == chosen.kernel) continue;
      if (!Measure(form, size, products, kernel, "  not chosen")) return false;
    }
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

  bool ChooseExperts(const Size& size) {
    if (size.experts == 0) return true;
    std::vector<int32_t> ids(static_cast<size_t>(size.m));
    uint32_t state = 7;
    for (int32_t& id : ids) {
      state = state * 1664525u + 1013904223u;
      id = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(size.experts));
    }
    if (ids_ == nullptr) ids_ = Fill(kColumns * 4);
    return ids_ != nullptr &&
           Check(gpuMemcpyAsync(ids_, ids.data(), ids.size() * 4, gpuMemcpyHostToDevice, nullptr),
                 "copy") &&
           Check(gpuStreamSynchronize(nullptr), "copy");
  }

  bool Measure(const Form& form, const Size& size, const std::vector<Product>& products,
               const TiledGemm& kernel, const char* note) {
    std::vector<Launch> launches;
    for (const Product& product : products) AddGemmBy(kernel, product, scratch_, &launches);
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
        1000.0 * static_cast<double>(ms) / kRounds / static_cast<double>(products.size());
    const double work =
        static_cast<double>(size.k) * static_cast<double>(size.n) * static_cast<double>(size.m);
    std::printf("%-8s %6lld %6lld %5lld %4lld %10.1f us %7.1f  %ux%u%s\n", NameOf(form).c_str(),
                static_cast<long long>(size.n), static_cast<long long>(size.k),
                static_cast<long long>(size.m), static_cast<long long>(size.experts), us,
                work / us * 1e-6, kernel.tile.rows, kernel.tile.columns, note);
    return true;
  }

  std::byte *weights_ = nullptr, *x_ = nullptr, *quantized_ = nullptr, *y_ = nullptr;
  std::byte *scratch_ = nullptr, *ids_ = nullptr;
  uint64_t weights_bytes_ = 0;
  gpuEvent begin_{}, end_{};
};

int Main(int argc, char** argv) {
  DeviceShape shape;
#if defined(TRINE_GPU_NVIDIA)
  shape.unit = MatrixUnit::kMma;
#endif
  std::string only;
  bool every = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "dot4") {
      shape.unit = MatrixUnit::kDot4;
    } else if (word == "mma") {
      shape.unit = MatrixUnit::kMma;
    } else if (word == "every") {
      every = true;
    } else {
      only = word;
    }
  }
  int processors = 0, shared = 0;
  if (!Check(gpuSetDevice(0), "device") ||
      !Check(gpuGetAttribute(&processors, gpuAttribute::kMultiprocessors, 0), "device") ||
      !Check(gpuGetAttribute(&shared, gpuAttribute::kAskedSharedBytes, 0), "device")) {
    return 2;
  }
  shape.multiprocessors = static_cast<uint32_t>(processors);
  shape.asked_shared_bytes = static_cast<uint32_t>(shared);
  Bench bench;
  if (!bench.Prepare()) return 2;
  for (const quant::Type type : quant::kAllTypes) {
    for (const bool packed : {false, true}) {
      const Form form{type, packed};
      if (type == quant::Type::kI32 || (packed && !quant::HasPackedLayout(type))) continue;
      if (!only.empty() && NameOf(form) != only) continue;
      // The last four are those of a layer of Qwen3 30B A3B, for prompts of 512 and 128 tokens.
      const Size sizes[] = {{4096, 4096, 16},       {4096, 4096, 64},       {4096, 4096, 512},
                            {14336, 4096, 512},     {4096, 14336, 512},     {4096, 4096, 2048},
                            {14336, 4096, 2048},    {768, 2048, 4096, 128}, {2048, 768, 4096, 128},
                            {768, 2048, 1024, 128}, {2048, 768, 1024, 128}};
      for (const Size& size : sizes) {
        if (!bench.Run(form, size, shape, every)) return 2;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace trine::hip

int main(int argc, char** argv) { return trine::hip::Main(argc, argv); }
