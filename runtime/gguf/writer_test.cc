#include "runtime/gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/test_file.h"

namespace trine::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(WriterTest, PiecesOfAnySizeGiveTheSameFile) {
  TempFolder folder;
  const Builder builder = SmallModel();
  Bytes all;
  for (const Bytes& data : DataFor(builder)) all.insert(all.end(), data.begin(), data.end());
  const Bytes expected = Build(builder);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}, all.size()}) {
    const std::string path = folder.File("m.gguf");
    auto writer = Writer::Create(path, builder);
    ASSERT_TRUE(writer.ok()) << writer.status();
    absl::Span<const std::byte> rest = all;
    while (!rest.empty()) {
      ASSERT_TRUE((*writer)->Write(rest.first(std::min(piece, rest.size()))).ok());
      rest.remove_prefix(std::min(piece, rest.size()));
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_THAT((*writer)->paths(), ElementsAre(path));
    EXPECT_EQ(ReadWhole(path), expected);
    EXPECT_FALSE((*writer)->Finish().ok());
    EXPECT_FALSE((*writer)->Write(rest).ok());
  }
  EXPECT_THAT(folder.Names(), ElementsAre("m.gguf"));
}

TEST(WriterTest, NothingAppearsBeforeFinish) {
  TempFolder folder;
  const std::string path = folder.File("m.gguf");
  WriteWhole(path, ToBytes(std::string("old")));
  const Builder builder = SmallModel();
  {
    auto writer = Writer::Create(path, builder).value();
    ASSERT_TRUE(writer->Write(DataFor(builder)[0]).ok());
    EXPECT_EQ(ReadWhole(path), ToBytes(std::string("old")));
    const absl::Status status = writer->Finish();
    EXPECT_THAT(Message(status), HasSubstr("m.gguf: the tensor 't.f16' got 0 of its 1536 bytes"));
    EXPECT_EQ(folder.Names().size(), 2u);
  }
  EXPECT_THAT(folder.Names(), ElementsAre("m.gguf"));
  EXPECT_EQ(ReadWhole(path), ToBytes(std::string("old")));
}

TEST(WriterTest, RefusesMoreDataThanTensors) {
  TempFolder folder;
  Builder builder;
  builder.AddTensor("t", quant::Type::kF32, {2});
  auto writer = Writer::Create(folder.File("m.gguf"), builder).value();
  EXPECT_THAT(Message(writer->Write(Bytes(9))), HasSubstr("1 bytes more than the tensors have"));
  EXPECT_FALSE(writer->Finish().ok());
}

TEST(WriterTest, SplitsAtTensorsAndCopiesWhole) {
  TempFolder folder;
  const Builder builder = SmallModel();
  auto writer = Writer::Create(folder.File("m.gguf"), builder, {.max_part_bytes = 4000}).value();
  for (const Bytes& data : DataFor(builder)) ASSERT_TRUE(writer->Write(data).ok());
  ASSERT_TRUE(writer->Finish().ok());
  ASSERT_GT(writer->paths().size(), 2u);
  EXPECT_EQ(folder.Names().size(), writer->paths().size());
  const auto split = File::Open(writer->paths()[0]).value();
  std::vector<uint64_t> part_bytes(split->parts().size());
  for (const TensorInfo& tensor : split->tensors()) part_bytes[tensor.part] += tensor.bytes;
  for (const uint64_t bytes : part_bytes) {
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, 4000u);
  }

  // Merging the parts gives the same as if the file had never been split.
  Builder merged;
  merged.CopyMetadata(split->metadata());
  std::vector<absl::Span<const std::byte>> data;
  for (const TensorInfo& tensor : split->tensors()) {
    merged.AddTensor(tensor.name, tensor.type, absl::MakeConstSpan(tensor.dims, tensor.rank));
    data.emplace_back(tensor.data, tensor.bytes);
  }
  EXPECT_EQ(ToBytes(merged, data).value(), Build(builder));
}

TEST(WriterTest, ATensorLargerThanAPartGetsItsOwn) {
  TempFolder folder;
  Builder builder;
  builder.SetUint32(kAlignmentKey, 64);
  for (const char* name : {"a", "b", "c"}) builder.AddTensor(name, quant::Type::kF32, {100});
  auto writer = Writer::Create(folder.File("m"), builder, {.max_part_bytes = 1}).value();
  ASSERT_TRUE(writer->Write(Bytes(1200)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_THAT(folder.Names(), UnorderedElementsAre("m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                                   "m-00003-of-00003.gguf"));
  const auto file = File::Open(folder.File("m-00002-of-00003.gguf"));
  ASSERT_TRUE(file.ok()) << file.status();
  for (const TensorInfo& tensor : (*file)->tensors()) EXPECT_EQ(tensor.offset % 64, 0u);
}

TEST(WriterTest, CopiesNestedArraysAndWideNumbers) {
  std::string value;  // of two arrays of uint64
  for (const uint32_t type : {9u, 9u}) AppendNumber(type, &value);
  AppendNumber(uint64_t{2}, &value);
  for (int i = 0; i < 2; ++i) {
    AppendNumber(10u, &value);
    AppendNumber(uint64_t{1}, &value);
    AppendNumber(UINT64_MAX, &value);
  }
  std::string text(kMagic, sizeof(kMagic));
  AppendNumber(3u, &text);
  AppendNumber(uint64_t{0}, &text);
  AppendNumber(uint64_t{1}, &text);
  AppendString("nested", &text);
  const Bytes bytes = ToBytes(text + value);
  const auto file = File::FromMemory(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  Builder builder;
  builder.CopyMetadata((*file)->metadata());
  ASSERT_TRUE(builder.status().ok()) << builder.status();
  EXPECT_EQ(builder.pairs()[0].value, value);
}

TEST(WriterTest, SettingAgainReplacesAndRemoveRemoves) {
  Builder builder;
  builder.SetUint32("a", 1);
  builder.SetUint32("b", 2);
  builder.SetUint32("c", 3);
  builder.SetString("b", "two");
  builder.Remove("a");
  builder.Remove("none");
  builder.SetUint32("c", 4);
  const auto file = File::FromMemory(Build(builder)).value();
  ASSERT_EQ(file->metadata().entries().size(), 2u);
  EXPECT_EQ(file->metadata().entries()[0].key, "b");
  EXPECT_EQ(file->metadata().String("b").value(), "two");
  EXPECT_EQ(file->metadata().Integer("c", 0, 9).value(), 4);
  EXPECT_FALSE(file->metadata().Has("a"));
}

TEST(WriterTest, RefusesWhatNoFileCanHold) {
  const auto error = [](const std::function<void(Builder*)>& spoil) {
    Builder builder;
    spoil(&builder);
    const auto bytes =
        ToBytes(builder, std::vector<absl::Span<const std::byte>>(builder.tensors().size()));
    return bytes.ok() ? "written" : Message(bytes.status());
  };
  const auto tensor = [&](const char* name, quant::Type type, std::vector<int64_t> dims) {
    return error([&](Builder* b) { b->AddTensor(name, type, dims); });
  };
  const auto f32 = quant::Type::kF32;
  EXPECT_EQ(error([](Builder*) {}), "written");
  EXPECT_THAT(error([](Builder* b) { b->SetBool("", true); }), HasSubstr("has 0 bytes"));
  EXPECT_THAT(error([](Builder* b) { b->SetUint32(kAlignmentKey, 24); }),
              HasSubstr("power of two"));
  EXPECT_THAT(error([](Builder* b) { b->SetUint64(kAlignmentKey, 32); }), HasSubstr("a uint32"));
  EXPECT_THAT(error([](Builder* b) { b->SetValue("k", Value{4, 1.5}); }), HasSubstr("uint32"));
  EXPECT_THAT(tensor("", f32, {1}), HasSubstr("has a name of 0 bytes"));
  EXPECT_THAT(tensor("t", quant::Type::kQ8_KV, {32}), HasSubstr("Q8_KV, which files do not have"));
  EXPECT_THAT(tensor("t", f32, {}), HasSubstr("has 0 dimensions"));
  EXPECT_THAT(tensor("t", f32, {1, 1, 1, 1, 1}), HasSubstr("has 5 dimensions"));
  EXPECT_THAT(tensor("t", f32, {0}), HasSubstr("a dimension of length 0"));
  EXPECT_THAT(tensor("t", f32, {1, -1}), HasSubstr("a dimension of length -1"));
  EXPECT_THAT(tensor("t", f32, {INT64_MAX, 2}), HasSubstr("more than 2^63 values"));
  EXPECT_THAT(tensor("t", f32, {INT64_MAX}), HasSubstr("does not fit in 64 bits"));
  EXPECT_THAT(tensor("t", quant::Type::kQ4_K, {32}), HasSubstr("a multiple of 256"));
  EXPECT_THAT(error([&](Builder* b) {
                b->AddTensor("t", f32, {1});
                b->AddTensor("t", f32, {1});
              }),
              HasSubstr("'t' was added twice"));
  EXPECT_THAT(Message(ToBytes(Builder(), {}, 1).status()), HasSubstr("version 1"));
  EXPECT_THAT(tensor("t", f32, {1}), HasSubstr("has 4 bytes, not 0"));
}

TEST(WriterTest, RefusesWhatTheDiskCannotHold) {
  TempFolder folder;
  Builder builder;
  builder.AddTensor("t", quant::Type::kF32, {int64_t{1} << 30, int64_t{1} << 25});
  const absl::Status status = Writer::Create(folder.File("m.gguf"), builder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(Message(status), HasSubstr("m.gguf: takes 144115188.1 GB, and the disk has room"));
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(WriterTest, HeadersAndPaddingTakeRoomToo) {
  const Builder builder = SmallModel();
  EXPECT_EQ(TotalBytes(builder, *LayOut(builder, 3, 0)), Build(builder).size());
  const Layout split = *LayOut(builder, 3, 1);
  ASSERT_GT(split.parts.size(), 1u);
  EXPECT_GT(TotalBytes(builder, split), Build(builder).size() + split.parts[1].header.size());

  Builder too_large;
  for (const char* name : {"a", "b", "c"}) {
    too_large.AddTensor(name, quant::Type::kF32, {int64_t{1} << 61});
  }
  EXPECT_EQ(TotalBytes(too_large, *LayOut(too_large, 3, 0)), ~uint64_t{0});
}

TEST(WriterTest, SaysWhereItCannotWrite) {
  TempFolder folder;
  const auto error = [](const std::string& path) {
    return Message(Writer::Create(path, Builder()).status());
  };
  EXPECT_THAT(error(folder.File("none/m.gguf")), HasSubstr("none/m.gguf: cannot be created: "));
  EXPECT_THAT(error(folder.File(".")), HasSubstr("is not a regular file"));
  EXPECT_THAT(error("/dev/null"), HasSubstr("/dev/null: is there and is not a regular file"));
  EXPECT_THAT(folder.Names(), IsEmpty());
}

}  // namespace
}  // namespace trine::gguf
