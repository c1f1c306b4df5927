// trine-kernel-bench: what the matrix kernels of each level reach on this processor, one thread.
// "bytes_per_second" counts the weights' bytes (decode, one column), "items_per_second" multiply-
// adds (prefill, 512 columns). The reference stands beside them, with fewer rows where it would
// take too long: rates compare.
//
//   trine-kernel-bench --benchmark_filter='decode/.*/q4_k'

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/host_features.h"
#include "kernels/cpu/levels.h"
#include "kernels/quant/test_util.h"

namespace trine::cpu_kernels {
namespace {

using quant::Type;

struct Shape {
  const char* name;
  int64_t k, n;
};

// A large model's square, and what the shipped model has.
constexpr Shape kShapes[] = {
    {"4096x4096", 4096, 4096}, {"256x768", 256, 768}, {"768x256", 768, 256}};
constexpr Type kTypes[] = {Type::kF32,   Type::kF16,   Type::kBF16, Type::kQ4_0,   Type::kQ4_1,
                           Type::kQ5_0,  Type::kQ5_1,  Type::kQ8_0, Type::kQ2_K,   Type::kQ3_K,
                           Type::kQ4_K,  Type::kQ5_K,  Type::kQ6_K, Type::kIQ4_NL, Type::kIQ4_XS,
                           Type::kTQ1_0, Type::kTQ2_0, Type::kMXFP4};

View MakeView(Type type, int64_t inner, int64_t rows, std::vector<std::byte>* bytes) {
  uint64_t row_bytes = 0;
  quant::RowBytes(type, inner, &row_bytes);
  bytes->resize(row_bytes * static_cast<uint64_t>(rows));
  View view;
  view.type = type;
  view.data = bytes->data();
  view.dims[0] = inner;
  view.dims[1] = rows;
  view.strides[1] = static_cast<int64_t>(row_bytes);
  view.strides[2] = view.strides[1] * rows;
  view.strides[3] = view.strides[2];
  return view;
}

void RunMatmul(benchmark::State& state, const KernelTable& table, Type type, Shape shape,
               int64_t columns) {
  quant::Random random(1);
  std::vector<std::byte> w_bytes, x_bytes, y_bytes;
  View w = MakeView(type, shape.k, shape.n, &w_bytes);
  w_bytes = quant::RandomWeights(type, shape.k * shape.n, false, &random);
  w.data = w_bytes.data();
  const View x = MakeView(Type::kF32, shape.k, columns, &x_bytes);
  const View y = MakeView(Type::kF32, shape.n, columns, &y_bytes);
  for (size_t i = 0; i < x_bytes.size() / sizeof(float); ++i) {
    reinterpret_cast<float*>(x_bytes.data())[i] = random.Uniform();
  }
  std::vector<ActivationChunk> chunks(static_cast<size_t>(columns * ActivationChunks(shape.k)));
  for (auto _ : state) {
    const bool quantized = quant::IsQuantized(type);
    if (quantized) {
      table.quantize_activations(x, chunks.data(), {0, static_cast<int64_t>(chunks.size())});
    }
    table.matmul(w, x, quantized ? chunks.data() : nullptr, nullptr, y, {0, shape.n});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(w_bytes.size()));
  state.SetItemsProcessed(state.iterations() * shape.k * shape.n * columns);
}

void Register(const Level& level) {
  const bool is_reference = level.table == &kReferenceLevel;
  for (const Shape& shape : kShapes) {
    for (const Type type : kTypes) {
      for (const int64_t columns : {1, 512}) {
        Shape sized = shape;
        if (is_reference && columns > 1) sized.n = 16;
        const std::string name = std::string(columns == 1 ? "decode/" : "prefill/") + level.name +
                                 "/" + quant::Traits(type).name + "/" + shape.name;
        benchmark::RegisterBenchmark(name.c_str(), [=, &level](benchmark::State& state) {
          RunMatmul(state, *level.table, type, sized, columns);
        })->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace trine::cpu_kernels

int main(int argc, char** argv) {
  for (const auto& level : trine::cpu_kernels::Levels()) {
    if (trine::cpu_kernels::CanRun(level, trine::cpu_kernels::HostHas)) {
      trine::cpu_kernels::Register(level);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
