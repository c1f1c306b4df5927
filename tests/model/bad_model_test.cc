// Loads files that are valid GGUF but not valid models: each gets one clear message.
#include <cstring>
#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

std::string LoadError(const TinyModel& model) {
  const TempFile file(model.ToBytes());
  EngineOptions options = TestOptions(file.path());
  options.threads = 2;
  const auto engine = Engine::Load(options);
  if (engine.ok()) return "loaded";
  const std::string message(engine.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr(file.path()));
  return message;
}

TinyModel Tiny(const char* name = "llama") { return MakeTinyModel(*TinyModelByName(name)); }

size_t IndexOf(const TinyModel& model, const std::string& name) {
  const auto& tensors = model.builder.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
  }
  ADD_FAILURE() << "no tensor " << name;
  return 0;
}

// Returns the file without a tensor, or with the tensor in another shape or type.
TinyModel Change(const TinyModel& from, const std::string& name, const gguf::Builder::Tensor* to) {
  const TempFile file(from.ToBytes());
  const auto opened = gguf::File::Open(file.path());
  TinyModel out;
  out.builder.CopyMetadata((*opened)->metadata());
  for (size_t i = 0; i < from.data.size(); ++i) {
    gguf::Builder::Tensor t = from.builder.tensors()[i];
    std::vector<std::byte> data = from.data[i];
    if (t.name == name) {
      if (to == nullptr) continue;
      t.type = to->type;
      t.dims = to->dims;
      uint64_t row = 0;
      quant::RowBytes(t.type, t.dims[0], &row);
      for (size_t d = 1; d < t.dims.size(); ++d) row *= static_cast<uint64_t>(t.dims[d]);
      data.assign(row, std::byte{0});
    }
    out.builder.AddTensor(t.name, t.type, t.dims);
    out.data.push_back(std::move(data));
  }
  return out;
}

TEST(BadModelTest, TheTinyModelsThemselvesLoad) {
  for (const char* name : {"llama", "llama3", "llama-linear", "llama-odd", "llama-q8", "qwen2",
                           "qwen3", "qwen3-tied"}) {
    EXPECT_EQ(LoadError(Tiny(name)), "loaded") << name;
  }
}

TEST(BadModelTest, AnUnknownArchitectureIsNamedWithTheKnownOnes) {
  TinyModel model = Tiny();
  model.builder.SetString("general.architecture", "mamba");
  EXPECT_THAT(LoadError(model), HasSubstr("unknown architecture \"mamba\" (general.architecture); "
                                          "known are: llama, qwen2, qwen3"));
}

TEST(BadModelTest, EveryMissingTensorIsNamed) {
  const TinyModel model = Tiny("qwen3");
  for (const auto& tensor : model.builder.tensors()) {
    if (tensor.name == "output.weight") continue;  // without it the embedding is used
    EXPECT_THAT(LoadError(Change(model, tensor.name, nullptr)), HasSubstr(tensor.name));
  }
}

TEST(BadModelTest, EveryWrongShapeIsNamed) {
  const TinyModel model = Tiny("qwen2");
  for (const auto& tensor : model.builder.tensors()) {
    gguf::Builder::Tensor wrong = tensor;
    wrong.dims[0] += 32;
    EXPECT_THAT(LoadError(Change(model, tensor.name, &wrong)), HasSubstr(tensor.name));
  }
}

TEST(BadModelTest, ATypeNoWeightHasIsRefused) {
  gguf::Builder::Tensor wrong{"", quant::Type::kI32, {96}, 0};
  EXPECT_THAT(LoadError(Change(Tiny(), "blk.0.attn_norm.weight", &wrong)), HasSubstr("type i32"));
  wrong.dims = {96, 96};
  EXPECT_THAT(LoadError(Change(Tiny(), "blk.0.attn_q.weight", &wrong)), HasSubstr("type i32"));
  wrong.type = quant::Type::kQ8_0;
  wrong.dims = {96};
  EXPECT_THAT(LoadError(Change(Tiny(), "output_norm.weight", &wrong)),
              HasSubstr("norms and biases are f32, f16 or bf16"));
}

TEST(BadModelTest, ValuesThatAreNoNumbersAreFound) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TinyModel model = Tiny();
    std::vector<std::byte>& data = model.data[IndexOf(model, "blk.1.ffn_up.weight")];
    std::memcpy(data.data() + (7 * 96 + 5) * 4, &bad, 4);
    EXPECT_THAT(LoadError(model), HasSubstr("blk.1.ffn_up.weight holds a value or scale that is no "
                                            "finite number, in row 7"));
  }
  TinyModel model = Tiny("llama-q8");
  const uint16_t infinite = 0x7c00;
  std::memcpy(model.data[IndexOf(model, "token_embd.weight")].data() + 34 * 3, &infinite, 2);
  EXPECT_THAT(LoadError(model), HasSubstr("token_embd.weight"));
}

TEST(BadModelTest, ValuesOutOfRangeAreBroughtIntoIt) {
  TinyModel model = Tiny();
  const float values[] = {1e30f, -1e30f, 1e-30f, -0.0f};
  std::memcpy(model.data[IndexOf(model, "blk.0.ffn_norm.weight")].data(), values, sizeof(values));
  const TempFile file(model.ToBytes());
  const auto engine = MustLoad(TestOptions(file.path()));
  for (const auto& row : AllLogits(engine.get(), {1, 2, 3})) {
    for (float x : row) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(BadModelTest, NumbersThatMakeNoSenseAreNamed) {
  const auto error = [](const std::function<void(gguf::Builder*)>& spoil) {
    TinyModel model = Tiny();
    spoil(&model.builder);
    return LoadError(model);
  };
  EXPECT_THAT(error([](auto* b) { b->SetUint32("llama.block_count", 0); }),
              HasSubstr("llama.block_count"));
  EXPECT_THAT(error([](auto* b) { b->SetUint32("llama.block_count", 4000000000u); }),
              HasSubstr("llama.block_count"));
  EXPECT_THAT(error([](auto* b) { b->SetString("llama.block_count", "three"); }),
              HasSubstr("llama.block_count"));
  EXPECT_THAT(error([](auto* b) { b->Remove("llama.embedding_length"); }),
              HasSubstr("llama.embedding_length"));
  EXPECT_THAT(error([](auto* b) { b->SetUint32("llama.attention.head_count_kv", 4); }),
              HasSubstr("no multiple of the 4 key-value heads"));
  EXPECT_THAT(error([](auto* b) { b->SetUint32("llama.rope.dimension_count", 17); }),
              HasSubstr("llama.rope.dimension_count is 17"));
  EXPECT_THAT(error([](auto* b) { b->SetFloat32("llama.rope.freq_base", -1); }),
              HasSubstr("llama.rope.freq_base"));
  EXPECT_THAT(error([](auto* b) { b->SetFloat32("llama.attention.layer_norm_rms_epsilon", 0); }),
              HasSubstr("epsilon"));
  EXPECT_THAT(error([](auto* b) { b->SetString("llama.rope.scaling.type", "dynamic"); }),
              HasSubstr("\"dynamic\"; known here: none, linear"));
  EXPECT_THAT(error([](auto* b) { b->SetUint32("llama.expert_count", 8); }),
              HasSubstr("llama.expert_used_count"));
  TinyModel dense = Tiny("qwen2");
  dense.builder.SetUint32("qwen2.expert_count", 8);
  dense.builder.SetUint32("qwen2.expert_used_count", 2);
  EXPECT_THAT(LoadError(dense), HasSubstr("mixture of experts"));
  EXPECT_THAT(error([](auto* b) { b->SetString("tokenizer.ggml.model", "bert"); }),
              HasSubstr("bert"));
  EXPECT_THAT(error([](auto* b) { b->Remove("tokenizer.ggml.tokens"); }),
              HasSubstr("tokenizer.ggml.tokens"));
}

TEST(BadModelTest, AVocabularyOfAnotherSizeIsRefused) {
  TinyModel model = Tiny();
  const std::vector<std::string> tokens(10, "x");
  model.builder.SetStrings("tokenizer.ggml.tokens", tokens);
  EXPECT_NE(LoadError(model), "loaded");
}

TEST(BadModelTest, TensorsNobodyReadsAreRefused) {
  TinyModel model = Tiny();
  const int64_t dims[] = {4};
  model.builder.AddTensor("blk.0.attn_sinks.weight", quant::Type::kF32, dims);
  model.data.emplace_back(16);
  EXPECT_THAT(LoadError(model), HasSubstr("1 tensor that llama has no use for, such as "
                                          "blk.0.attn_sinks.weight"));
}

TEST(BadModelTest, AFileCutShortAnywhereIsRefused) {
  const std::vector<std::byte> whole = Tiny().ToBytes();
  for (size_t keep = 0; keep < whole.size(); keep += 1 + whole.size() / 61) {
    const TempFile file(
        std::vector<std::byte>(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(keep)));
    EXPECT_FALSE(Engine::Load(TestOptions(file.path())).ok()) << keep;
  }
}

}  // namespace
}  // namespace trine
