// trine-attention-bench: measures attention on this processor, per level, and what limits it:
// reading memory once ("read"), and multiplying and adding in registers ("mul_add").
//
// "bytes_per_second" counts the keys and values of a kv head once for all heads that share them,
// "items_per_second" multiply-adds. The caches of several layers take turns, as in a model;
// together they are larger than any processor's cache.
//
//   trine-attention-bench --benchmark_filter='decode/.*/32x8x64'

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/levels/host_features.h"
#include "kernels/cpu/levels/levels.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/test_tensor.h"

namespace trine::cpu_kernels {
namespace {

using quant::Type;
using reference::AttentionInputs;
using reference::Tensor;

constexpr int64_t kBlockPositions = 64;
constexpr int64_t kCacheBytes = 96 << 20;  // of all layers

struct Shape {
  int64_t heads, kv_heads, width;

  std::string Name() const {
    return std::to_string(heads) + "x" + std::to_string(kv_heads) + "x" + std::to_string(width);
  }
};
constexpr Shape kShapes[] = {{32, 8, 64}, {14, 2, 64}, {32, 8, 128}};

// One sequence whose last `tokens` positions attend, in enough layers to fill kCacheBytes.
class Problem {
 public:
  Problem(Shape shape, Type type, int64_t tokens, int64_t depth)
      : blocks_((depth + tokens + kBlockPositions - 1) / kBlockPositions),
        q_(Type::kF32, {shape.width, shape.heads, tokens}),
        dst_(Type::kF32, {shape.width, shape.heads, tokens}),
        block_table_(Type::kI32, {blocks_, 1}),
        q_offsets_(Type::kI32, {2}),
        kv_lengths_(Type::kI32, {1}) {
    quant::Random random(1);
    q_.FillWith(quant::Fill::kUniform, &random);
    for (int64_t i = 0; i < blocks_; ++i) I32Row(block_table_, 0)[i] = static_cast<int32_t>(i);
    I32Row(q_offsets_, 0)[1] = static_cast<int32_t>(tokens);
    I32Row(kv_lengths_, 0)[0] = static_cast<int32_t>(depth + tokens);
    bytes_ = 0;
    do {
      for (int i = 0; i < 2; ++i) {
        caches_.push_back(std::make_unique<Tensor>(
            type,
            std::initializer_list<int64_t>{shape.width, kBlockPositions, shape.kv_heads, blocks_}));
        Fill(&random, caches_.back()->view());
        bytes_ += static_cast<int64_t>(caches_.back()->bytes().size());
      }
    } while (bytes_ < kCacheBytes);
  }

  AttentionInputs Inputs(int64_t layer) const {
    const size_t at = 2 * static_cast<size_t>(layer % Layers());
    return {q_, *caches_[at], *caches_[at + 1], block_table_, q_offsets_, kv_lengths_, nullptr};
  }
  const View& dst() const { return dst_; }
  int64_t Layers() const { return static_cast<int64_t>(caches_.size() / 2); }

 private:
  // Repeats one block of values, which is quick to make and changes no processor's time.
  static void Fill(quant::Random* random, const View& cache) {
    Tensor src(Type::kF32, {cache.dims[0], cache.dims[2], 1}), slot(Type::kI32, {1});
    src.FillWith(quant::Fill::kUniform, random);
    for (int64_t i = 0; i < cache.dims[1]; ++i) {
      I32Row(slot, 0)[0] = static_cast<int32_t>(i);
      reference::KvStore(src, slot, cache, reference::AllRows(src));
    }
    for (int64_t i = 1; i < cache.dims[3]; ++i) {
      std::memcpy(cache.data + i * cache.strides[3], cache.data,
                  static_cast<size_t>(cache.strides[3]));
    }
  }

  int64_t blocks_;
  Tensor q_, dst_, block_table_, q_offsets_, kv_lengths_;
  std::vector<std::unique_ptr<Tensor>> caches_;
  int64_t bytes_;
};

void RunAttention(benchmark::State& state, const KernelTable& table, Shape shape, Type type,
                  int64_t tokens, int64_t depth) {
  static std::unique_ptr<Problem> problem;  // shared by all threads
  if (state.thread_index() == 0) problem = std::make_unique<Problem>(shape, type, tokens, depth);
  const int64_t groups = shape.kv_heads * tokens, group = shape.heads / shape.kv_heads;
  const Range rows = {groups * state.thread_index() / state.threads() * group,
                      groups * (state.thread_index() + 1) / state.threads() * group};
  int64_t layer = 0;
  for (auto _ : state) {
    table.attention(problem->Inputs(layer++), {.scale = 0.125f}, problem->dst(), rows);
    benchmark::ClobberMemory();
  }
  uint64_t row_bytes = 0;
  quant::RowBytes(type, shape.width, &row_bytes);
  const int64_t seen = tokens * depth + tokens * (tokens + 1) / 2;
  state.SetItemsProcessed(state.iterations() * seen * 2 * shape.width * (rows.end - rows.begin) /
                          tokens);
  if (tokens == 1) {
    state.SetBytesProcessed(state.iterations() * (depth + 1) * 2 * static_cast<int64_t>(row_bytes) *
                            (rows.end - rows.begin) / group);
  }
}

void RunRead(benchmark::State& state) {
  static std::unique_ptr<std::vector<uint64_t>> memory;
  constexpr size_t kWords = kCacheBytes / sizeof(uint64_t);
  if (state.thread_index() == 0) memory = std::make_unique<std::vector<uint64_t>>(kWords, 1);
  const size_t threads = static_cast<size_t>(state.threads()), words = kWords / threads;
  for (auto _ : state) {
    const uint64_t* from = memory->data() + static_cast<size_t>(state.thread_index()) * words;
    uint64_t sums[16] = {};
    for (size_t i = 0; i + 16 <= words; i += 16) {
      for (size_t j = 0; j < 16; ++j) sums[j] += from[i + j];
    }
    for (uint64_t sum : sums) benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(words * sizeof(uint64_t)));
}

// Computes independent sums of products, enough to hide an addition's latency, in 16-byte vectors.
void RunMulAdd(benchmark::State& state) {
  typedef float Vector __attribute__((vector_size(16)));
  constexpr int kSums = 8, kSteps = 1000;
  volatile float source = 0.5f;  // so that the compiler knows no product
  Vector sums[kSums] = {};
  for (auto _ : state) {
    for (int step = 0; step < kSteps; ++step) {
      const float x = source;
      const Vector factor = {x, x, x, x};
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) sums[i] += factor * sums[(i + 1) % kSums];
    }
  }
  for (Vector sum : sums) benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * kSteps * kSums * 4);
}

void Register(const Level& level) {
  const auto add = [&](const std::string& name, Shape shape, Type type, int64_t tokens,
                       int64_t depth, int threads) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=, &level](benchmark::State& state) {
                                   RunAttention(state, *level.table, shape, type, tokens, depth);
                                 })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime()
        ->Threads(threads);
  };
  const std::string prefix = std::string("/") + level.name + "/";
  for (const Shape& shape : kShapes) {
    for (const int64_t context : {128, 1024, 4096}) {
      for (const int threads : {1, 2}) {
        add("decode" + prefix + "f16/" + shape.Name() + "/" + std::to_string(context), shape,
            Type::kF16, 1, context - 1, threads);
      }
    }
    for (const int64_t depth : {0, 4096}) {
      add("prefill" + prefix + "f16/" + shape.Name() + "/" + std::to_string(depth), shape,
          Type::kF16, 512, depth, 1);
    }
  }
  for (const Type type : {Type::kF32, Type::kBF16, Type::kQ8_KV}) {
    add("decode" + prefix + quant::Traits(type).name + "/" + kShapes[0].Name() + "/4096",
        kShapes[0], type, 1, 4095, 1);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels

int main(int argc, char** argv) {
  using trine::cpu_kernels::Level;
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark("read", trine::cpu_kernels::RunRead)
        ->UseRealTime()
        ->Threads(threads);
  }
  benchmark::RegisterBenchmark("mul_add", trine::cpu_kernels::RunMulAdd);
  for (const Level& level : trine::cpu_kernels::Levels()) {
    if (level.table == &trine::cpu_kernels::kReferenceLevel) continue;  // it takes too long
    if (CanRun(level, trine::cpu_kernels::HostHas)) trine::cpu_kernels::Register(level);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
