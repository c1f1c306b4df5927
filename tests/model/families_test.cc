// Tests every family in the tiny models that `trine make-model` writes: the same bits however it is
// run, and one clear message for anything wrong with the file. golden_test checks the bits.
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "runtime/gguf/test_bytes.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/arch/segment_graph.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> Prompt(int64_t n_vocab) {
  std::vector<int32_t> tokens;
  uint32_t state = 99;
  for (int i = 0; i < 150; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab)));
  }
  return tokens;
}

// A tiny model as tensors that can be removed or changed.
class Parts {
 public:
  explicit Parts(const ModelShape& shape) : bytes_(*MakeModelBytes(shape)) {
    file_ = *gguf::File::FromMemory(bytes_);
    builder_.CopyMetadata(file_->metadata());
  }

  gguf::Builder& metadata() { return builder_; }
  const std::vector<gguf::TensorInfo>& tensors() const { return file_->tensors(); }

  // Returns the file without the named tensor, or with it in other dimensions and all zeros.
  std::vector<std::byte> Without(std::string_view name) const { return Write(name, {}); }
  std::vector<std::byte> WithShape(std::string_view name, std::vector<int64_t> dims) const {
    return Write(name, dims);
  }
  std::vector<std::byte> AsIs() const { return Write("", {}); }

 private:
  std::vector<std::byte> Write(std::string_view name, const std::vector<int64_t>& dims) const {
    gguf::Builder builder = builder_;
    std::vector<std::byte> zeros(1 << 20);
    std::vector<absl::Span<const std::byte>> data;
    for (const gguf::TensorInfo& t : file_->tensors()) {
      if (t.name != name) {
        builder.AddTensor(t.name, t.type, absl::MakeSpan(t.dims, t.rank));
        data.emplace_back(t.data, t.bytes);
      } else if (!dims.empty()) {
        builder.AddTensor(t.name, t.type, dims);
        data.emplace_back(zeros.data(), builder.tensors().back().bytes);
      }
    }
    return *gguf::ToBytes(builder, data);
  }

  std::vector<std::byte> bytes_;
  std::shared_ptr<const gguf::File> file_;
  gguf::Builder builder_;
};

// Returns what is wrong with the file, as far as its metadata shows it: no device is used.
std::string LoadError(const std::vector<std::byte>& bytes) {
  const auto check = [&]() -> absl::Status {
    const auto file = gguf::File::FromMemory(bytes);
    if (!file.ok()) return file.status();
    const auto config = ReadModelConfig(**file);
    if (!config.ok()) return config.status();
    SegmentLimits limits;
    limits.max_context = config->n_ctx_train;
    limits.kv_blocks = limits.max_blocks_per_sequence();
    const auto factors = ReadRopeFactors(**file, config->rope, limits.max_context);
    if (!factors.ok()) return factors.status();
    return BuildSegmentGraph(**file, *config, limits).status();
  };
  const absl::Status status = check();
  if (status.ok()) return "loaded";
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
  return std::string(status.message());
}

class FamilyTest : public testing::TestWithParam<std::string> {
 protected:
  FamilyTest() : shape_(*FindPreset(GetParam())) {}
  void TearDown() override { unsetenv("TRINE_CPU_ISA"); }

  std::string Hash(const EngineOptions& options) const {
    const auto engine = MustLoad(options);
    return engine == nullptr ? "no engine" : HashOf(engine.get(), Prompt(shape_.vocab));
  }

  std::string shape_architecture() const { return shape_.architecture; }
  bool IsFused() const { return shape_architecture() == "phi3"; }

  ModelShape shape_;
};

TEST_P(FamilyTest, GivesTheSameBitsHoweverItIsRun) {
  const auto hashes = nlohmann::json::parse(std::ifstream(TRINE_GOLDEN_FOLDER "/hashes.json"));
  const TempFile file(*MakeModelBytes(shape_));
  EngineOptions options = TestOptions(file.path());
  options.threads = 1;
  const std::string expected = hashes.value(GetParam(), "none is written down");
  EXPECT_EQ(Hash(options), expected);
  for (const int64_t batch : {1, 7, 64}) {
    options.batch_tokens = batch;
    options.threads = batch == 7 ? 3 : 2;
    EXPECT_EQ(Hash(options), expected) << batch << " tokens a pass";
  }
  options = TestOptions(file.path());
  options.placement.split = SplitOf("cpu:1,cpu:" + std::to_string(shape_.layers - 1));
  EXPECT_EQ(Hash(options), expected);
}

TEST_P(FamilyTest, GivesTheSameBitsAtEveryLevel) {
  const auto hashes = nlohmann::json::parse(std::ifstream(TRINE_GOLDEN_FOLDER "/hashes.json"));
  const TempFile file(*MakeModelBytes(shape_));
  int levels = 0;
  for (const char* level :
       {"reference", "baseline", "avx2", "avxvnni", "avx512", "amx", "dotprod", "i8mm"}) {
    setenv("TRINE_CPU_ISA", level, 1);
    const auto engine = Engine::Load(TestOptions(file.path()));
    if (!engine.ok()) continue;  // this machine lacks the level; exactness_test checks reasons
    ++levels;
    EXPECT_EQ(HashOf(engine->get(), Prompt(shape_.vocab)), hashes.value(GetParam(), "")) << level;
  }
  EXPECT_GE(levels, 2);
}

TEST_P(FamilyTest, EveryMissingTensorIsNamed) {
  const Parts parts(shape_);
  for (const gguf::TensorInfo& t : parts.tensors()) {
    const std::string error = LoadError(parts.Without(t.name));
    // Optional tensors: without an output matrix the embedding is used, biases and factors may be
    // absent, and the context decides which of two sets of factors counts.
    const bool optional = t.name == "output.weight" || t.name == "rope_freqs.weight" ||
                          t.name == "rope_factors_short.weight" ||
                          t.name.find(".bias") != std::string_view::npos;
    if (optional && error == "loaded") continue;
    // A missing fused matrix is taken for one that was never fused.
    std::string expected(t.name);
    if (const size_t at = expected.find("attn_qkv"); at != expected.npos) {
      expected.replace(at, 8, "attn_q");
    }
    if (const size_t at = expected.find("ffn_up.weight"); at != expected.npos && IsFused()) {
      expected.replace(at, 6, "ffn_gate");
    }
    EXPECT_THAT(error, HasSubstr(expected));
  }
}

TEST_P(FamilyTest, EveryWrongShapeIsNamed) {
  const Parts parts(shape_);
  for (const gguf::TensorInfo& t : parts.tensors()) {
    std::vector<int64_t> dims(t.dims, t.dims + t.rank);
    dims[0] += quant::Traits(t.type).block_values;
    EXPECT_THAT(LoadError(parts.WithShape(t.name, dims)), HasSubstr(std::string(t.name)));
  }
}

// Removes keys, and gives them values of another type or without sense. A file that still loads is
// sound; any other names the key in one line.
TEST_P(FamilyTest, EveryBadKeyIsNamed) {
  const std::string prefix = std::string(shape_.architecture) + ".";
  std::vector<std::string> keys;
  Parts whole(shape_);
  for (const auto& pair : whole.metadata().pairs()) {
    if (pair.key.rfind(prefix, 0) == 0) keys.push_back(pair.key);
  }
  ASSERT_GT(keys.size(), 8u);
  for (const std::string& key : keys) {
    if (key == prefix + "vocab_size") continue;  // the embedding's rows give it
    Parts parts(shape_);
    parts.metadata().SetString(key, "a text");
    // The type of a rope scaling is a text, and this one is no known one.
    EXPECT_THAT(LoadError(parts.AsIs()), HasSubstr(key)) << "as a text";
    parts.metadata().SetFloat32(key, -1e30f);
    EXPECT_THAT(LoadError(parts.AsIs()), HasSubstr(key)) << "as -1e30";
    // A number that is too large for a size may be right for a float. A changed size may show in a
    // tensor or in another key that does not fit.
    const auto is_named =
        testing::AnyOf(testing::Eq("loaded"), HasSubstr(key), HasSubstr("the model's numbers say"),
                       HasSubstr("must be"), HasSubstr(prefix),
                       HasSubstr("which " + shape_architecture() + " needs"));
    parts.metadata().SetUint32(key, 0xffffffffu);
    EXPECT_THAT(LoadError(parts.AsIs()), testing::AnyOf(testing::Eq("loaded"), HasSubstr(key)))
        << "as 2^32 - 1";
    parts.metadata().SetUint32(key, 0);
    EXPECT_THAT(LoadError(parts.AsIs()), is_named) << key << " as 0";
    parts.metadata().Remove(key);
    EXPECT_THAT(LoadError(parts.AsIs()), is_named) << "without " << key;
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const ModelShape& shape : TinyPresets()) names.push_back(shape.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, FamilyTest, testing::ValuesIn(Names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

// Within the original context the short factors count, beyond it the long ones.
TEST(LongRopeTest, TheContextDecidesWhichFactorsCount) {
  const ModelShape shape = *FindPreset("tiny-phi3-long");
  const TempFile file(*MakeModelBytes(shape));
  std::vector<int32_t> tokens = Prompt(shape.vocab);
  tokens.resize(50);
  const auto hash = [&](int64_t context) {
    EngineOptions options = TestOptions(file.path());
    options.context = context;
    return HashOf(MustLoad(options).get(), tokens);
  };
  EXPECT_EQ(hash(64), hash(50));
  EXPECT_EQ(hash(65), hash(256));
  EXPECT_NE(hash(64), hash(65));
}

}  // namespace
}  // namespace trine
