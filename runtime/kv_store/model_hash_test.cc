#include "runtime/kv_store/model_hash.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "runtime/gguf/test_file.h"
#include "runtime/gguf/writer.h"

namespace trine {
namespace {

using gguf::Builder;
using gguf::Bytes;

Builder LargeModel() {
  Builder builder;
  builder.SetString("general.architecture", "llama");
  builder.SetUint32("llama.block_count", 2);
  builder.AddTensor("big", quant::Type::kF32, {1024, 700});  // several pieces of a MiB
  builder.AddTensor("small", quant::Type::kF16, {3});
  return builder;
}

Hash256 HashOf(const Bytes& bytes, int threads = 1) {
  const auto file = gguf::File::FromMemory(bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  return HashModel(**file, threads);
}

TEST(ModelHashTest, IsTheSameForAnyThreadsAndVersions) {
  const Bytes bytes = gguf::Build(gguf::SmallModel());
  const Hash256 hash = HashOf(bytes);
  EXPECT_EQ(HashOf(bytes, 3), hash);
  EXPECT_EQ(HashOf(gguf::Build(gguf::SmallModel(), 2)), hash);
  EXPECT_NE(HashOf(gguf::Build(LargeModel())), hash);
}

TEST(ModelHashTest, ChangesWithAnyValueAndAnyWeight) {
  const Bytes bytes = gguf::Build(LargeModel());
  const Hash256 hash = HashOf(bytes);
  Builder other = LargeModel();
  other.SetUint32("llama.block_count", 3);
  EXPECT_NE(HashOf(gguf::Build(other)), hash);
  Builder more = LargeModel();
  more.SetUint32("more", 3);
  EXPECT_NE(HashOf(gguf::Build(more)), hash);
  Builder split = LargeModel();
  split.SetUint16("split.no", 0);  // part of how it is split, so not hashed
  EXPECT_EQ(HashOf(gguf::Build(split)), hash);
  const auto file = gguf::File::FromMemory(bytes);
  for (const gguf::TensorInfo& tensor : (*file)->tensors()) {
    for (const uint64_t at : {uint64_t{0}, tensor.bytes / 2, tensor.bytes - 1}) {
      Bytes changed = bytes;
      changed[tensor.offset + at] ^= std::byte{1};
      EXPECT_NE(HashOf(changed), hash) << tensor.name << " " << at;
    }
  }
}

class ModelHashOnceTest : public testing::Test {
 protected:
  ModelHashOnceTest() {
    gguf::WriteWhole(path_, gguf::Build(LargeModel()));
    SetTime(1000000);
    auto folder = KvFolder::Open(temp_.File("store"));
    EXPECT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
  }
  void SetTime(time_t seconds) const {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  std::vector<std::string> Remembered() const {
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(temp_.File("store/models-1"))) {
      names.push_back(e.path().string());
    }
    return names;
  }
  // Opens the model and hashes it with the folder's memory.
  Hash256 Once() const {
    const auto file = gguf::File::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return HashModelOnce(**file, 1, *folder_);
  }

  gguf::TempFolder temp_;
  const std::string path_ = temp_.File("model.gguf");
  std::unique_ptr<KvFolder> folder_;
};

TEST_F(ModelHashOnceTest, IsRememberedWhenTheFileHasSettled) {
  const auto file = gguf::File::Open(path_);
  const Hash256 hash = HashModel(**file, 2);
  EXPECT_EQ(Once(), hash);
  EXPECT_TRUE(Remembered().empty());  // changed a moment ago: it may change again unseen
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  EXPECT_EQ(Once(), hash);
  ASSERT_EQ(Remembered().size(), 1u);

  // An intact remembered hash is used.
  const std::string name = Remembered()[0];
  Bytes kept = gguf::ReadWhole(name);
  ASSERT_EQ(kept.size(), 72u);
  EXPECT_EQ(Once(), hash);
  // One that is damaged in any byte is not used.
  for (size_t i = 0; i < kept.size(); ++i) {
    Bytes changed = kept;
    changed[i] ^= std::byte{4};
    gguf::WriteWhole(name, changed);
    EXPECT_EQ(Once(), hash) << i;
    EXPECT_EQ(gguf::ReadWhole(name), kept) << i;  // and is replaced
  }
  gguf::WriteWhole(name, Bytes(kept.begin(), kept.begin() + 71));
  EXPECT_EQ(Once(), hash);

  // The model changes, but keeps its size and modification time.
  Bytes model = gguf::ReadWhole(path_);
  model[model.size() - 64] ^= std::byte{1};
  gguf::WriteWhole(path_, model);
  SetTime(1000000);
  EXPECT_NE(Once(), hash);
}

}  // namespace
}  // namespace trine
