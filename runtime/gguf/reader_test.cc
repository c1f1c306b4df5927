// Valid files: what was written is read, by every way of opening.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "runtime/gguf/format.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/test_file.h"

namespace trine::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using FilePtr = std::shared_ptr<const File>;

void ExpectTensorsOf(const Builder& builder, const File& file) {
  const std::vector<Bytes> data = DataFor(builder);
  ASSERT_EQ(file.tensors().size(), builder.tensors().size());
  uint64_t total = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    const Builder::Tensor& expected = builder.tensors()[i];
    const TensorInfo* tensor = file.FindTensor(expected.name);
    ASSERT_NE(tensor, nullptr) << expected.name;
    EXPECT_EQ(tensor, &file.tensors()[i]);
    EXPECT_EQ(tensor->name, expected.name);
    EXPECT_EQ(tensor->type, expected.type);
    ASSERT_EQ(tensor->rank, expected.dims.size());
    for (size_t d = 0; d < 4; ++d) {
      EXPECT_EQ(tensor->dims[d], d < expected.dims.size() ? expected.dims[d] : 1);
    }
    ASSERT_EQ(tensor->bytes, data[i].size());
    EXPECT_EQ(std::memcmp(tensor->data, data[i].data(), data[i].size()), 0) << expected.name;
    const Part& part = file.parts().at(tensor->part);
    EXPECT_EQ(tensor->data, part.data + tensor->offset);
    total += tensor->bytes;
  }
  EXPECT_EQ(file.tensor_bytes(), total);
}

void ExpectEveryValueType(const Metadata& metadata) {
  EXPECT_EQ(metadata.String("general.architecture").value(), "llama");
  const auto integer = [&](const char* key) {
    return metadata.Integer(key, INT64_MIN, INT64_MAX).value();
  };
  EXPECT_EQ(integer("test.u8"), 200);
  EXPECT_EQ(integer("test.i8"), -100);
  EXPECT_EQ(integer("test.u16"), 60000);
  EXPECT_EQ(integer("test.i16"), -30000);
  EXPECT_EQ(integer("test.u32"), 4000000000);
  EXPECT_EQ(integer("test.i32"), -2000000000);
  EXPECT_EQ(integer("test.i64"), INT64_MIN);
  EXPECT_EQ(std::get<uint64_t>(metadata.Find("test.u64")->value), UINT64_MAX);
  EXPECT_EQ(metadata.Float("test.f32").value(), 0.5);
  EXPECT_EQ(metadata.Float("test.f64").value(), -0.1);
  EXPECT_EQ(metadata.Float("test.u8").value(), 200.0);
  EXPECT_EQ(metadata.Float("test.u64").value(), 0x1p64);
  EXPECT_TRUE(metadata.Bool("test.yes").value());
  EXPECT_FALSE(metadata.Bool("test.no").value());
  EXPECT_THAT(metadata.ArrayOf("test.strings").value()->strings,
              ElementsAre("a", "", std::string_view("\0b", 2)));
  EXPECT_EQ(metadata.ArrayOf("test.strings").value()->size, 3u);
  EXPECT_THAT(metadata.ArrayOf("test.i32s").value()->integers, ElementsAre(-1, 2, 3));
  EXPECT_THAT(metadata.ArrayOf("test.u32s").value()->integers, ElementsAre(4, 4000000000));
  EXPECT_THAT(metadata.ArrayOf("test.f32s").value()->floats, ElementsAre(0.25, -1.5));
  EXPECT_THAT(metadata.ArrayOf("test.bools").value()->integers, ElementsAre(1, 0, 1));
  EXPECT_THAT(metadata.ArrayOf("test.none").value()->integers, IsEmpty());
}

TEST(ReaderTest, ReadsEveryTensorAndValueType) {
  TempFolder folder;
  const Builder builder = SmallModel();
  for (const uint32_t version : {2u, 3u}) {
    const Bytes bytes = Build(builder, version);
    const std::string path = folder.File("small.gguf");
    WriteWhole(path, bytes);
    const absl::StatusOr<FilePtr> files[] = {
        File::Open(path), File::Open(path, {.use_mmap = false}), File::FromMemory(bytes, path)};
    for (const absl::StatusOr<FilePtr>& file : files) {
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ((*file)->version(), version);
      EXPECT_EQ((*file)->mapped(), file->get() == files[0]->get());
      ExpectTensorsOf(builder, **file);
      ExpectEveryValueType((*file)->metadata());
      EXPECT_EQ((*file)->metadata().entries().size(), builder.pairs().size());
      EXPECT_EQ((*file)->metadata().entries()[1].key, "test.u8");
      EXPECT_EQ((*file)->FindTensor("t.other"), nullptr);
      EXPECT_EQ((*file)->FindTensor(""), nullptr);
    }
  }
}

TEST(ReaderTest, MemoryIsWholePages) {
  TempFolder folder;
  const Bytes bytes = Build(SmallModel());
  const std::string path = folder.File("small.gguf");
  WriteWhole(path, bytes);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ASSERT_NE(bytes.size() % page, 0u);
  for (const bool use_mmap : {true, false}) {
    const FilePtr file = File::Open(path, {use_mmap}).value();
    ASSERT_EQ(file->parts().size(), 1u);
    const Part& part = file->parts()[0];
    EXPECT_EQ(part.path, path);
    EXPECT_EQ(part.file_bytes, bytes.size());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data) % page, 0u);
    EXPECT_EQ(part.mapped_bytes, (bytes.size() + page - 1) / page * page);
    for (uint64_t i = part.file_bytes; i < part.mapped_bytes; ++i) {
      ASSERT_EQ(part.data[i], std::byte{0});
    }
  }
}

TEST(ReaderTest, KeepsTheFileWhenItsNameIsReplaced) {
  TempFolder folder;
  const Builder builder = SmallModel();
  const std::string path = folder.File("small.gguf");
  WriteWhole(path, Build(builder));
  const FilePtr file = File::Open(path).value();
  WriteWhole(folder.File("other"), Bytes(10));
  std::filesystem::rename(folder.File("other"), path);
  ExpectTensorsOf(builder, *file);
}

TEST(ReaderTest, FollowsTheAlignmentOfTheFile) {
  for (const uint32_t alignment : {8u, 64u, 4096u, 65536u}) {
    Builder builder = SmallModel();
    builder.SetUint32(kAlignmentKey, alignment);
    const FilePtr file = File::FromMemory(Build(builder)).value();
    ExpectTensorsOf(builder, *file);
    for (const TensorInfo& tensor : file->tensors()) EXPECT_EQ(tensor.offset % alignment, 0u);
  }
}

TEST(ReaderTest, ReadsAVocabularyWithoutTensors) {
  Builder builder;
  builder.SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  Bytes bytes = Build(builder);
  const FilePtr padded = File::FromMemory(bytes).value();
  EXPECT_THAT(padded->tensors(), IsEmpty());
  // There is no data section, so its padding is not needed either.
  bytes.resize(kHeaderBytes + builder.pairs()[0].value.size() + 8 + builder.pairs()[0].key.size());
  const absl::StatusOr<FilePtr> exact = File::FromMemory(bytes);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ((*exact)->metadata().ArrayOf("tokenizer.ggml.tokens").value()->size, 2u);
}

TEST(ReaderTest, ReadsNestedArrays) {
  Value inner_1{static_cast<uint32_t>(ValueType::kArray), Array{}};
  auto& one = std::get<Array>(inner_1.value);
  one.element_type = static_cast<uint32_t>(ValueType::kInt8);
  one.integers = {-7};
  one.size = 1;
  Value outer{static_cast<uint32_t>(ValueType::kArray), Array{}};
  auto& nested = std::get<Array>(outer.value);
  nested.element_type = static_cast<uint32_t>(ValueType::kArray);
  nested.nested = {inner_1, inner_1};
  nested.size = 2;
  Builder builder;
  builder.SetValue("nested", outer);
  const FilePtr file = File::FromMemory(Build(builder)).value();
  const Array* array = file->metadata().ArrayOf("nested").value();
  ASSERT_EQ(array->nested.size(), 2u);
  EXPECT_THAT(std::get<Array>(array->nested[1].value).integers, ElementsAre(-7));
}

TEST(ReaderTest, MetadataErrorsNameTheKey) {
  const FilePtr file = File::FromMemory(Build(SmallModel())).value();
  const Metadata& metadata = file->metadata();
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_TRUE(absl::IsNotFound(metadata.String("none").status()));
  EXPECT_EQ(message(metadata.String("none")), "the metadata key 'none' is missing");
  EXPECT_EQ(message(metadata.String("test.i32")),
            "the metadata key 'test.i32' is an int32; expected a string");
  EXPECT_EQ(message(metadata.Integer("test.u8", 1, 100)),
            "the metadata key 'test.u8' is 200; expected 1 to 100");
  EXPECT_EQ(message(metadata.Integer("test.u64", 1, INT64_MAX)),
            "the metadata key 'test.u64' is 18446744073709551615; expected 1 to "
            "9223372036854775807");
  EXPECT_EQ(message(metadata.Integer("test.f32", 0, 1)),
            "the metadata key 'test.f32' is a float32; expected an integer");
  EXPECT_EQ(message(metadata.Float("test.yes")),
            "the metadata key 'test.yes' is a bool; expected a number");
  EXPECT_EQ(message(metadata.Bool("test.u8")),
            "the metadata key 'test.u8' is a uint8; expected a bool");
  EXPECT_EQ(message(metadata.ArrayOf("test.u8")),
            "the metadata key 'test.u8' is a uint8; expected an array");
  EXPECT_EQ(message(metadata.String("test.i32s")),
            "the metadata key 'test.i32s' is an array of int32; expected a string");
  EXPECT_TRUE(absl::IsInvalidArgument(metadata.Bool("test.u8").status()));

  EXPECT_EQ(metadata.StringOr("none", "else").value(), "else");
  EXPECT_EQ(metadata.IntegerOr("none", 0, 5, 3).value(), 3);
  EXPECT_EQ(metadata.FloatOr("none", 1.5).value(), 1.5);
  EXPECT_TRUE(metadata.BoolOr("none", true).value());
  EXPECT_EQ(metadata.IntegerOr("test.u8", 0, 255, 3).value(), 200);
  EXPECT_FALSE(metadata.IntegerOr("test.u8", 0, 5, 3).ok());
  EXPECT_FALSE(metadata.StringOr("test.u8", "else").ok());
  EXPECT_FALSE(metadata.FloatOr("general.architecture", 1).ok());
  EXPECT_FALSE(metadata.BoolOr("test.u8", true).ok());
}

class SplitTest : public ::testing::Test {
 protected:
  SplitTest() : builder_(SmallModel()) {
    auto writer =
        Writer::Create(folder_.File("m.gguf"), builder_, {.max_part_bytes = 2000}).value();
    for (const Bytes& data : DataFor(builder_)) EXPECT_TRUE(writer->Write(data).ok());
    EXPECT_TRUE(writer->Finish().ok());
    paths_ = writer->paths();
    EXPECT_GE(paths_.size(), 4u);
  }

  std::string Error(const std::string& path) {
    const auto file = File::Open(path);
    return file.ok() ? "opened" : std::string(file.status().message());
  }

  TempFolder folder_;
  Builder builder_;
  std::vector<std::string> paths_;
};

TEST_F(SplitTest, AnyPartOpensAll) {
  for (const std::string& path : paths_) {
    for (const bool use_mmap : {true, false}) {
      const absl::StatusOr<FilePtr> file = File::Open(path, {use_mmap});
      ASSERT_TRUE(file.ok()) << file.status();
      ASSERT_EQ((*file)->parts().size(), paths_.size());
      for (size_t i = 0; i < paths_.size(); ++i) EXPECT_EQ((*file)->parts()[i].path, paths_[i]);
      ExpectTensorsOf(builder_, **file);
      ExpectEveryValueType((*file)->metadata());
    }
  }
}

TEST_F(SplitTest, NamesTheMissingPart) {
  std::filesystem::remove(paths_[2]);
  const auto file = File::Open(paths_[0]);
  EXPECT_TRUE(absl::IsNotFound(file.status()));
  EXPECT_EQ(file.status().message(), paths_[2] + ": part 3 of " + std::to_string(paths_.size()) +
                                         " of the model is missing");
}

TEST_F(SplitTest, RefusesPartsInTheWrongPlace) {
  std::filesystem::copy_file(paths_[2], paths_[1],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Error(paths_[0]), HasSubstr(paths_[1] + ": says it is part 3 of "));
  EXPECT_THAT(Error(paths_[1]), HasSubstr("its name must end in -00003-of-"));
}

TEST_F(SplitTest, RefusesAPartUnderAnotherName) {
  const std::string path = folder_.File("renamed.gguf");
  std::filesystem::copy_file(paths_[0], path);
  EXPECT_THAT(Error(path), HasSubstr("renamed.gguf: is part 1 of "));
}

TEST_F(SplitTest, RefusesPartsOfDifferentModels) {
  const auto count = static_cast<uint16_t>(paths_.size());
  const auto last_part = [&](int32_t tensors, const std::vector<std::string>& names) {
    Builder builder;
    builder.SetUint16(kSplitNumberKey, static_cast<uint16_t>(count - 1));
    builder.SetUint16(kSplitCountKey, count);
    builder.SetInt32(kSplitTensorsKey, tensors);
    for (const std::string& name : names) builder.AddTensor(name, quant::Type::kF32, {1});
    WriteWhole(paths_.back(), Build(builder));
    return Error(paths_[0]);
  };
  const auto tensors = static_cast<int32_t>(builder_.tensors().size());
  EXPECT_THAT(last_part(tensors + 5, {"x"}), HasSubstr("the parts belong to different models"));
  EXPECT_THAT(last_part(tensors, {"t.f32"}), HasSubstr("there are two tensors 't.f32'"));
  EXPECT_THAT(last_part(tensors, {"x", "y", "z"}), HasSubstr("tensors together; expected "));
}

TEST_F(SplitTest, RefusesAPartWithoutItsNumbers) {
  Builder builder;
  builder.SetUint16(kSplitCountKey, 4);
  EXPECT_THAT(std::string(File::FromMemory(Build(builder)).status().message()),
              HasSubstr("'split.no' is missing"));
  builder.SetUint16(kSplitNumberKey, 4);
  EXPECT_THAT(std::string(File::FromMemory(Build(builder)).status().message()),
              HasSubstr("'split.no' is 4; expected 0 to 3"));
  builder.SetUint16(kSplitNumberKey, 3);
  builder.SetInt32(kSplitTensorsKey, 0);
  EXPECT_THAT(std::string(File::FromMemory(Build(builder)).status().message()),
              HasSubstr("is part 4 of 4 of a split model"));
}

TEST(SplitNameTest, ParsesWhatItWrites) {
  const auto name = ParseSplitName("/a/b-00001-of-00002.gguf-00012-of-00345.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "/a/b-00001-of-00002.gguf");
  EXPECT_EQ(name->number, 11);
  EXPECT_EQ(name->count, 345);
  EXPECT_EQ(SplitPath(name->prefix, 11, 345), "/a/b-00001-of-00002.gguf-00012-of-00345.gguf");
  for (const char* other : {"", "m.gguf", "-00001-of-00002.gguf", "m-00000-of-00002.gguf",
                            "m-00003-of-00002.gguf", "m-0001-of-0002.gguf", "m-00001-of-00002.GGUF",
                            "m-0000a-of-00002.gguf", "m-00001-of-00000.gguf"}) {
    EXPECT_FALSE(ParseSplitName(other).has_value()) << other;
  }
}

TEST(ReaderTest, LocksOrSaysWhatIsAllowed) {
  const FilePtr file = File::FromMemory(Build(SmallModel())).value();
  const absl::Status status = file->Lock();
  if (status.ok()) return;
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be locked in memory"));
}

// Real files, if they are available.
class SharedFilesTest : public ::testing::Test {
 protected:
  static std::string Folder() {
    if (const char* set = std::getenv("TRINE_SHARED_DIR")) return set;
    return TRINE_SOURCE_DIR "/../shared";
  }
  static std::vector<std::string> Files(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(Folder() + folder, ignored)) {
      if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
    }
    return files;
  }
};

TEST_F(SharedFilesTest, ModelsOpen) {
  const std::vector<std::string> files = Files("/models");
  if (files.empty()) GTEST_SKIP() << "no models in " << Folder();
  for (const std::string& path : files) {
    const absl::StatusOr<FilePtr> file = File::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    const Metadata& metadata = (*file)->metadata();
    EXPECT_EQ(metadata.String("general.architecture").value(), "qwen2");
    const int64_t layers = metadata.Integer("qwen2.block_count", 1, 1000).value();
    EXPECT_EQ((*file)->tensors().size(), static_cast<size_t>(2 + 12 * layers));
    const TensorInfo* embedding = (*file)->FindTensor("token_embd.weight");
    ASSERT_NE(embedding, nullptr);
    EXPECT_EQ(embedding->dims[1], 8192);
    EXPECT_EQ(embedding->dims[0], metadata.Integer("qwen2.embedding_length", 1, 100000).value());
    EXPECT_EQ(metadata.ArrayOf("tokenizer.ggml.tokens").value()->strings.size(), 8192u);
  }
}

TEST_F(SharedFilesTest, VocabulariesOpen) {
  const std::vector<std::string> files = Files("/tokenizers");
  if (files.empty()) GTEST_SKIP() << "no vocabularies in " << Folder();
  for (const std::string& path : files) {
    const absl::StatusOr<FilePtr> file = File::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_GT((*file)->metadata().ArrayOf("tokenizer.ggml.tokens").value()->strings.size(), 30000u);
  }
}

}  // namespace
}  // namespace trine::gguf
