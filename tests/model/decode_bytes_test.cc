// Compares the bytes that a decoded token reads with sums made by hand.
#include "runtime/model/run/decode_bytes.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/model/arch/read_model.h"
#include "tests/model/tiny_model.h"

namespace trine {
namespace {

struct Counted {
  std::shared_ptr<const gguf::File> file;
  ModelConfig config;
  DecodeBytes decode;
};

Counted Count(const std::vector<std::byte>& bytes, uint32_t kv_type = TRINE_DTYPE_F16) {
  Counted c;
  c.file = *gguf::File::FromMemory(bytes);
  c.config = *ReadModelConfig(*c.file);
  SegmentLimits limits;
  limits.max_context = 256;
  limits.kv_blocks = 4;
  limits.kv_type_k = limits.kv_type_v = kv_type;
  const auto decode = CountDecodeBytes(*c.file, c.config, limits);
  EXPECT_TRUE(decode.ok()) << decode.status();
  if (decode.ok()) c.decode = *decode;
  return c;
}

Counted CountTiny(const TinyModelSpec& spec, uint32_t kv_type = TRINE_DTYPE_F16) {
  return Count(MakeTinyModel(spec).ToBytes(), kv_type);
}

// Values of the default tiny model's layers, in matrices and in norms.
constexpr uint64_t kLayerMatrices = 96 * 96 * 2 + 96 * 32 * 2 + 96 * 160 * 3;
constexpr uint64_t kLayerNorms = 2 * 96;

TEST(DecodeBytesTest, OfADenseModelAllMatricesOnceAndOneRowOfTheEmbedding) {
  const auto vocabulary = static_cast<uint64_t>(TinyVocabularySize());
  const uint64_t norms = 4 * (3 * kLayerNorms + 96);
  const uint64_t values = 3 * kLayerMatrices + 96 * vocabulary + 96;
  EXPECT_EQ(CountTiny({}).decode.weights, 4 * values + norms);
  EXPECT_EQ(CountTiny({.type = quant::Type::kQ8_0}).decode.weights, values / 32 * 34 + norms);
}

TEST(DecodeBytesTest, OfATiedModelTheEmbeddingOnceAndNoRowBeside) {
  const auto vocabulary = static_cast<uint64_t>(TinyVocabularySize());
  const Counted c = CountTiny({.tied = true});
  EXPECT_EQ(c.decode.weights, 4 * (3 * kLayerMatrices + 96 * vocabulary + 3 * kLayerNorms + 96));
  EXPECT_EQ(c.file->FindTensor("output.weight"), nullptr);
}

TEST(DecodeBytesTest, OfExpertsThoseThatAreUsed) {
  for (const char* name : {"tiny-qwen3moe", "tiny-qwen2moe", "tiny-gpt-oss"}) {
    const auto shape = FindPreset(name);
    ASSERT_TRUE(shape.ok()) << shape.status();
    const Counted c = Count(*MakeModelBytes(*shape));
    ASSERT_GT(c.config.experts.used, 0) << name;
    ASSERT_LT(c.config.experts.used, c.config.experts.count) << name;
    const bool tied = c.file->FindTensor("output.weight") == nullptr;
    uint64_t expected = 0;
    for (const gguf::TensorInfo& t : c.file->tensors()) {
      if (t.name == "token_embd.weight" && !tied) {
        expected += t.bytes / static_cast<uint64_t>(t.dims[1]);
      } else if (t.name.find("_exps.") != std::string::npos) {
        expected += t.bytes * static_cast<uint64_t>(c.config.experts.used) /
                    static_cast<uint64_t>(c.config.experts.count);
      } else {
        expected += t.bytes;
      }
    }
    EXPECT_EQ(c.decode.weights, expected) << name;
    EXPECT_LT(c.decode.weights, c.file->tensor_bytes()) << name;
  }
}

TEST(DecodeBytesTest, OfTheCacheWhatATokenSees) {
  // 3 layers, 2 heads of 16 values, keys and values.
  const uint64_t values = 3 * 2 * 16 * 2;
  const DecodeBytes f16 = CountTiny({}).decode;
  EXPECT_EQ(f16.Kv(1), 2 * values);
  EXPECT_EQ(f16.Kv(100), 200 * values);
  EXPECT_DOUBLE_EQ(f16.MeanKv(0, 1), 2.0 * values);
  EXPECT_DOUBLE_EQ(f16.MeanKv(10, 4), 2.0 * values * (11 + 12 + 13 + 14) / 4);
  EXPECT_EQ(f16.MeanKv(10, 0), 0);
  EXPECT_EQ(CountTiny({}, TRINE_DTYPE_F32).decode.Kv(1), 4 * values);
}

TEST(DecodeBytesTest, OfAWindowedLayerNoMoreThanTheWindow) {
  const Counted c = Count(*MakeModelBytes(*FindPreset("tiny-gemma2")));
  ASSERT_GT(c.config.window, 0);
  const auto window = static_cast<uint64_t>(c.config.window);
  uint64_t windowed = 0, all = 0;
  for (const DecodeBytes::Cache& cache : c.decode.caches) {
    (cache.window > 0 ? windowed : all) += cache.bytes_per_position;
  }
  ASSERT_GT(windowed, 0u);
  ASSERT_GT(all, 0u);
  EXPECT_EQ(c.decode.Kv(c.config.window), window * (windowed + all));
  EXPECT_EQ(c.decode.Kv(2 * c.config.window), window * (windowed + 2 * all));
}

}  // namespace
}  // namespace trine
