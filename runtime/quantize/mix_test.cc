#include "runtime/quantize/mix.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/encode.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/model_summary.h"
#include "runtime/quantize/test_model.h"

namespace trine::quantize {
namespace {

using quant::Type;

const Mix& MixOf(const char* name) {
  const auto mix = FindMix(name);
  EXPECT_TRUE(mix.ok()) << mix.status();
  return **mix;
}

gguf::TensorInfo Matrix(std::string_view name, int64_t columns = 512, int64_t matrices = 1) {
  gguf::TensorInfo tensor;
  tensor.name = name;
  tensor.rank = matrices > 1 ? 3 : 2;
  tensor.dims[0] = columns;
  tensor.dims[1] = 64;
  tensor.dims[2] = matrices;
  return tensor;
}

TEST(MixTest, NamesAreFoundInAnyCaseAndByAlias) {
  EXPECT_STREQ(MixOf("q4_k_m").name, "Q4_K_M");
  EXPECT_STREQ(MixOf("Q4_K").name, "Q4_K_M");
  EXPECT_STREQ(MixOf("mxfp4_moe").name, "MXFP4");
  const auto wrong = FindMix("Q9");
  EXPECT_TRUE(absl::StrContains(wrong.status().message(), "'Q9'")) << wrong.status();
  EXPECT_TRUE(absl::StrContains(wrong.status().message(), "Q4_K_M")) << wrong.status();
  EXPECT_FALSE(FindMix("").ok());
}

TEST(MixTest, EveryMixHasItsFileType) {
  for (const Mix& mix : AllMixes()) {
    EXPECT_TRUE(quant::CanEncode(mix.base)) << mix.name;
    EXPECT_EQ(gguf::FileTypeNumber(mix.name).has_value(), !mix.copy) << mix.name;
  }
  EXPECT_EQ(gguf::FileTypeNumber("q4_k_m"), 15u);
  EXPECT_EQ(gguf::FileTypeNumber("MXFP4"), 38u);
  EXPECT_STREQ(gguf::FileTypeName(30), "IQ4_XS");
  EXPECT_STREQ(gguf::FileTypeName(4), "");
  EXPECT_STREQ(gguf::FileTypeName(-1), "");
  EXPECT_STREQ(gguf::FileTypeName(99), "");
}

TEST(MixTest, TensorTypesAreFoundByName) {
  EXPECT_EQ(*FindTensorType("q6_k"), Type::kQ6_K);
  EXPECT_EQ(*FindTensorType("F32"), Type::kF32);
  EXPECT_FALSE(FindTensorType("i32").ok());
  EXPECT_FALSE(FindTensorType("q4_k_m").ok());
}

TEST(MixTest, RolesGoByName) {
  EXPECT_EQ(RoleOf(Matrix("blk.3.attn_v.weight")), Role::kAttentionV);
  EXPECT_EQ(RoleOf(Matrix("blk.3.attn_qkv.weight")), Role::kAttentionV);
  EXPECT_EQ(RoleOf(Matrix("blk.3.ffn_down_exps.weight")), Role::kFeedForwardDown);
  EXPECT_EQ(RoleOf(Matrix("blk.3.ffn_gate.weight")), Role::kFeedForwardUp);
  EXPECT_EQ(RoleOf(Matrix("output.weight")), Role::kOutput);
  EXPECT_EQ(RoleOf(Matrix("blk.3.something.weight")), Role::kOther);
  for (const char* kept : {"blk.3.ffn_gate_inp.weight", "blk.3.attn_q_norm.weight",
                           "blk.3.ffn_up_exps.bias", "position_embd.weight"}) {
    EXPECT_EQ(RoleOf(Matrix(kept)), Role::kKept) << kept;
  }
  gguf::TensorInfo vector = Matrix("blk.3.attn_v.weight");
  vector.rank = 1;
  EXPECT_EQ(RoleOf(vector), Role::kKept);
  gguf::TensorInfo integers = Matrix("blk.3.attn_v.weight");
  integers.type = Type::kI32;
  EXPECT_EQ(RoleOf(integers), Role::kKept);
  EXPECT_EQ(gguf::LayerOf("blk.12.attn_v.weight"), 12);
  EXPECT_EQ(gguf::LayerOf("output.weight"), std::nullopt);
  EXPECT_EQ(gguf::LayerOf("blk.-1.attn_v.weight"), std::nullopt);
  EXPECT_EQ(gguf::LayerOf("blk.99999999999999999999.attn_v.weight"), std::nullopt);
}

TEST(MixTest, Q4KMGivesMoreBitsToSomeLayers) {
  const ModelFacts facts = {.layers = 32};
  std::vector<int> more;
  for (int layer = 0; layer < 32; ++layer) {
    for (const char* part : {"attn_v", "ffn_down"}) {
      const std::string name = absl::StrCat("blk.", layer, ".", part, ".weight");
      const Type type = MixedType(MixOf("Q4_K_M"), Matrix(name), facts);
      EXPECT_TRUE(type == Type::kQ6_K || type == Type::kQ4_K);
      if (type == Type::kQ6_K && std::string(part) == "ffn_down") more.push_back(layer);
    }
  }
  EXPECT_EQ(more, (std::vector<int>{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31}));
  EXPECT_EQ(MixedType(MixOf("Q4_K_M"), Matrix("blk.0.attn_q.weight"), facts), Type::kQ4_K);
}

TEST(MixTest, RulesOfTheOtherMixes) {
  const ModelFacts facts = {.layers = 32};
  ModelFacts shared = facts;
  shared.shares_heads = true;
  const auto type = [](const char* mix, const char* tensor, const ModelFacts& model) {
    return MixedType(MixOf(mix), Matrix(tensor), model);
  };
  EXPECT_EQ(type("Q2_K", "blk.9.attn_v.weight", facts), Type::kQ3_K);
  EXPECT_EQ(type("Q2_K", "blk.9.attn_v.weight", shared), Type::kQ4_K);
  EXPECT_EQ(type("Q2_K_S", "blk.9.attn_v.weight", facts), Type::kQ2_K);
  EXPECT_EQ(type("Q3_K_M", "blk.1.attn_v.weight", facts), Type::kQ5_K);
  EXPECT_EQ(type("Q3_K_M", "blk.2.attn_v.weight", facts), Type::kQ4_K);
  EXPECT_EQ(type("Q3_K_M", "blk.1.ffn_down.weight", facts), Type::kQ5_K);
  EXPECT_EQ(type("Q3_K_M", "blk.2.ffn_down.weight", facts), Type::kQ4_K);
  EXPECT_EQ(type("Q3_K_L", "blk.9.attn_output.weight", facts), Type::kQ5_K);
  EXPECT_EQ(type("Q4_K_S", "blk.3.attn_v.weight", facts), Type::kQ5_K);
  EXPECT_EQ(type("Q4_K_S", "blk.4.attn_v.weight", facts), Type::kQ4_K);
  EXPECT_EQ(type("IQ4_XS", "blk.3.ffn_down.weight", facts), Type::kQ5_K);
  EXPECT_EQ(type("IQ4_XS", "blk.4.ffn_down.weight", facts), Type::kIQ4_XS);
  EXPECT_EQ(type("TQ2_0", "token_embd.weight", facts), Type::kQ4_K);
  EXPECT_EQ(type("Q5_0", "blk.0.ffn_down.weight", facts), Type::kQ5_0);
  EXPECT_EQ(type("F16", "output.weight", facts), Type::kF16);
}

TEST(MixTest, TheLogitsGetMoreBits) {
  ModelFacts facts = {.layers = 4};
  EXPECT_EQ(MixedType(MixOf("Q4_0"), Matrix("output.weight"), facts), Type::kQ6_K);
  EXPECT_EQ(MixedType(MixOf("Q4_0"), Matrix("output.weight", 96), facts), Type::kQ8_0);
  EXPECT_EQ(MixedType(MixOf("Q8_0"), Matrix("output.weight"), facts), Type::kQ8_0);
  EXPECT_EQ(MixedType(MixOf("Q4_0"), Matrix("token_embd.weight"), facts), Type::kQ4_0);
  facts.tied_output = true;
  EXPECT_EQ(MixedType(MixOf("Q4_0"), Matrix("token_embd.weight"), facts), Type::kQ6_K);
}

TEST(MixTest, AttentionBesideManyExperts) {
  const ModelFacts facts = {.layers = 4, .experts = 8};
  EXPECT_EQ(MixedType(MixOf("Q4_K_M"), Matrix("blk.1.attn_k.weight"), facts), Type::kQ8_0);
  EXPECT_EQ(MixedType(MixOf("Q4_K_M"), Matrix("blk.1.attn_output.weight"), facts), Type::kQ5_K);
  EXPECT_EQ(MixedType(MixOf("Q6_K"), Matrix("blk.1.attn_output.weight"), facts), Type::kQ6_K);
  EXPECT_EQ(MixedType(MixOf("Q4_K_M"), Matrix("blk.1.ffn_up_exps.weight"), facts), Type::kQ4_K);
  EXPECT_EQ(MixedType(MixOf("MXFP4"), Matrix("blk.1.ffn_up_exps.weight", 512, 8), facts),
            Type::kMXFP4);
  EXPECT_EQ(MixedType(MixOf("MXFP4"), Matrix("blk.1.attn_q.weight"), facts), Type::kQ8_0);
}

TEST(MixTest, RowsThatAreNoWholeBlocksGetALargerType) {
  const std::map<Type, Type> by_32 = {
      {Type::kQ2_K, Type::kQ4_0},   {Type::kQ3_K, Type::kQ4_0},  {Type::kQ4_K, Type::kQ5_0},
      {Type::kQ5_K, Type::kQ5_1},   {Type::kQ6_K, Type::kQ8_0},  {Type::kIQ4_XS, Type::kIQ4_NL},
      {Type::kTQ1_0, Type::kQ4_0},  {Type::kTQ2_0, Type::kQ4_0}, {Type::kQ4_0, Type::kQ4_0},
      {Type::kMXFP4, Type::kMXFP4}, {Type::kQ8_0, Type::kQ8_0},
  };
  for (const auto& [type, fitting] : by_32) {
    EXPECT_EQ(FittingType(type, 96), fitting) << quant::Traits(type).name;
    EXPECT_EQ(FittingType(type, 512), type) << quant::Traits(type).name;
    EXPECT_EQ(FittingType(type, 33), Type::kF16) << quant::Traits(type).name;
  }
  EXPECT_EQ(FittingType(Type::kF32, 33), Type::kF32);
}

TEST(MixTest, FactsComeFromTheFile) {
  TestModel model;
  model.builder().SetUint32("llama.block_count", 2);
  model.builder().SetUint32("llama.context_length", 64);
  model.builder().SetUint32("llama.embedding_length", 64);
  model.builder().SetUint32("llama.feed_forward_length", 64);
  model.builder().SetUint32("llama.attention.head_count", 8);
  model.builder().SetUint32("llama.attention.head_count_kv", 2);
  model.Add("token_embd.weight", {64, 32}).Add("blk.1.ffn_up_exps.weight", {64, 4, 6});
  const ModelFacts facts = FactsOf(*model.Open());
  EXPECT_EQ(facts.layers, 2);
  EXPECT_EQ(facts.experts, 6);
  EXPECT_TRUE(facts.tied_output);
  EXPECT_TRUE(facts.shares_heads);
}

}  // namespace
}  // namespace trine::quantize
