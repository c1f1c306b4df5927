// Measures what encoding a weight costs, for every type, on one thread.
//
//   trine-encode-bench [--benchmark_filter=q4_k]
#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/encode.h"

namespace trine::quant {
namespace {

// Makes weights of about normal distribution.
std::vector<float> MakeWeights(size_t count) {
  std::vector<float> weights(count);
  uint32_t state = 1;
  for (float& weight : weights) {
    weight = 0.0f;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525u + 1013904223u;
      weight += static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) * 0x1p-23f;
    }
    weight *= 0.01f;
  }
  return weights;
}

void EncodeOne(benchmark::State& state, Type type) {
  constexpr int64_t kValues = 1 << 16;
  const std::vector<float> weights = MakeWeights(kValues);
  uint64_t bytes = 0;
  RowBytes(type, kValues, &bytes);
  std::vector<std::byte> out(bytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(EncodeRow(type, weights.data(), kValues, nullptr, out.data()));
  }
  state.counters["weights"] = benchmark::Counter(static_cast<double>(state.iterations() * kValues),
                                                 benchmark::Counter::kIsRate);
  state.counters["s/weight"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kValues),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace trine::quant

int main(int argc, char** argv) {
  for (const trine::quant::Type type : trine::quant::kAllTypes) {
    if (!trine::quant::CanEncode(type)) continue;
    benchmark::RegisterBenchmark(trine::quant::Traits(type).name, trine::quant::EncodeOne, type);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
