// Weights that devices read as the file has them: once for all where they take them so.
#include <stdlib.h>

#include <cstring>

#include "gmock/gmock.h"
#include "tests/model/shared_weights.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class WeightStoreTest : public SharedWeightsTest {
 protected:
  ~WeightStoreTest() override { unsetenv("TRINE_FIXTURE_PACKING"); }

  // The CPU again, as a device that refuses what `mode` says.
  std::shared_ptr<Device> Other(const char* mode) {
    setenv("TRINE_FIXTURE_PACKING", mode, 1);
    return Open(TRINE_PACKING_PLUGIN);
  }
  // That both devices compute the same, from one place or two.
  void ExpectSameProducts(WeightStore& store) {
    const auto expected = Products(store, cpu_);
    EXPECT_EQ(Products(store, other_), expected);
    store.Settle();
    EXPECT_EQ(Products(store, cpu_), expected) << "what is let go of in the file is not missed";
    EXPECT_EQ(Products(store, other_), expected);
  }

  std::shared_ptr<Device> cpu_ = Open(TRINE_CPU_PLUGIN), other_;
};

TEST_F(WeightStoreTest, TheFilesOwnMemoryComesFirst) {
  other_ = Other("");
  const auto store = Store({cpu_, other_});
  ExpectSameProducts(*store);
  for (const auto& device : {cpu_, other_}) {
    const WeightBytes bytes = store->BytesOf(*device);
    EXPECT_EQ(bytes.file, Bytes());
    EXPECT_EQ(bytes.arena + bytes.copied + bytes.converted, 0u);
    EXPECT_EQ(bytes.refusal, "");
  }
  EXPECT_EQ(store->arena_bytes(), 0u);
}

TEST_F(WeightStoreTest, ADeviceThatRefusesFilesSharesAnArenaWithTheCpu) {
  for (const char* mode : {"no-files", "no-files,told"}) {
    other_ = Other(mode);
    const auto store = Store({cpu_, other_});
    ExpectSameProducts(*store);
    for (const auto& device : {cpu_, other_}) {
      const WeightBytes bytes = store->BytesOf(*device);
      EXPECT_EQ(bytes.arena, Bytes()) << mode;
      EXPECT_EQ(bytes.file + bytes.copied, 0u) << mode << ": a second copy";
    }
    EXPECT_GE(store->arena_bytes(), Bytes());
    EXPECT_LT(store->arena_bytes(), Bytes() + 65536);
    EXPECT_THAT(store->BytesOf(*other_).refusal, HasSubstr("files are not for it")) << mode;
    EXPECT_EQ(store->BytesOf(*cpu_).refusal, "");
    const auto data = store->DataOf(*weights_[0]);
    EXPECT_NE(data.data(), weights_[0]->data);
    EXPECT_EQ(std::memcmp(data.data(), weights_[0]->data, data.size()), 0);
  }
}

TEST_F(WeightStoreTest, ADeviceThatRefusesBothGetsACopy) {
  for (const char* mode : {"no-files,no-memory", "no-files,no-memory,told"}) {
    other_ = Other(mode);
    const auto store = Store({cpu_, other_});
    ExpectSameProducts(*store);
    EXPECT_EQ(store->BytesOf(*cpu_).file, Bytes()) << mode;
    const WeightBytes bytes = store->BytesOf(*other_);
    EXPECT_EQ(bytes.copied, Bytes()) << mode;
    EXPECT_EQ(bytes.file + bytes.arena, 0u) << mode;
    EXPECT_THAT(bytes.refusal, HasSubstr("files are not for it")) << mode;
    EXPECT_THAT(bytes.refusal, HasSubstr("memory is not for it")) << mode;
    EXPECT_EQ(store->arena_bytes(), 0u) << "nobody takes it";
  }
}

TEST_F(WeightStoreTest, ADeviceThatImportsNothingGetsACopyWithoutATry) {
  other_ = Other("no-import");
  const auto store = Store({cpu_, other_});
  ExpectSameProducts(*store);
  EXPECT_EQ(store->BytesOf(*other_).copied, Bytes());
  EXPECT_EQ(store->BytesOf(*other_).refusal, "");
}

TEST_F(WeightStoreTest, OtherValuesThanTheFilesAreCopiesOfTheirOwn) {
  other_ = Other("");
  WeightStore store(file_);
  ASSERT_TRUE(store.Import().ok());
  const auto place = store.Place(other_, *weights_[0], false, true);
  ASSERT_TRUE(place.ok()) << place.status();
  ASSERT_TRUE(store.Place(other_, *weights_[0], false, true).ok());
  EXPECT_EQ(store.BytesOf(*other_).converted, place->span.bytes) << "one for both";
  EXPECT_EQ(store.BytesOf(*other_).copied, 0u);
}

TEST_F(WeightStoreTest, NothingWantedNeedsNothing) {
  other_ = Other("no-files");
  WeightStore store(file_);
  ASSERT_TRUE(store.Import().ok());
  EXPECT_EQ(store.arena_bytes(), 0u);
  EXPECT_THAT(store.BytesOf(*other_).refusal, Not(HasSubstr("files")));
}

}  // namespace
}  // namespace trine
