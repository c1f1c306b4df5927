// Counts every allocation of the process, so it needs a program of its own.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "runtime/sampling/lane.h"
#include "runtime/sampling/sampler.h"
#include "runtime/sampling/stop_matcher.h"
#include "runtime/sampling/test_oracle.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Not inlined, so that GCC does not see a pointer from new passed to free.
[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace trine {
namespace {

constexpr int32_t kVocab = 8000;

std::vector<SamplerOptions> Chains() {
  std::vector<SamplerOptions> chains(6);
  chains[1].stages = {};
  chains[2].stages = {SamplerStage::kTopP, SamplerStage::kTemperature};
  chains[2].top_p = 0.9999f;
  chains[3].stages = {SamplerStage::kTypicalP};
  chains[3].typical_p = 0.99f;
  chains[4].mirostat = 2;
  chains[5].top_k = 5000;
  chains[5].temp = 0.0f;
  // Without penalties logits are used in place, with penalties they are copied.
  const size_t n = chains.size();
  for (size_t i = 0; i < n; ++i) {
    chains.push_back(chains[i]);
    chains.back().repeat_penalty = 1.1f;
  }
  return chains;
}

// Nothing is allocated even for the first token: peaked rows come first, then flat ones that need
// far more room.
TEST(AllocationTest, SamplingAllocatesNothing) {
  quant::Random random(71);
  std::vector<std::vector<float>> rows;
  for (const RowShape shape :
       {RowShape::kPeaked, RowShape::kModel, RowShape::kFlat, RowShape::kTied, RowShape::kWide}) {
    rows.push_back(RandomRow(shape, kVocab, &random));
  }
  rows.push_back(rows[1]);
  rows.back()[77] = std::nanf("");
  std::vector<uint32_t> mask(kVocab / 32, 0xf0f0f0f0u);
  for (const SamplerOptions& options : Chains()) {
    absl::StatusOr<Sampler> created = Sampler::Create(options, kVocab);
    ASSERT_TRUE(created.ok());
    Sampler sampler = *created;  // a copy has reserved as much as the original
    const int64_t before = allocations.load();
    for (int round = 0; round < 10; ++round) {
      for (const std::vector<float>& row : rows) {
        sampler.Accept(sampler.Sample(row));
        sampler.Accept(sampler.Sample(row, mask));
      }
    }
    EXPECT_EQ(allocations.load(), before) << StageOrderText(options.stages);
  }
}

TEST(AllocationTest, LogprobsReuseTheirResult) {
  quant::Random random(72);
  const std::vector<float> row = RandomRow(RowShape::kModel, kVocab, &random);
  absl::StatusOr<Sampler> sampler = Sampler::Create({}, kVocab);
  ASSERT_TRUE(sampler.ok());
  SampleResult result;
  sampler->SampleWithLogprobs(row, {}, 20, &result);
  const int64_t before = allocations.load();
  for (int i = 0; i < 10; ++i) sampler->SampleWithLogprobs(row, {}, 20, &result);
  EXPECT_EQ(allocations.load(), before);
}

TEST(AllocationTest, StopMatcherAndLaneAllocateNothing) {
  absl::StatusOr<StopMatcher> matcher = StopMatcher::Create({"</s>", "User:", "\n\n\n"});
  ASSERT_TRUE(matcher.ok());
  absl::StatusOr<std::unique_ptr<Lane>> lane = Lane::Create(2);
  ASSERT_TRUE(lane.ok());
  size_t shown = matcher->Push("a first piece of text, longer than those that follow").size();
  std::atomic<int> ran{0};
  (*lane)->Run(4, [&](int) { ran.fetch_add(1); });
  const int64_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) shown += matcher->Push("\n a Use</").size();
  for (int i = 0; i < 100; ++i) (*lane)->Run(4, [&](int) { ran.fetch_add(1); });
  EXPECT_EQ(allocations.load(), before);
  EXPECT_GT(shown, 5000u);
  EXPECT_EQ(ran.load(), 404);
}

TEST(AllocationTest, TheCounterCounts) {
  const int64_t before = allocations.load();
  const auto boxed = std::make_unique<int>(1);
  EXPECT_EQ(allocations.load() - before, *boxed);
}

}  // namespace
}  // namespace trine
