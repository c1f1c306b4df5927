// Whole files: the same bytes however they are made, readable, and nothing left after a failure.
#include "runtime/make_model/make_model.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "kernels/quant/test_util.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using quant::Type;

ModelShape Preset(const char* name) {
  const auto shape = FindPreset(name);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return shape.ok() ? *shape : ModelShape{};
}

// A quantised model with tensors large enough for a pool.
ModelShape Small() {
  ModelShape shape = Preset("tales-27m");
  shape.layers = 1;
  shape.vocab = 2048;
  return shape;
}

std::vector<std::byte> Bytes(const ModelShape& shape, const MakeModelOptions& options = {}) {
  auto bytes = MakeModelBytes(shape, options);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>();
}

uint64_t HashOf(const std::vector<std::byte>& bytes) {
  quant::Hash hash;
  hash.Add(bytes.data(), bytes.size());
  return hash.value();
}

class MakeModelFileTest : public ::testing::Test {
 protected:
  MakeModelFileTest()
      : folder_(fs::path(::testing::TempDir()) / ("make_model." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~MakeModelFileTest() override { fs::remove_all(folder_); }

  std::string Path(const char* name) const { return (folder_ / name).string(); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

// Golden logits depend on these bytes and become worthless when they change. Bytes of quantised
// models also change with the encoders.
TEST(MakeModelTest, BytesArePinned) {
  const struct {
    const char* name;
    uint64_t hash;
  } pinned[] = {
      {"tiny-llama", 0x23d3a5fccc6014abu},      {"tiny-llama3", 0xa7255b53560dbbe7u},
      {"tiny-llama-yarn", 0x9af4984b2df7444fu}, {"tiny-llama-q4_k", 0x7b5e1c0c46f20fe7u},
      {"tiny-mixtral", 0x7e620b40d82b074au},    {"tiny-qwen2-tied", 0x98d04d9a77bcaa20u},
      {"tiny-qwen2moe", 0xeec6559661c7a8b2u},   {"tiny-qwen3", 0xe06233bbcd53eee4u},
      {"tiny-qwen3moe", 0x688f895a5e76661cu},   {"tiny-gemma2", 0x6534d08b374369bbu},
      {"tiny-gemma3", 0xd23c34d758a5c6a7u},     {"tiny-phi3", 0x8b385d872bf00413u},
      {"tiny-phi3-long", 0x207d061f5f71a043u},  {"tiny-olmo2", 0xd8e1eb6fc7819615u},
      {"tiny-granite", 0x672a1293d61627dcu},    {"tiny-granitemoe", 0xe61a7e63585e8fc3u},
      {"tiny-smollm3", 0xee6edd4bd8f69fb1u},    {"tiny-starcoder2", 0xadeb28f0a7a96518u},
      {"tiny-gpt-oss", 0x222798a84ca1411cu},
  };
  EXPECT_EQ(std::size(pinned), TinyPresets().size());
  for (const auto& [name, hash] : pinned) {
    EXPECT_EQ(HashOf(Bytes(Preset(name))), hash) << name;
  }
  EXPECT_EQ(HashOf(Bytes(Small())), 0x00f4f75ffd7e87f8u);  // from a pool of blocks
}

MakeModelOptions As(const char* mix, bool pure = false) {
  return {.mix = *quantize::FindMix(mix), .pure = pure};
}

TEST(MakeModelTest, ThreadsDoNotShow) {
  ModelShape shape = Small();
  shape.vocab = 30000;                       // enough work for all threads at once
  for (const char* mix : {"F32", "Q8_0"}) {  // random, and from a pool
    MakeModelOptions options = As(mix);
    const std::vector<std::byte> one = Bytes(shape, options);
    options.threads = 8;
    EXPECT_EQ(one, Bytes(shape, options)) << mix;
    options.seed = 2;
    EXPECT_NE(one, Bytes(shape, options)) << mix;
  }
}

TEST(MakeModelTest, TypesAreThoseOfTheMix) {
  const auto type_of = [](const char* preset, const MakeModelOptions& options,
                          const std::string& name) {
    const auto plan = PlanModel(Preset(preset), options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    for (const TensorSpec& tensor : plan->tensors) {
      if (tensor.name == name) return tensor.type;
    }
    ADD_FAILURE() << name;
    return Type::kI32;
  };
  EXPECT_EQ(type_of("gpt-oss-20b", {}, "blk.0.ffn_up_exps.weight"), Type::kMXFP4);
  EXPECT_EQ(type_of("gpt-oss-20b", {}, "output.weight"), Type::kQ8_0);
  EXPECT_EQ(type_of("gpt-oss-20b", As("MXFP4"), "blk.0.ffn_up_exps.weight"), Type::kMXFP4);
  EXPECT_EQ(type_of("gpt-oss-20b", As("MXFP4"), "output.weight"), Type::kQ8_0);
  EXPECT_EQ(type_of("gpt-oss-20b", As("MXFP4", true), "output.weight"), Type::kMXFP4);
  EXPECT_EQ(type_of("llama-3.1-8b", As("Q4_K_M"), "blk.0.attn_q.weight"), Type::kQ4_K);
  EXPECT_EQ(type_of("llama-3.1-8b", As("Q4_K_M"), "blk.0.attn_v.weight"), Type::kQ6_K);
  EXPECT_EQ(type_of("llama-3.1-8b", As("Q4_K_M"), "output.weight"), Type::kQ6_K);
  EXPECT_EQ(type_of("llama-3.1-8b", As("Q4_K_M", true), "output.weight"), Type::kQ4_K);
  // A tied embedding gives the logits; rows of 896 are not whole blocks of 256.
  EXPECT_EQ(type_of("qwen3-4b", As("Q4_K_M"), "token_embd.weight"), Type::kQ6_K);
  EXPECT_EQ(type_of("qwen2.5-0.5b", As("Q4_K_M"), "blk.0.attn_q.weight"), Type::kQ5_0);
  for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.0.ffn_up_exps.bias",
                           "blk.0.attn_sinks.weight", "blk.0.attn_norm.weight"}) {
    EXPECT_EQ(type_of("gpt-oss-20b", As("Q4_0", true), name), Type::kF32) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PlanModel(Small(), As("COPY")).status()));
}

TEST(MakeModelTest, TheFileNamesItsType) {
  const auto file_type = [](const ModelShape& shape, const MakeModelOptions& options) {
    const std::vector<std::byte> bytes = Bytes(shape, options);
    return gguf::FileTypeOf((*gguf::File::FromMemory(bytes))->metadata());
  };
  EXPECT_EQ(file_type(Small(), {}), "Q8_0");
  EXPECT_EQ(file_type(Small(), As("Q4_K_M")), "Q4_K_M");
  EXPECT_EQ(file_type(Preset("tiny-gpt-oss"), {}), "MXFP4");
  EXPECT_EQ(file_type(Preset("tiny-llama-q4_k"), {}), "Q4_K_S");
  EXPECT_EQ(file_type(Preset("tiny-gemma2"), {}), "F32");
}

TEST_F(MakeModelFileTest, AFileHoldsTheBytesMadeInMemory) {
  const ModelShape shape = Small();
  double last = 0;
  const absl::Status status = MakeModel(shape, {.threads = 2}, Path("a.gguf"), [&](double done) {
    EXPECT_GE(done, last);
    last = done;
    return true;
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(last, 1.0);
  std::ifstream in(Path("a.gguf"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::vector<std::byte> bytes = Bytes(shape);
  ASSERT_EQ(text.size(), bytes.size());
  EXPECT_EQ(std::memcmp(text.data(), bytes.data(), bytes.size()), 0);
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(MakeModelFileTest, SplitFilesAreOneModel) {
  const absl::Status status = MakeModel(Small(), {.max_part_bytes = 500'000}, Path("split.gguf"));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(FileCount(), 1u);
  const fs::path first = *fs::directory_iterator(folder_);
  const auto file = gguf::File::Open(first.string());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->tensors().size(), PlanModel(Small(), {})->tensors.size());
}

TEST_F(MakeModelFileTest, NothingIsLeftOfWhatWasGivenUp) {
  const absl::Status status =
      MakeModel(Small(), {}, Path("a.gguf"), [](double done) { return done < 0.5; });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(MakeModelFileTest, RefusesWhatNoDiskHolds) {
  ModelShape shape = Preset("mixtral-8x7b");
  shape.layers = 512;
  shape.experts = 512;
  const absl::Status status = MakeModel(shape, As("F32"), Path("a.gguf"));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("the disk has room for"), absl::string_view::npos) << status;
  EXPECT_EQ(FileCount(), 0u);
  EXPECT_FALSE(MakeModel(Small(), {}, Path("no/such/folder.gguf")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(MakeModelBytes(shape).status()));
}

}  // namespace
}  // namespace trine
