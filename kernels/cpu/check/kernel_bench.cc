// trine-kernel-bench: measures the matrix kernels of each level on this processor, with one thread.
// "bytes_per_second" counts the weights' bytes (decode, one column), "items_per_second"
// multiply-adds (few, 4 columns; batch, 16; prefill, 512). The reference is measured too, with
// fewer rows where it would take too long: rates compare.
//
//   trine-kernel-bench --benchmark_filter='decode/.*/q4_k'

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/levels/host_features.h"
#include "kernels/cpu/levels/levels.h"
#include "kernels/quant/test_util.h"

namespace trine::cpu_kernels {
namespace {

using quant::Type;

struct Shape {
  const char* name;
  int64_t k, n;
};

// A large model's square, the widest of a model of half a billion, and those of the shipped model.
constexpr Shape kShapes[] = {{"4096x4096", 4096, 4096},
                             {"896x4864", 896, 4864},
                             {"256x768", 256, 768},
                             {"768x256", 768, 256}};
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

// Returns the same weights packed, in `bytes`.
View Packed(const KernelTable& table, const View& plain, std::vector<std::byte>* bytes) {
  const PackedShape shape = table.packed_shape(plain.type, plain.dims[0]);
  const int64_t groups = plain.dims[1] / shape.group_rows;
  bytes->resize(static_cast<size_t>(groups * shape.group_bytes + kPackedAlignment));
  View view = plain;
  view.packed = true;
  view.data = bytes->data() + (-reinterpret_cast<uintptr_t>(bytes->data()) & 63);
  view.strides[1] = shape.group_bytes;
  for (int64_t g = 0; g < groups; ++g) {
    const PlainRows rows = {plain.type, plain.dims[0],
                            plain.data + g * shape.group_rows * plain.strides[1], plain.strides[1],
                            shape.group_rows};
    table.pack(rows, view.data + g * shape.group_bytes);
  }
  return view;
}

void RunMatmul(benchmark::State& state, const KernelTable& table, Type type, Shape shape,
               int64_t columns, bool packed, Way way) {
  static const Caches caches = HostCaches();
  quant::Random random(1);
  std::vector<std::byte> w_bytes, x_bytes, y_bytes;
  View w = MakeView(type, shape.k, shape.n, &w_bytes);
  w_bytes = quant::RandomWeights(type, shape.k * shape.n, false, &random);
  w.data = w_bytes.data();
  std::vector<std::byte> packed_bytes;
  if (packed) w = Packed(table, w, &packed_bytes);
  const View x = MakeView(Type::kF32, shape.k, columns, &x_bytes);
  const View y = MakeView(Type::kF32, shape.n, columns, &y_bytes);
  for (size_t i = 0; i < x_bytes.size() / sizeof(float); ++i) {
    reinterpret_cast<float*>(x_bytes.data())[i] = random.Uniform();
  }
  std::vector<ActivationChunk> chunks(static_cast<size_t>(ActivationChunksOf(columns, shape.k)));
  for (auto _ : state) {
    const bool quantized = quant::IsQuantized(type);
    if (quantized) {
      table.quantize_activations(x, ActivationReader::kMatmul, chunks.data(),
                                 {0, columns * ActivationChunks(shape.k)});
    }
    table.matmul(w, x, quantized ? chunks.data() : nullptr, nullptr, y, {0, shape.n},
                 {caches, way});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(w_bytes.size()));
  state.SetItemsProcessed(state.iterations() * shape.k * shape.n * columns);
}

void RunPack(benchmark::State& state, const KernelTable& table, Type type, Shape shape) {
  quant::Random random(1);
  std::vector<std::byte> plain_bytes, packed_bytes;
  View plain = MakeView(type, shape.k, shape.n, &plain_bytes);
  plain_bytes = quant::RandomWeights(type, shape.k * shape.n, false, &random);
  plain.data = plain_bytes.data();
  for (auto _ : state) benchmark::DoNotOptimize(Packed(table, plain, &packed_bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(plain_bytes.size()));
}

// Registers KIND/LEVEL/TYPE/SHAPE for every kind, with "packed/" in front of the type for packed
// weights, and "/direct" or "/tiles" after the shape if a product can go both ways. Without these
// it goes the usual way.
void Register(const Level& level) {
  const bool is_reference = level.table == &kReferenceLevel;
  for (const Shape& shape : kShapes) {
    for (const Type type : kTypes) {
      const std::string of = std::string("/") + level.name + "/";
      const std::string what = std::string(quant::Traits(type).name) + "/" + shape.name;
      const bool packs = level.table->packed_shape(type, shape.k).group_rows != 0;
      const auto add = [](const std::string& name, auto run) {
        benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
      };
      constexpr struct {
        const char* name;
        int64_t columns;
      } kKinds[] = {{"decode", 1}, {"few", 4}, {"batch", 16}, {"prefill", 512}};
      for (const auto& kind : kKinds) {
        Shape sized = shape;
        if (is_reference && kind.columns > 1) sized.n = 16;
        for (const bool packed : {false, true}) {
          if (packed && !packs) continue;
          const std::string name = kind.name + of + (packed ? "packed/" : "") + what;
          const auto add_way = [&](const char* suffix, Way way) {
            add(name + suffix, [=, &level, columns = kind.columns](benchmark::State& state) {
              RunMatmul(state, *level.table, type, sized, columns, packed, way);
            });
          };
          add_way("", Way::kUsual);
          View w;
          w.type = type;
          w.packed = packed;
          w.dims[0] = shape.k;
          if (!level.table->matmul_has_ways(w, kind.columns)) continue;
          add_way("/direct", Way::kDirect);
          add_way("/tiles", Way::kTiles);
        }
      }
      if (packs) {
        add("pack" + of + what,
            [=, &level](benchmark::State& state) { RunPack(state, *level.table, type, shape); });
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
