// What presets must meet: published sizes, readable vocabularies, sensible spreads of values.
#include "runtime/make_model/presets.h"

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant/dequantize.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/make_model/tensor_list.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/make_model/weights.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {
namespace {

std::vector<ModelShape> AllPresets() {
  std::vector<ModelShape> all;
  for (const auto& presets : {PublishedPresets(), TinyPresets()}) {
    all.insert(all.end(), presets.begin(), presets.end());
  }
  return all;
}

TEST(PresetsTest, EveryPresetCanBePlanned) {
  std::set<std::string> names;
  for (ModelShape shape : AllPresets()) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    const auto whole = PlanModel(shape, {});
    ASSERT_TRUE(whole.ok()) << shape.name << ": " << whole.status();
    shape.layers = 1;
    const auto cut = PlanModel(shape, {});
    ASSERT_TRUE(cut.ok()) << shape.name << ": " << cut.status();
    EXPECT_LE(cut->bytes, whole->bytes);
    EXPECT_EQ(cut->tensors.size(), cut->builder.tensors().size());
    shape.vocab = 1000;
    for (const quantize::Mix& mix : quantize::AllMixes()) {
      if (!mix.copy) {
        EXPECT_TRUE(PlanModel(shape, {.mix = &mix}).ok()) << shape.name << " as " << mix.name;
      }
    }
  }
  EXPECT_EQ(FindPreset("qwen3-4b")->embd, 2560);
  for (const PresetAlias& alias : PresetAliases()) {
    EXPECT_TRUE(names.insert(std::string(alias.alias)).second) << alias.alias;
    EXPECT_EQ(FindPreset(alias.alias)->name, alias.name);
  }
  const auto unknown = FindPreset("qwen9");
  EXPECT_TRUE(absl::IsNotFound(unknown.status()));
  EXPECT_NE(unknown.status().message().find("qwen3-4b"), absl::string_view::npos);
}

TEST(PresetsTest, ParametersAreThosePublished) {
  const struct {
    const char* name;
    double billions;
  } published[] = {
      {"llama-3.1-8b", 8.03},  {"llama-3.2-1b", 1.236},  {"llama-3.2-3b", 3.21},
      {"mistral-7b", 7.25},    {"mixtral-8x7b", 46.7},   {"qwen2.5-0.5b", 0.494},
      {"qwen2.5-1.5b", 1.54},  {"qwen2.5-7b", 7.62},     {"qwen1.5-moe-a2.7b", 14.3},
      {"qwen3-0.6b", 0.596},   {"qwen3-4b", 4.02},       {"qwen3-30b-a3b", 30.5},
      {"gemma2-2b", 2.61},     {"gemma3-1b", 1.0},       {"gemma3-4b", 3.88},
      {"phi3-mini-4k", 3.82},  {"phi3-mini-128k", 3.82}, {"olmo2-1b", 1.48},
      {"olmo2-7b", 7.3},       {"granite-3.3-2b", 2.53}, {"smollm3-3b", 3.08},
      {"starcoder2-3b", 3.03}, {"gpt-oss-20b", 20.9},    {"tales-27m", 0.0273},
  };
  EXPECT_EQ(std::size(published), PublishedPresets().size());
  for (const auto& [name, billions] : published) {
    const auto shape = FindPreset(name);
    ASSERT_TRUE(shape.ok()) << shape.status();
    const double parameters = static_cast<double>(PlanModel(*shape, {})->parameters);
    EXPECT_NEAR(parameters * 1e-9 / billions, 1, 0.02) << name;
  }
}

TEST(PresetsTest, TinyFilesAreSmallAndTheirVocabulariesWriteAnyText) {
  const std::string texts[] = {"The quick brown fox", "Hello, world!\n  123  \t",
                               "\xc3\xb1 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82"};
  for (const ModelShape& shape : TinyPresets()) {
    const auto bytes = MakeModelBytes(shape);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_LT(bytes->size(), 1'500'000u) << shape.name;
    const auto file = gguf::File::FromMemory(*bytes);
    ASSERT_TRUE(file.ok()) << shape.name << ": " << file.status();
    const auto data = ReadTokenizerData((*file)->metadata());
    ASSERT_TRUE(data.ok()) << shape.name << ": " << data.status();
    EXPECT_EQ(static_cast<int64_t>(data->tokens.size()), shape.vocab);
    const auto tokenizer = Tokenizer::Create(*data);
    ASSERT_TRUE(tokenizer.ok()) << shape.name << ": " << tokenizer.status();
    for (const std::string& text : texts) {
      const auto ids = (*tokenizer)->Encode(text, {.add_special = false, .parse_special = true});
      ASSERT_TRUE(ids.ok()) << ids.status();
      Detokenizer detokenizer(*tokenizer, {.special = SpecialText::kHide, .at_start = true});
      std::string back;
      for (const int32_t id : *ids) detokenizer.Push(id, &back);
      EXPECT_EQ(back + detokenizer.Flush(), text) << shape.name;
    }
    const auto ids = (*tokenizer)->Encode("the hen", {.add_special = true, .parse_special = true});
    EXPECT_EQ((*ids)[0] == data->bos, shape.vocabulary.add_bos) << shape.name;
    EXPECT_LE(ids->size(), 7u) << shape.name;  // words are merged, not spelt
    const auto end =
        (*tokenizer)->Encode("<|im_end|>", {.add_special = false, .parse_special = true});
    EXPECT_EQ(end->size(), 1u) << shape.name;
  }
}

// Checks a large quantised tensor, made from a pool of blocks, and a small one in F32.
TEST(PresetsTest, ValuesAreSpreadAsListed) {
  ModelShape shape = *FindPreset("tales-27m");
  shape.layers = 1;
  for (const char* name : {"Q8_0", "Q4_K_M", "F16"}) {
    const MakeModelOptions options = {.mix = *quantize::FindMix(name)};
    const auto bytes = MakeModelBytes(shape, options);
    const auto file = gguf::File::FromMemory(*bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto plan = PlanModel(shape, options);
    for (const TensorSpec& spec : plan->tensors) {
      const gguf::TensorInfo* tensor = (*file)->FindTensor(spec.name);
      ASSERT_NE(tensor, nullptr);
      const int64_t n = spec.dims[0] * spec.rows();
      std::vector<float> values(static_cast<size_t>(n));
      quant::DequantizeRow(spec.type, tensor->data, n, values.data());
      double sum = 0, squares = 0;
      for (const float x : values) {
        sum += x;
        squares += (x - double{spec.middle}) * (x - double{spec.middle});
      }
      const double deviation = std::sqrt(squares / static_cast<double>(n));
      const double slack = 6 / std::sqrt(static_cast<double>(n));  // what chance may cause
      EXPECT_NEAR(deviation / spec.spread, 1, slack + 0.02) << spec.name;
      EXPECT_NEAR((sum / static_cast<double>(n) - spec.middle) / spec.spread, 0, slack + 0.005)
          << spec.name;
    }
  }
}

TEST(RandomValuesTest, AreAsGoodAsIndependent) {
  const RandomValues a(1, "a"), b(1, "b"), other_seed(2, "a");
  constexpr int kCount = 100'000;
  double square = 0, fourth = 0, with_next = 0, with_b = 0, with_other = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = a.Normal(static_cast<uint64_t>(i));
    square += x * x;
    fourth += x * x * x * x;
    with_next += x * a.Normal(static_cast<uint64_t>(i) + 1);
    with_b += x * b.Normal(static_cast<uint64_t>(i));
    with_other += x * other_seed.Normal(static_cast<uint64_t>(i));
  }
  EXPECT_NEAR(square / kCount, 1, 0.02);
  EXPECT_NEAR(fourth / kCount, 2.7, 0.1);  // four uniform numbers; a Gaussian has 3
  EXPECT_NEAR(with_next / kCount, 0, 0.02);
  EXPECT_NEAR(with_b / kCount, 0, 0.02);
  EXPECT_NEAR(with_other / kCount, 0, 0.02);
}

TEST(RopeFactorsTest, Llama3FollowsTheFormula) {
  const ModelShape shape = *FindPreset("llama-3.1-8b");
  const std::vector<RopeFactors> factors = MakeRopeFactors(shape);
  ASSERT_EQ(factors.size(), 1u);
  EXPECT_EQ(factors[0].name, "rope_freqs.weight");
  ASSERT_EQ(factors[0].values.size(), 64u);
  for (int i = 0; i < 64; ++i) {
    const double wave = 2 * 3.14159265358979 * std::pow(500000.0, i / 64.0);
    const double smooth = (8192 / wave - 1) / 3;
    const double wanted = wave < 8192 / 4.0 ? 1 : wave > 8192 ? 8 : 1 / ((1 - smooth) / 8 + smooth);
    EXPECT_NEAR(factors[0].values[static_cast<size_t>(i)], wanted, 1e-5) << i;
  }
}

TEST(RopeFactorsTest, LongRopeHasTwoSets) {
  const std::vector<RopeFactors> factors = MakeRopeFactors(*FindPreset("tiny-phi3-long"));
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_EQ(factors[0].values.size(), 8u);  // 16 values are rotated
  EXPECT_NE(factors[0].values, factors[1].values);
  EXPECT_TRUE(MakeRopeFactors(*FindPreset("tiny-llama")).empty());
}

TEST(ModelShapeTest, RefusesWhatNoReaderTakes) {
  const ModelShape good = *FindPreset("tiny-qwen2moe");
  ASSERT_TRUE(CheckShape(good).ok());
  const struct {
    void (*spoil)(ModelShape*);
    const char* part;
  } cases[] = {
      {[](ModelShape* s) { s->layers = 0; }, "layers is 0; expected 1 to 512"},
      {[](ModelShape* s) { s->layers = 513; }, "layers is 513"},
      {[](ModelShape* s) { s->vocab = 100; }, "the vocabulary is 100"},
      {[](ModelShape* s) { s->vocab = int64_t{1} << 40; }, "the vocabulary is"},
      {[](ModelShape* s) { s->kv_heads = 4; }, "no multiple of 4 key-value heads"},
      {[](ModelShape* s) { s->kv_heads = 0; }, "key-value heads is 0"},
      {[](ModelShape* s) { s->head_dim = 32; }, "are not the width 96"},
      {[](ModelShape* s) { s->experts_used = 6; }, "experts used is 6"},
      {[](ModelShape* s) { s->experts_used = 0; }, "experts used is 0"},
      {[](ModelShape* s) { s->tied = true; }, "an output matrix of its own"},
      {[](ModelShape* s) { s->rope.dims = 18; }, "rope turns 18 values of a head of 16"},
      {[](ModelShape* s) { s->norm_eps = 0; }, "epsilon"},
      {[](ModelShape* s) { s->architecture = "gpt4"; }, "'gpt4' is not known"},
      {[](ModelShape* s) { s->architecture = "gemma2"; }, "no output matrix of its own"},
      {[](ModelShape* s) { s->rope.scaling = RopeScaling::kYarn; }, "original context is 0"},
  };
  for (const auto& [spoil, part] : cases) {
    ModelShape shape = good;
    spoil(&shape);
    const absl::Status status = PlanModel(shape, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << part;
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace trine
