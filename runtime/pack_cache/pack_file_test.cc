#include "runtime/pack_cache/pack_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

using testing::HasSubstr;

PackEntry Entry(const std::string& name, uint64_t groups) {
  PackEntry e;
  e.device = "cpu 1.0 dotprod";
  e.name = name;
  e.layout = (uint64_t{9} << 32) + 1;
  e.type = 8;
  e.dims[0] = 32;
  e.dims[1] = 4 * groups;
  e.dims[2] = 2;
  e.dims[3] = 3;
  e.source_bytes = 400;
  e.source_hash = 0x1234;
  e.group_rows = 4;
  e.group_bytes = 100;
  e.groups = groups;
  e.packed_bytes = 100 * groups + 7;
  e.checksum = 0x4321;
  return e;
}

PackTable Table() {
  PackTable table;
  table.model = {{1000, 2, 3, 4, 5}, {5000, 6, 7, 8, 9}};
  table.entries = {Entry("a", 3), Entry("blk.0.b", 100), Entry("c", 1)};
  return table;
}

std::vector<std::byte> File(PackTable table) {
  const uint64_t bytes = PlacePackEntries(&table);
  std::vector<std::byte> file = EncodePackHead(table);
  file.resize(bytes);
  return file;
}

absl::StatusOr<PackTable> Parse(const std::vector<std::byte>& file) {
  return ParsePackHead(file.data(), file.size());
}

// Corrects the head's hash after a change, so that the checks after it are reached.
void Rehash(std::vector<std::byte>* file) {
  uint64_t head_bytes = 0;
  std::memcpy(&head_bytes, file->data() + 16, 8);
  const uint64_t hash = Hash64(file->data() + 40, head_bytes - 40, Hash64(file->data(), 32, 0));
  std::memcpy(file->data() + 32, &hash, 8);
}

TEST(PackFileTest, IsReadAsItWasWritten) {
  PackTable table = Table();
  const uint64_t bytes = PlacePackEntries(&table);
  EXPECT_EQ(bytes, 6 * kPackAlignment);
  const auto read = Parse(File(Table()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->model, table.model);
  EXPECT_EQ(read->entries, table.entries);
  EXPECT_EQ(read->entries[2].offset, 5 * kPackAlignment);
}

TEST(PackFileTest, EmptyIsAFileToo) {
  const auto read = Parse(File({}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->entries.empty());
}

TEST(PackFileTest, CutAnywhereItIsRefused) {
  const std::vector<std::byte> file = File(Table());
  for (size_t n = 0; n < file.size(); n += n < 700 ? 1 : 97) {
    // A block of its own, so that a sanitizer knows its end.
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(n));
    const auto read = Parse(cut);
    EXPECT_FALSE(read.ok()) << n;
    EXPECT_FALSE(read.status().message().empty());
  }
}

TEST(PackFileTest, AnyFlippedBitOfTheHeadIsNoticed) {
  const std::vector<std::byte> file = File(Table());
  uint64_t head_bytes = 0;
  std::memcpy(&head_bytes, file.data() + 16, 8);
  for (size_t bit = 0; bit < 8 * head_bytes; ++bit) {
    std::vector<std::byte> changed = file;
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(Parse(changed).ok()) << bit;
  }
}

TEST(PackFileTest, NumbersThatDoNotFitAreRefusedUnderARightHash) {
  const auto error = [](auto change) {
    PackTable table = Table();
    const uint64_t bytes = PlacePackEntries(&table);
    change(&table.entries[1]);
    std::vector<std::byte> file = EncodePackHead(table);
    file.resize(bytes);
    std::memcpy(file.data() + 24, &bytes, 8);
    Rehash(&file);
    return std::string(Parse(file).status().message());
  };
  EXPECT_EQ(error([](PackEntry*) {}), "");
  EXPECT_THAT(error([](PackEntry* e) { e->group_bytes = 0; }), HasSubstr("blk.0.b"));
  EXPECT_THAT(error([](PackEntry* e) { e->groups = 0; }), HasSubstr("no groups"));
  EXPECT_THAT(error([](PackEntry* e) { e->groups = ~uint64_t{0}; }), HasSubstr("exceed"));
  EXPECT_THAT(error([](PackEntry* e) { e->group_bytes = ~uint64_t{0}; }), HasSubstr("exceed"));
  EXPECT_THAT(error([](PackEntry* e) { e->packed_bytes = ~uint64_t{0}; }), HasSubstr("not all in"));
  EXPECT_THAT(error([](PackEntry* e) { e->packed_bytes = 1 << 20; }), HasSubstr("not all in"));
  EXPECT_THAT(error([](PackEntry* e) { e->offset += 64; }), HasSubstr("aligned"));
  EXPECT_THAT(error([](PackEntry* e) { e->offset = 4096; }), HasSubstr("overlaps"));
  EXPECT_THAT(error([](PackEntry* e) { e->offset = 0; }), HasSubstr("overlaps"));
  EXPECT_THAT(error([](PackEntry* e) { e->offset = ~uint64_t{0} << 12; }), HasSubstr("not all in"));
}

TEST(PackFileTest, AnotherVersionAndAnotherByteOrderAreNamed) {
  std::vector<std::byte> file = File(Table());
  file[8] = std::byte{1};
  EXPECT_THAT(std::string(Parse(file).status().message()), HasSubstr("version 1"));
  file = File(Table());
  std::swap(file[12], file[15]);
  std::swap(file[13], file[14]);
  EXPECT_THAT(std::string(Parse(file).status().message()), HasSubstr("byte order"));
  file = File(Table());
  file[0] = std::byte{'X'};
  EXPECT_THAT(std::string(Parse(file).status().message()), HasSubstr("no pack cache"));
}

TEST(PackFileTest, HugeCountsCostNothing) {
  std::vector<std::byte> file = File(Table());
  for (const size_t at : {size_t{40}, size_t{44}}) {
    std::vector<std::byte> changed = file;
    std::memset(changed.data() + at, 0xff, 4);
    Rehash(&changed);
    EXPECT_FALSE(Parse(changed).ok());
    const uint32_t many = 60000;  // allowed, but more than this file has
    std::memcpy(changed.data() + at, &many, 4);
    Rehash(&changed);
    EXPECT_FALSE(Parse(changed).ok());
  }
}

}  // namespace
}  // namespace trine
