// Measures what choosing a token costs: chains of the sampler over vocabularies of real models, for
// several sequences at once, on the calling thread alone and on the CPU lane. The lane's bound was
// chosen with it (docs/sampling.md). A tool, not a test.
//
//   trine-sampler-bench --benchmark_filter=default
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "runtime/sampling/lane.h"
#include "runtime/sampling/philox.h"
#include "runtime/sampling/sampler.h"

namespace trine {
namespace {

// Makes logits like a model's: a bell of deviation 2.5 with a few likely tokens on top.
std::vector<float> ModelLikeRow(int32_t vocab, uint64_t seed) {
  std::vector<float> row(static_cast<size_t>(vocab));
  for (size_t i = 0; i < row.size(); ++i) {
    const uint64_t bits = RandomDraw(seed, i);
    float sum = -4.0f;
    for (int shift = 0; shift < 64; shift += 16) {
      sum += static_cast<float>(bits >> shift & 0xffffu) * 0x1p-15f;
    }
    row[i] = 2.2f * sum;
  }
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t token = ScaleRandom(RandomDraw(seed + 1, i), static_cast<uint64_t>(vocab));
    row[static_cast<size_t>(token)] = 17.0f - 0.7f * static_cast<float>(i);
  }
  return row;
}

enum class Where { kInline, kPooled };

struct Chain {
  const char* name;
  void (*set)(SamplerOptions&);
};

constexpr Chain kChains[] = {
    {"default", [](SamplerOptions&) {}},
    {"greedy", [](SamplerOptions& o) { o.temp = 0.0f; }},
    {"top_k", [](SamplerOptions& o) { o.stages = {SamplerStage::kTopK}; }},
    {"top_p", [](SamplerOptions& o) { o.stages = {SamplerStage::kTopP}; }},
    {"plain", [](SamplerOptions& o) { o.stages = {SamplerStage::kTemperature}; }},
    {"typical",
     [](SamplerOptions& o) {
       o.stages = {SamplerStage::kTypicalP};
       o.typical_p = 0.9f;
     }},
    {"penalties", [](SamplerOptions& o) { o.repeat_penalty = 1.1f; }},
    {"mirostat", [](SamplerOptions& o) { o.mirostat = 2; }},
};

// One iteration is one token for every sequence.
void BM_Sample(benchmark::State& state, const Chain& chain, Where where) {
  const auto vocab = static_cast<int32_t>(state.range(0));
  const auto n = static_cast<int>(state.range(1));
  const absl::StatusOr<int> threads = LaneThreadsFromEnvironment();
  if (!threads.ok()) return state.SkipWithError(std::string(threads.status().message()).c_str());
  absl::StatusOr<std::unique_ptr<Lane>> lane = Lane::Create(*threads);
  if (!lane.ok()) return state.SkipWithError(std::string(lane.status().message()).c_str());
  std::vector<Sampler> samplers;
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < n; ++i) {
    SamplerOptions options;
    options.seed = static_cast<uint64_t>(i);
    chain.set(options);
    absl::StatusOr<Sampler> sampler = Sampler::Create(options, vocab);
    if (!sampler.ok()) return state.SkipWithError(std::string(sampler.status().message()).c_str());
    samplers.push_back(*std::move(sampler));
    rows.push_back(ModelLikeRow(vocab, static_cast<uint64_t>(i)));
  }
  const auto sample = [&](int i) {
    const auto s = static_cast<size_t>(i);
    samplers[s].Accept(samplers[s].Sample(rows[s]));
  };
  using Clock = std::chrono::steady_clock;
  Clock::duration best = Clock::duration::max();
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    if (where == Where::kPooled) {
      (*lane)->Run(n, sample);
    } else {
      for (int i = 0; i < n; ++i) sample(i);
    }
    best = std::min(best, Clock::now() - start);
  }
  // The least time is that of the work itself; the mean includes other work on the machine.
  state.counters["best_us"] = std::chrono::duration<double, std::micro>(best).count();
  state.counters["lane_threads"] = (*lane)->threads();
}

void RegisterAll() {
  for (const Chain& chain : kChains) {
    for (const Where where : {Where::kInline, Where::kPooled}) {
      const std::string name =
          std::string(chain.name) + (where == Where::kInline ? "/inline" : "/pooled");
      benchmark::RegisterBenchmark(
          name.c_str(), [&chain, where](benchmark::State& s) { BM_Sample(s, chain, where); })
          ->ArgNames({"vocab", "sequences"})
          ->ArgsProduct({{32000, 128256, 151936}, {1, 2, 4, 16}})
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) {
  trine::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
