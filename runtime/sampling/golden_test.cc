// Outcomes that must be the same on every machine, compiler and optimisation level. Built twice:
// against the library, and with the sources compiled without optimisation.

#include <gtest/gtest.h>

#include "runtime/sampling/sampler.h"
#include "runtime/sampling/test_oracle.h"

namespace trine {
namespace {

struct Golden {
  const char* name;
  void (*set)(SamplerOptions&);
  uint64_t hash;
};

uint64_t HashOf(const Golden& golden) {
  SamplerOptions options;
  options.seed = 1234567890123ull;
  golden.set(options);
  constexpr int32_t kVocab = 4000;
  absl::StatusOr<Sampler> sampler = Sampler::Create(options, kVocab);
  if (!sampler.ok()) return 0;
  quant::Random random(61);
  quant::Hash hash;
  SampleResult result;
  for (int i = 0; i < 60; ++i) {
    const RowShape shape = kRowShapes[i % 4];
    const std::vector<float> row = RandomRow(shape, kVocab, &random);
    sampler->SampleWithLogprobs(row, {}, 3, &result);
    sampler->Accept(result.token);
    hash.Add(&result.token, sizeof(result.token));
    hash.Add(&result.logprob, sizeof(result.logprob));
    for (const TokenLogprob& top : result.top) {
      hash.Add(&top.token, sizeof(top.token));
      hash.Add(&top.logprob, sizeof(top.logprob));
    }
    const double mu = sampler->state().mirostat_mu;
    hash.Add(&mu, sizeof(mu));
  }
  return hash.value();
}

TEST(SamplerGoldenTest, OutcomesAreTheSameEverywhere) {
  const Golden goldens[] = {
      {"default", [](SamplerOptions&) {}, 0x8b536acba6ea3ad3},
      {"plain", [](SamplerOptions& o) { o.stages = {}; }, 0x53742e8b8cba3eca},
      {"greedy", [](SamplerOptions& o) { o.temp = 0.0f; }, 0x52071018fa5f517a},
      {"top_p", [](SamplerOptions& o) { o.stages = {SamplerStage::kTopP}; }, 0x38e009fb1e5bad83},
      {"typical",
       [](SamplerOptions& o) {
         o.stages = {SamplerStage::kTypicalP};
         o.typical_p = 0.7f;
       },
       0x80a11c5036faba41},
      {"min_p, hot",
       [](SamplerOptions& o) {
         o.stages = {SamplerStage::kMinP, SamplerStage::kTemperature};
         o.temp = 1.7f;
       },
       0xb1b40e67107a346f},
      {"penalties",
       [](SamplerOptions& o) {
         o.repeat_penalty = 1.1f;
         o.frequency_penalty = 0.2f;
         o.presence_penalty = 0.1f;
       },
       0xdd7d5e94eecc6e74},
      {"mirostat", [](SamplerOptions& o) { o.mirostat = 2; }, 0x8d108e49fd127c25},
  };
  for (const Golden& golden : goldens) {
    const uint64_t hash = HashOf(golden);
    EXPECT_EQ(hash, golden.hash) << golden.name << std::hex << " gave 0x" << hash;
    const quant::ScopedFlushToZero flush;
    EXPECT_EQ(HashOf(golden), golden.hash) << golden.name << " with denormals flushed";
  }
}

// A few tokens written out, for implementations of docs/numerics.md in other languages: vocabulary
// 8, logits i * 0.5, the default chain, seed 42.
TEST(SamplerGoldenTest, FirstTokensOfSeed42) {
  SamplerOptions options;
  options.seed = 42;
  absl::StatusOr<Sampler> sampler = Sampler::Create(options, 8);
  ASSERT_TRUE(sampler.ok());
  std::vector<float> row;
  for (int i = 0; i < 8; ++i) row.push_back(0.5f * static_cast<float>(i));
  std::vector<int32_t> tokens;
  for (int i = 0; i < 16; ++i) tokens.push_back(sampler->Sample(row));
  EXPECT_EQ(tokens, (std::vector<int32_t>{7, 7, 6, 6, 5, 7, 5, 7, 7, 7, 6, 7, 7, 7, 6, 7}));
}

}  // namespace
}  // namespace trine
