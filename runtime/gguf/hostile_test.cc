// Invalid files: truncated, damaged, or made to mislead. Each gives an error of one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/part_reader.h"
#include "runtime/gguf/test_file.h"

namespace trine::gguf {
namespace {

using ::testing::HasSubstr;

// Reads from a heap block of exactly this size, so that a sanitizer detects an access past its end.
absl::StatusOr<PartContents> ReadExactly(const std::vector<std::byte>& bytes) {
  return ReadPart(bytes.data(), bytes.size());
}

std::string Error(const Bytes& bytes) {
  const auto file = File::FromMemory(bytes, "x");
  if (file.ok()) return "opened";
  EXPECT_EQ(ReadExactly(bytes).ok(), false);
  return std::string(file.status().message());
}

void ExpectOneLine(const absl::Status& status) {
  const absl::string_view message = status.message();
  EXPECT_FALSE(message.empty());
  EXPECT_LT(message.size(), 600u);
  for (const unsigned char c : message) ASSERT_TRUE(c >= 0x20 && c != 0x7f) << message;
}

// Checks what every accepted file guarantees.
void ExpectSound(const PartContents& part, const Bytes& bytes) {
  const std::byte* begin = bytes.data();
  const std::byte* end = begin + bytes.size();
  const auto within = [&](std::string_view text) {
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return data >= begin && data + text.size() <= end;
  };
  std::set<std::string_view> keys;
  for (const Metadata::Entry& entry : part.metadata.entries()) {
    EXPECT_TRUE(keys.insert(entry.key).second);
    EXPECT_TRUE(within(entry.key));
  }
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const TensorInfo& tensor : part.tensors) {
    EXPECT_TRUE(within(tensor.name));
    ASSERT_TRUE(tensor.rank >= 1 && tensor.rank <= 4);
    for (const int64_t dim : tensor.dims) EXPECT_GT(dim, 0);
    uint64_t row_bytes = 0;
    ASSERT_TRUE(quant::RowBytes(tensor.type, tensor.dims[0], &row_bytes));
    EXPECT_EQ(tensor.bytes, row_bytes * static_cast<uint64_t>(tensor.Rows()));
    EXPECT_EQ(tensor.data, begin + tensor.offset);
    EXPECT_LE(tensor.offset, bytes.size());
    EXPECT_LE(tensor.bytes, bytes.size() - tensor.offset);
    EXPECT_EQ(tensor.offset % kMinAlignment, 0u);
    ranges.emplace_back(tensor.offset, tensor.offset + tensor.bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
}

Builder TinyModel() {
  Builder builder;
  SetEveryValueType(&builder);
  builder.AddTensor("a", quant::Type::kQ8_0, {32, 2});
  builder.AddTensor("b", quant::Type::kF32, {3, 1, 2});
  return builder;
}

TEST(HostileTest, CutAtEveryByte) {
  const Bytes whole = Build(TinyModel());
  const absl::StatusOr<PartContents> contents = ReadExactly(whole);
  ASSERT_TRUE(contents.ok()) << contents.status();
  const TensorInfo& last = contents->tensors.back();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const absl::StatusOr<PartContents> part = ReadExactly(cut);
    EXPECT_EQ(part.ok(), size >= last.offset + last.bytes) << size;
    if (!part.ok()) ExpectOneLine(part.status());
    EXPECT_EQ(File::FromMemory(cut).ok(), part.ok());
  }
}

TEST(HostileTest, EveryHeaderByteDamaged) {
  const Bytes whole = Build(TinyModel());
  const uint64_t header_bytes = ReadExactly(whole)->tensors[0].offset;
  size_t accepted = 0, refused = 0;
  for (uint64_t i = 0; i < header_bytes; ++i) {
    const auto old = static_cast<uint8_t>(whole[i]);
    for (const int value : {0, 1, 2, 9, 0x20, 0x7f, 0x80, 0xff, old + 1, old - 1, old ^ 0x80}) {
      Bytes damaged = whole;
      damaged[i] = static_cast<std::byte>(value);
      const absl::StatusOr<PartContents> part = ReadExactly(damaged);
      if (part.ok()) {
        ++accepted;
        ExpectSound(*part, damaged);
      } else {
        ++refused;
        ExpectOneLine(part.status());
      }
      // Only File checks the names of tensors for duplicates.
      EXPECT_LE(File::FromMemory(damaged).ok(), part.ok());
    }
  }
  EXPECT_GT(accepted, 500u);  // changed texts and numbers are still valid
  EXPECT_GT(refused, 2000u);
}

// The pieces of a file made by hand.
std::string Head(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
  std::string head(kMagic, sizeof(kMagic));
  AppendNumber(version, &head);
  AppendNumber(tensors, &head);
  AppendNumber(keys, &head);
  return head;
}

std::string Key(std::string_view name, uint32_t type, const std::string& value) {
  std::string key;
  AppendString(name, &key);
  AppendNumber(type, &key);
  return key + value;
}

template <class... T>
std::string Numbers(T... numbers) {
  std::string out;
  (AppendNumber(numbers, &out), ...);
  return out;
}

std::string Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                   uint64_t offset) {
  std::string tensor;
  AppendString(name, &tensor);
  AppendNumber(static_cast<uint32_t>(dims.size()), &tensor);
  for (const uint64_t dim : dims) AppendNumber(dim, &tensor);
  return tensor + Numbers(type, offset);
}

// Returns a file with `tensors` and plenty of data.
Bytes WithTensors(uint64_t count, const std::string& tensors) {
  std::string text = Head(count, 0) + tensors;
  text.resize((text.size() + 31) / 32 * 32 + 4096);
  return ToBytes(text);
}

constexpr auto kU32 = static_cast<uint32_t>(ValueType::kUint32);
constexpr auto kArray = static_cast<uint32_t>(ValueType::kArray);
constexpr auto kString = static_cast<uint32_t>(ValueType::kString);
constexpr auto kBool = static_cast<uint32_t>(ValueType::kBool);
constexpr uint64_t kHuge = 0x7fffffffffffffffull;

TEST(HostileTest, Header) {
  EXPECT_EQ(Error({}), "x: the file is empty");
  EXPECT_THAT(Error(ToBytes(std::string("GGU"))), HasSubstr("ends inside the magic number"));
  EXPECT_EQ(Error(ToBytes(std::string("PK\x03\x04 more of it"))),
            "x: is no GGUF file: it begins with 'PK\\x03\\x04' and not 'GGUF'");
  EXPECT_THAT(Error(ToBytes(Head(0, 0, 1))), HasSubstr("version 1 of GGUF; versions 2 and 3"));
  EXPECT_THAT(Error(ToBytes(Head(0, 0, 4))), HasSubstr("version 4 of GGUF; versions 2 and 3"));
  EXPECT_THAT(Error(ToBytes(Head(0, 0, 0))), HasSubstr("version 0"));
  EXPECT_THAT(Error(ToBytes(Head(0, 0, 0x03000000))), HasSubstr("big-endian GGUF of version 3"));
  EXPECT_THAT(Error(ToBytes(std::string("FUGG") + Head(0, 0).substr(4))), HasSubstr("big-endian"));
  EXPECT_EQ(Error(ToBytes(Head(0, 0))), "opened");
}

TEST(HostileTest, Counts) {
  EXPECT_THAT(Error(ToBytes(Head(0, 1))),
              HasSubstr("claims 1 metadata keys, more than fit in the 0"));
  EXPECT_THAT(Error(ToBytes(Head(0, UINT64_MAX))),
              HasSubstr("claims 18446744073709551615 metadata"));
  EXPECT_THAT(Error(ToBytes(Head(1, 0))), HasSubstr("claims 1 tensors, more than fit in the 0"));
  EXPECT_THAT(Error(ToBytes(Head(UINT64_MAX, 0))),
              HasSubstr("claims 18446744073709551615 tensors"));
  EXPECT_THAT(Error(ToBytes(Head(1u << 20, 0) + std::string(4096, '\0'))),
              HasSubstr("more than fit in the 4096 bytes after its metadata"));
}

TEST(HostileTest, Keys) {
  const auto one = [](const std::string& key) { return Error(ToBytes(Head(0, 1) + key)); };
  const std::string padding(64, '\0');
  EXPECT_THAT(one(Key("", kU32, Numbers(7u)) + padding), HasSubstr("has 0 bytes; expected 1 to"));
  EXPECT_THAT(one(Key(std::string(70000, 'k'), kU32, Numbers(7u))),
              HasSubstr("has 70000 bytes; expected 1 to 65535"));
  EXPECT_THAT(one(Numbers(kHuge) + padding), HasSubstr("ends inside the name of metadata key 0"));
  EXPECT_THAT(one(Numbers(UINT64_MAX) + padding), HasSubstr("ends inside the name of metadata"));
  EXPECT_THAT(one(Key("k", 13, padding)), HasSubstr("'k' has value type 13; expected 0 to 12"));
  EXPECT_THAT(one(Key("k", kBool, "\x02")), HasSubstr("'k' has a bool of 2; expected 0 or 1"));
  EXPECT_THAT(one(Key("k", kString, Numbers(uint64_t{65}) + padding)),
              HasSubstr("ends inside the value of the metadata key 'k'"));
  EXPECT_THAT(Error(ToBytes(Head(0, 2) + Key("k", kU32, Numbers(7u)) + Key("k", kBool, "\x01"))),
              HasSubstr("'k' occurs twice"));
  // Control characters of terminals are escaped.
  EXPECT_THAT(one(Key("\x1b[2J\n", 13, padding)), HasSubstr("'\\x1b[2J\\n'"));
}

TEST(HostileTest, Arrays) {
  const auto one = [](const std::string& value) {
    return Error(ToBytes(Head(0, 1) + Key("k", kArray, value)));
  };
  EXPECT_THAT(one(Numbers(13u, uint64_t{0})), HasSubstr("array of type 13"));
  EXPECT_THAT(one(Numbers(kU32, kHuge)), HasSubstr("elements of type uint32, more than fit in"));
  EXPECT_THAT(one(Numbers(kString, uint64_t{2}, uint64_t{0})), HasSubstr("claims 2 elements"));
  EXPECT_THAT(one(Numbers(kString, uint64_t{1}, uint64_t{1})), HasSubstr("ends inside the value"));
  EXPECT_THAT(one(Numbers(kBool, uint64_t{2}, uint16_t{0x0201})), HasSubstr("bool of 2"));
  std::string deep;
  for (int i = 0; i < 4; ++i) deep += Numbers(kArray, uint64_t{1});
  EXPECT_THAT(one(deep + Numbers(kU32, uint64_t{0})), HasSubstr("nested more than 4 deep"));
  EXPECT_EQ(one(deep.substr(12) + Numbers(kU32, uint64_t{0})), "opened");
  std::string many = Numbers(kArray, kMaxNestedArrays + 1);
  many.resize(many.size() + 12 * (kMaxNestedArrays + 1));
  EXPECT_THAT(one(many), HasSubstr("nested arrays of the file to 65537; at most 65536"));
  std::string large = Numbers(uint32_t{0}, kMaxArrayElements + 1);
  large.resize(large.size() + kMaxArrayElements + 1);
  EXPECT_THAT(one(large), HasSubstr("array elements of the file to 16777217; at most 16777216"));
}

TEST(HostileTest, Alignment) {
  const auto with = [](const std::string& key) { return Error(ToBytes(Head(0, 1) + key)); };
  for (const uint32_t good : {8u, 32u, 1u << 26}) {
    EXPECT_EQ(with(Key(kAlignmentKey, kU32, Numbers(good))), "opened");
  }
  for (const uint32_t bad : {0u, 1u, 4u, (1u << 26) + 1, UINT32_MAX}) {
    EXPECT_THAT(with(Key(kAlignmentKey, kU32, Numbers(bad))), HasSubstr("expected 8 to 67108864"));
  }
  EXPECT_THAT(with(Key(kAlignmentKey, kU32, Numbers(48u))), HasSubstr("is 48; expected a power"));
  EXPECT_THAT(with(Key(kAlignmentKey, kBool, "\x01")), HasSubstr("is a bool; expected an integer"));
}

TEST(HostileTest, Shapes) {
  const auto shape = [](const std::vector<uint64_t>& dims, uint32_t type = 0) {
    return Error(WithTensors(1, Tensor("t", dims, type, 0)));
  };
  EXPECT_EQ(shape({4, 2}), "opened");
  EXPECT_THAT(shape({}), HasSubstr("'t' has 0 dimensions; expected 1 to 4"));
  EXPECT_THAT(shape({1, 1, 1, 1, 1}), HasSubstr("'t' has 5 dimensions; expected 1 to 4"));
  EXPECT_THAT(shape({4, 0}), HasSubstr("'t' has length 0 in dimension 1"));
  EXPECT_THAT(shape({1ull << 63}), HasSubstr("'t' has more than 2^63 values"));
  EXPECT_THAT(shape({UINT64_MAX}), HasSubstr("'t' has more than 2^63 values"));
  EXPECT_THAT(shape({1ull << 32, 1ull << 31}), HasSubstr("'t' has more than 2^63 values"));
  EXPECT_THAT(shape({1ull << 21, 1ull << 21, 1ull << 21, 1ull << 21}), HasSubstr("2^63 values"));
  EXPECT_THAT(shape({1ull << 62}), HasSubstr("size that does not fit in 64 bits"));
  EXPECT_THAT(shape({1ull << 31, 1ull << 31}), HasSubstr("size that does not fit in 64 bits"));
  EXPECT_THAT(shape({1ull << 60}), HasSubstr("is not all in the file"));
  EXPECT_THAT(shape({33}, 8), HasSubstr("rows of 33 values; Q8_0 needs a multiple of 32"));
  EXPECT_THAT(shape({32}, 12), HasSubstr("rows of 32 values; Q4_K needs a multiple of 256"));
}

TEST(HostileTest, Types) {
  const auto type = [](uint32_t number) {
    return Error(WithTensors(1, Tensor("t", {256}, number, 0)));
  };
  EXPECT_EQ(type(39), "opened");
  EXPECT_THAT(type(16), HasSubstr("'t' has the type IQ2_XXS, which is not supported; supported are "
                                  "F32, F16, Q4_0, "));
  EXPECT_THAT(type(28), HasSubstr("the type F64, which is not supported"));
  EXPECT_THAT(type(1000), HasSubstr("the unknown type number 1000; supported are F32"));
  for (uint32_t number = 0; number < 100; ++number) {
    const bool known = TensorTypeFromNumber(number).has_value();
    EXPECT_EQ(type(number) == "opened", known) << number;
    if (!known) continue;
    EXPECT_EQ(NumberFromTensorType(*TensorTypeFromNumber(number)), number);
  }
}

TEST(HostileTest, Places) {
  const auto at = [](uint64_t offset) {
    return Error(WithTensors(1, Tensor("t", {8}, 0, offset)));
  };
  EXPECT_EQ(at(0), "opened");
  EXPECT_EQ(at(4064), "opened");
  EXPECT_THAT(at(16), HasSubstr("offset 16, which is no multiple of the alignment 32"));
  EXPECT_THAT(at(4096),
              HasSubstr("'t' of 32 bytes at offset 4096 is not all in the file, which has "
                        "4096 bytes of tensor data"));
  EXPECT_THAT(at(UINT64_MAX - 31), HasSubstr("is not all in the file"));
  EXPECT_THAT(Error(WithTensors(1, Tensor("t", {1025}, 0, 0))),
              HasSubstr("is not all in the file"));
  // The data section would begin past the end.
  std::string text =
      Head(1, 1) + Key(kAlignmentKey, kU32, Numbers(1u << 26)) + Tensor("t", {1}, 0, 0);
  EXPECT_THAT(Error(ToBytes(text)), HasSubstr("has 0 bytes of tensor data"));

  const auto two = [](uint64_t first, uint64_t second) {
    return Error(WithTensors(2, Tensor("a", {16}, 0, first) + Tensor("b", {16}, 0, second)));
  };
  EXPECT_EQ(two(0, 64), "opened");
  EXPECT_EQ(two(64, 0), "opened");
  EXPECT_THAT(two(0, 32), HasSubstr("'b' overlaps the tensor 'a'"));
  EXPECT_THAT(two(32, 0), HasSubstr("'a' overlaps the tensor 'b'"));
  EXPECT_THAT(two(64, 64), HasSubstr("overlaps the tensor"));
}

TEST(HostileTest, Names) {
  EXPECT_THAT(Error(WithTensors(1, Tensor("", {1}, 0, 0))),
              HasSubstr("has 0 bytes; expected 1 to"));
  EXPECT_THAT(Error(WithTensors(1, Tensor(std::string(1024, 'n'), {1}, 0, 0))),
              HasSubstr("the name of tensor 0 has 1024 bytes; expected 1 to 1023"));
  const auto twice = WithTensors(2, Tensor("t", {1}, 0, 0) + Tensor("t", {1}, 0, 32));
  EXPECT_THAT(std::string(File::FromMemory(twice).status().message()),
              HasSubstr("there are two tensors 't'"));
}

TEST(HostileTest, ThingsThatAreNoFiles) {
  TempFolder folder;
  const auto error = [&](const std::string& path, bool use_mmap) {
    const auto file = File::Open(path, {use_mmap});
    return file.ok() ? "opened" : std::string(file.status().message());
  };
  const std::string fifo = folder.File("fifo"), empty = folder.File("empty"),
                    secret = folder.File("secret"), cut = folder.File("cut");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  WriteWhole(empty, {});
  WriteWhole(secret, Build(TinyModel()));
  ASSERT_EQ(chmod(secret.c_str(), 0), 0);
  WriteWhole(cut, ToBytes(std::string("GGUF")));
  for (const bool use_mmap : {true, false}) {
    EXPECT_EQ(error(folder.File("none"), use_mmap),
              folder.File("none") + ": there is no such file");
    EXPECT_EQ(error(folder.File("."), use_mmap), folder.File(".") + ": is a folder, not a file");
    EXPECT_THAT(error(fifo, use_mmap), HasSubstr("not a regular file"));
    EXPECT_THAT(error("/dev/null", use_mmap), HasSubstr("not a regular file"));
    EXPECT_EQ(error(empty, use_mmap), empty + ": the file is empty");
    EXPECT_THAT(error(cut, use_mmap), HasSubstr("ends inside the version"));
    EXPECT_THAT(error("", use_mmap), HasSubstr("no such file"));
    if (geteuid() == 0) continue;  // root may read everything
    EXPECT_THAT(error(secret, use_mmap), HasSubstr("no permission to read"));
  }
}

}  // namespace
}  // namespace trine::gguf
