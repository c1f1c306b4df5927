#include "runtime/gguf/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/gguf/test_file.h"

namespace trine::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Builder Model() {
  Builder builder;
  builder.SetString("general.architecture", "llama");
  builder.SetUint32("llama.block_count", 2);
  builder.SetUint32("llama.context_length", 100);
  builder.SetUint32("llama.embedding_length", 64);
  builder.SetUint32("llama.feed_forward_length", 96);
  builder.SetUint32("llama.attention.head_count", 2);
  builder.AddTensor("token_embd.weight", quant::Type::kQ8_0, {64, 10});
  for (const char* layer : {"blk.0.", "blk.1."}) {
    builder.AddTensor(std::string(layer) + "attn_q.weight", quant::Type::kQ8_0, {64, 64});
    builder.AddTensor(std::string(layer) + "attn_norm.weight", quant::Type::kF32, {64});
  }
  builder.AddTensor("output_norm.weight", quant::Type::kF32, {64});
  builder.AddTensor("rope_freqs.weight", quant::Type::kF32, {16});
  return builder;
}

std::shared_ptr<const File> Open(const Builder& builder) {
  return File::FromMemory(Build(builder)).value();
}

TEST(ModelSummaryTest, PlacesAndCountsTensors) {
  const ModelSummary summary = Summarize(*Open(Model()));
  EXPECT_EQ(summary.all.tensors, 7u);
  EXPECT_EQ(summary.all.parameters, 640u + 2 * (4096 + 64) + 64 + 16);
  EXPECT_EQ(summary.all.bytes, 680u + 2 * (4352 + 256) + 256 + 64);
  EXPECT_EQ(summary.embedding.bytes, 680u);
  EXPECT_EQ(summary.output.bytes, 256u);
  EXPECT_EQ(summary.other.bytes, 64u);
  ASSERT_EQ(summary.layers.size(), 2u);
  EXPECT_EQ(summary.layers.at(1).bytes, 4352u + 256);
  EXPECT_EQ(summary.layers.at(1).bytes_by_type.at(quant::Type::kF32), 256u);
  EXPECT_EQ(summary.by_type.at(quant::Type::kQ8_0).tensors, 3u);
  EXPECT_DOUBLE_EQ(summary.embedding.BitsPerWeight(), 8.5);
  EXPECT_EQ(TensorSum().BitsPerWeight(), 0);
  EXPECT_TRUE(summary.output_is_embedding);
  Builder untied = Model();
  untied.AddTensor("output.weight", quant::Type::kF16, {64, 10});
  untied.AddTensor("blk.x.weight", quant::Type::kF16, {1});
  untied.AddTensor("blk.2", quant::Type::kF16, {1});
  const ModelSummary with_output = Summarize(*Open(untied));
  EXPECT_FALSE(with_output.output_is_embedding);
  EXPECT_EQ(with_output.output.bytes, 256u + 1280);
  EXPECT_EQ(with_output.layers.size(), 2u);
}

TEST(ModelSummaryTest, KvFollowsHeadsAndTypes) {
  Builder builder = Model();
  ModelShape shape = ReadModelShape(*Open(builder)).value();
  EXPECT_EQ(shape.key_length, 32);
  EXPECT_EQ(shape.vocabulary, 10);
  EXPECT_THAT(shape.kv_heads, ElementsAre(2, 2));
  // 2 layers, 2 heads, a key and a value of 32.
  EXPECT_EQ(KvBytes(shape, quant::Type::kF16, 1), 2 * 2 * 2 * 64u);
  EXPECT_EQ(KvBytes(shape, quant::Type::kQ8_KV, 100), 100 * 2 * 2 * 2 * 36u);

  builder.SetUint32s("llama.attention.head_count_kv", {1, 0});
  builder.SetUint32("llama.attention.key_length", 48);
  builder.SetUint32("llama.attention.value_length", 16);
  shape = ReadModelShape(*Open(builder)).value();
  EXPECT_EQ(KvBytes(shape, quant::Type::kF32, 1), 4 * (48 + 16u));
  EXPECT_EQ(KvBytes(shape, quant::Type::kQ8_KV, 1), std::nullopt);
  EXPECT_EQ(KvBytes(shape, quant::Type::kF32, INT64_MAX), std::nullopt);
  // 2 x width; 3 x feed-forward is less than q, k and v; the logits.
  EXPECT_EQ(ScratchBytes(shape, 8), 4 * (8 * (2 * 64 + 4 * 48 + 2 * 48 + 16 + 2 * 16) + 10u));
}

TEST(ModelSummaryTest, SaysWhichKeyIsWrong) {
  const auto error = [](const std::function<void(Builder*)>& change) {
    Builder builder = Model();
    change(&builder);
    const auto shape = ReadModelShape(*Open(builder));
    return shape.ok() ? "read" : std::string(shape.status().message());
  };
  EXPECT_EQ(error([](Builder*) {}), "read");
  EXPECT_THAT(error([](Builder* b) { b->Remove("general.architecture"); }),
              HasSubstr("'general.architecture' is missing"));
  EXPECT_THAT(error([](Builder* b) { b->SetString("general.architecture", "gpt"); }),
              HasSubstr("'gpt.block_count' is missing"));
  EXPECT_THAT(error([](Builder* b) { b->SetUint32("llama.block_count", 0); }),
              HasSubstr("'llama.block_count' is 0; expected 1 to"));
  EXPECT_THAT(error([](Builder* b) { b->SetUint32s("llama.attention.head_count_kv", {1}); }),
              HasSubstr("has 1 integers; expected one for each of the 2 layers"));
  EXPECT_THAT(error([](Builder* b) {
                b->SetInt32s("llama.attention.head_count_kv", {1, -1});
              }),
              HasSubstr("has a -1; expected 0 to"));
}

}  // namespace
}  // namespace trine::gguf
