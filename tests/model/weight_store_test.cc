// Tests weights that devices read in the layout of the file: one copy for all that can share it.
#include <stdlib.h>

#include <cstring>

#include "gmock/gmock.h"
#include "tests/model/shared_weights.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

// Runs with a mapped file, whose pages come back if they are released by mistake, and with a file
// in memory, where zeros would take their place.
class WeightStoreTest : public SharedWeightsTest, public ::testing::WithParamInterface<bool> {
 protected:
  WeightStoreTest() { open_.use_mmap = GetParam(); }
  ~WeightStoreTest() override { unsetenv("TRINE_FIXTURE_PACKING"); }

  void SetUp() override {
    SharedWeightsTest::SetUp();
    for (const gguf::TensorInfo* tensor : weights_) {
      file_bytes_.emplace_back(tensor->data, tensor->data + tensor->bytes);
    }
    const auto alone = Store({cpu_});
    expected_ = Products(*alone, cpu_);
    ASSERT_EQ(alone->BytesOf(*cpu_).file, Bytes());
  }

  // Sets what the fixture refuses from here on.
  static void Fixture(const char* mode) { setenv("TRINE_FIXTURE_PACKING", mode, 1); }
  // Opens the CPU as a second device that refuses what `mode` says.
  std::shared_ptr<Device> Other(const char* mode) {
    Fixture(mode);
    return Open(TRINE_PACKING_PLUGIN);
  }
  // Expects that all devices compute the same, wherever they read.
  void ExpectProducts(WeightStore& store, const std::vector<std::shared_ptr<Device>>& devices) {
    for (size_t i = 0; i < devices.size(); ++i) {
      EXPECT_EQ(Products(store, devices[i]), expected_) << "device " << i;
    }
  }
  // Expects that the CPU and the other device, which refuses files, read the same memory.
  void ExpectSharedArena() {
    const auto store = Store({cpu_, other_});
    ExpectProducts(*store, {cpu_, other_});
    for (const auto& device : {cpu_, other_}) {
      const WeightBytes bytes = store->BytesOf(*device);
      EXPECT_EQ(bytes.arena, Bytes());
      EXPECT_EQ(bytes.file + bytes.copied, 0u) << "a second copy";
      EXPECT_EQ(store->ImportedBytes(*device), store->arena_bytes())
          << "windows on the file that nobody looks through";
    }
    EXPECT_GE(store->arena_bytes(), Bytes());
    EXPECT_LT(store->arena_bytes(), Bytes() + 65536);
    EXPECT_THAT(store->BytesOf(*other_).refusal, HasSubstr("files are not for it"));
    EXPECT_EQ(store->BytesOf(*cpu_).refusal, "");
    const auto data = store->DataOf(*weights_[0]);
    EXPECT_NE(data.data(), weights_[0]->data);
    EXPECT_EQ(std::memcmp(data.data(), file_bytes_[0].data(), data.size()), 0);
    EXPECT_EQ(InFile(0), file_->mapped()) << "else there are two copies";
  }
  // Returns true when a file in memory still has the weight.
  bool InFile(size_t weight) const {
    return std::memcmp(weights_[weight]->data, file_bytes_[weight].data(),
                       file_bytes_[weight].size()) == 0;
  }

  std::shared_ptr<Device> cpu_ = Open(TRINE_CPU_PLUGIN), other_;
  std::vector<std::vector<std::byte>> file_bytes_;  // of the weights
  std::vector<std::vector<float>> expected_;
};

INSTANTIATE_TEST_SUITE_P(File, WeightStoreTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Mapped" : "Read"; });

TEST_P(WeightStoreTest, TheFilesOwnMemoryComesFirst) {
  other_ = Other("");
  const auto store = Store({cpu_, other_});
  ExpectProducts(*store, {cpu_, other_});
  for (const auto& device : {cpu_, other_}) {
    const WeightBytes bytes = store->BytesOf(*device);
    EXPECT_EQ(bytes.file, Bytes());
    EXPECT_EQ(bytes.arena + bytes.copied + bytes.converted, 0u);
    EXPECT_EQ(bytes.refusal, "");
    EXPECT_GE(store->ImportedBytes(*device), Bytes());
  }
  EXPECT_EQ(store->arena_bytes(), 0u);
  EXPECT_TRUE(InFile(0) && InFile(1));
}

TEST_P(WeightStoreTest, ADeviceThatRefusesFilesSharesAnArenaWithTheCpu) {
  other_ = Other("no-files");
  ExpectSharedArena();
}

TEST_P(WeightStoreTest, SoDoesOneThatSaysSoBefore) {
  other_ = Other("no-files,told");
  ExpectSharedArena();
}

TEST_P(WeightStoreTest, WhatADeviceReadsInTheFileStaysThere) {
  const auto in_file = Other("no-memory,told");
  other_ = Other("no-files,told");
  Fixture("");  // device_info says what each refuses, so it is not tried
  const auto store = Store({cpu_, other_, in_file});
  ExpectProducts(*store, {cpu_, other_, in_file});
  EXPECT_EQ(store->BytesOf(*other_).arena, Bytes());
  EXPECT_EQ(store->BytesOf(*in_file).file, Bytes());
  EXPECT_TRUE(InFile(0) && InFile(1));
}

TEST_P(WeightStoreTest, WindowsOnTheFileStayWhereTheArenaHoldsOnlySome) {
  other_ = Other("no-files,told");
  Fixture("");
  WeightStore store(file_);
  store.Want(cpu_, *weights_[0]);
  store.Want(cpu_, *weights_[1]);
  store.Want(other_, *weights_[0]);
  LoadMeter meter(nullptr);
  ASSERT_TRUE(store.Import(host_, &meter).ok());
  EXPECT_EQ(Products(store, cpu_), expected_);
  EXPECT_EQ(store.BytesOf(*cpu_).arena, weights_[0]->bytes);
  EXPECT_EQ(store.BytesOf(*cpu_).file, weights_[1]->bytes);
  EXPECT_TRUE(InFile(1));
}

TEST_P(WeightStoreTest, CopiesAreMadeOfWhatTheArenaHolds) {
  const auto copies = Other("no-import");
  other_ = Other("no-files");
  const auto store = Store({other_, copies});
  ExpectProducts(*store, {other_, copies});
  EXPECT_EQ(store->BytesOf(*other_).arena, Bytes());
  EXPECT_EQ(store->BytesOf(*copies).copied, Bytes());
}

TEST_P(WeightStoreTest, FillingTheArenaIsTold) {
  other_ = Other("no-files");
  WeightStore store(file_);
  for (const gguf::TensorInfo* tensor : weights_) store.Want(other_, *tensor);
  std::vector<double> told;
  LoadMeter meter([&](double fraction) {
    told.push_back(fraction);
    return true;
  });
  meter.Expect(Bytes());
  ASSERT_TRUE(meter.Done(0).ok());
  ASSERT_TRUE(store.Import(host_, &meter).ok());
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1], 0.5) << "as much as there was to do before";
}

TEST_P(WeightStoreTest, FillingTheArenaCanBeCancelled) {
  other_ = Other("no-files");
  WeightStore store(file_);
  for (const gguf::TensorInfo* tensor : weights_) store.Want(other_, *tensor);
  LoadMeter meter([](double) { return false; });
  EXPECT_TRUE(absl::IsCancelled(store.Import(host_, &meter)));
}

TEST_P(WeightStoreTest, WithoutRoomForAnArenaItSaysSo) {
  other_ = Other("no-files,told");
  gguf::TensorInfo vast = *weights_[0];
  vast.bytes = uint64_t{1} << 60;
  WeightStore store(file_);
  store.Want(cpu_, *weights_[0]);
  store.Want(other_, vast);
  LoadMeter meter(nullptr);
  ASSERT_TRUE(store.Import(host_, &meter).ok());
  EXPECT_EQ(store.arena_bytes(), 0u);
  EXPECT_THAT(store.BytesOf(*other_).refusal, HasSubstr("files are not for it"));
  EXPECT_THAT(store.BytesOf(*other_).refusal,
              HasSubstr("memory: there is no room for weights of 1152921504606846976 bytes"));
  EXPECT_EQ(store.BytesOf(*cpu_).refusal, "");
}

TEST_P(WeightStoreTest, FilesBetweenTheDevicesMultiplesAreNotTried) {
  other_ = Other("coarse");
  const auto store = Store({cpu_, other_});
  ExpectProducts(*store, {cpu_, other_});
  EXPECT_EQ(store->BytesOf(*other_).arena, Bytes());
  EXPECT_THAT(store->BytesOf(*other_).refusal, HasSubstr("imports at multiples of 1048576"));
}

TEST_P(WeightStoreTest, ADeviceThatRefusesBothGetsACopy) {
  for (const char* mode : {"no-files,no-memory", "no-files,no-memory,told"}) {
    other_ = Other(mode);
    const auto store = Store({cpu_, other_});
    ExpectProducts(*store, {cpu_, other_});
    EXPECT_EQ(store->BytesOf(*cpu_).file, Bytes()) << mode;
    const WeightBytes bytes = store->BytesOf(*other_);
    EXPECT_EQ(bytes.copied, Bytes()) << mode;
    EXPECT_EQ(bytes.file + bytes.arena, 0u) << mode;
    EXPECT_THAT(bytes.refusal, HasSubstr("files are not for it")) << mode;
    EXPECT_THAT(bytes.refusal, HasSubstr("memory is not for it")) << mode;
    EXPECT_EQ(store->arena_bytes(), 0u) << "nobody takes it";
  }
}

TEST_P(WeightStoreTest, ADeviceThatImportsNothingGetsACopyWithoutATry) {
  other_ = Other("no-import");
  const auto store = Store({cpu_, other_});
  ExpectProducts(*store, {cpu_, other_});
  EXPECT_EQ(store->BytesOf(*other_).copied, Bytes());
  EXPECT_EQ(store->BytesOf(*other_).refusal, "");
}

TEST_P(WeightStoreTest, OtherValuesThanTheFilesAreCopiesOfTheirOwn) {
  other_ = Other("");
  const auto store = Store({});
  const auto place = store->Place(other_, *weights_[0], false, true);
  ASSERT_TRUE(place.ok()) << place.status();
  ASSERT_TRUE(store->Place(other_, *weights_[0], false, true).ok());
  EXPECT_EQ(store->BytesOf(*other_).converted, place->span.bytes) << "one for both";
  EXPECT_EQ(store->BytesOf(*other_).copied, 0u);
}

TEST_P(WeightStoreTest, ADeviceOfConvertedWeightsAloneNeedsNothingElse) {
  other_ = Other("no-files");
  const auto store = Store({cpu_});
  const auto place = store->Place(other_, *weights_[0], false, true);
  ASSERT_TRUE(place.ok()) << place.status();
  const WeightBytes bytes = store->BytesOf(*other_);
  EXPECT_EQ(bytes.converted, place->span.bytes);
  EXPECT_EQ(bytes.file + bytes.arena + bytes.copied, 0u);
  EXPECT_EQ(bytes.refusal, "") << "it was not asked";
  EXPECT_EQ(store->ImportedBytes(*other_), 0u);
  EXPECT_EQ(store->arena_bytes(), 0u);
  EXPECT_EQ(Products(*store, cpu_), expected_);
}

}  // namespace
}  // namespace trine
