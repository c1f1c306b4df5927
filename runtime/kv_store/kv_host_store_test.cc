#include "runtime/kv_store/kv_host_store.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/kv_store/kv_test_util.h"

namespace trine {
namespace {

TEST(KvHostStoreTest, HoldsWhatItIsGiven) {
  const KvSpace space = SmallSpace(), other = SmallSpace("other");
  const std::vector<int32_t> tokens = RandomTokens(256, 1);
  const std::vector<KvBlock> blocks = KvBlocksOf(space, tokens);
  KvHostStore store({uint64_t{1} << 20, {}});
  EXPECT_TRUE(absl::IsNotFound(store.Get(blocks[0]).status()));
  const auto payload = PayloadOf(blocks[0]);
  ASSERT_TRUE(store.Put(blocks[0], payload).ok());
  EXPECT_TRUE(store.Contains(blocks[0].key));
  const auto got = store.Get(blocks[0]);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, payload);  // not a copy
  EXPECT_TRUE(absl::IsNotFound(store.Get(KvBlocksOf(other, tokens)[0]).status()));
  const KvStoreCounters c = store.counters();
  EXPECT_EQ(c.hits, 1u);
  EXPECT_EQ(c.misses, 2u);
  EXPECT_EQ(c.writes, 1u);
  EXPECT_EQ(c.blocks, 1u);
  EXPECT_EQ(c.bytes, space.block_bytes() + 256);
}

TEST(KvHostStoreTest, AKeyAloneIsNotTrusted) {
  const KvSpace space = SmallSpace(), other = SmallSpace("other");
  const std::vector<int32_t> tokens = RandomTokens(128, 1), wrong = RandomTokens(64, 2);
  const std::vector<KvBlock> blocks = KvBlocksOf(space, tokens);
  KvHostStore store({uint64_t{1} << 20, {}});
  ASSERT_TRUE(store.Put(blocks[1], PayloadOf(blocks[1])).ok());
  const auto found = [&](auto change) {
    KvBlock block = blocks[1];
    change(&block);
    return store.Get(block).ok();
  };
  EXPECT_TRUE(found([](KvBlock*) {}));
  EXPECT_FALSE(found([&](KvBlock* b) { b->tokens = wrong; }));
  EXPECT_FALSE(found([](KvBlock* b) { b->tokens = b->tokens.first(63); }));
  EXPECT_FALSE(found([](KvBlock* b) { b->parent = {}; }));
  EXPECT_FALSE(found([](KvBlock* b) { b->first_position = 0; }));
  EXPECT_FALSE(found([&](KvBlock* b) { b->space = &other; }));
}

TEST(KvHostStoreTest, WhatGoesIsHandedOn) {
  KvHostStore lower({uint64_t{1} << 20, {}});
  std::vector<Hash256> order;
  KvHostStore store({3 * (SmallSpace().block_bytes() + 256),
                     [&](const KvBlock& block, const std::shared_ptr<const KvPayload>& payload) {
                       order.push_back(block.key);
                       EXPECT_TRUE(lower.Put(block, payload).ok());
                     }});
  std::vector<int32_t> a = RandomTokens(128, 1), b = RandomTokens(128, 2);
  std::vector<KvBlock> ours;
  {
    const KvSpace gone = SmallSpace();  // the store keeps its own copy
    for (const KvBlock& block : KvBlocksOf(gone, a))
      ASSERT_TRUE(store.Put(block, PayloadOf(block)).ok());
    for (const KvBlock& block : KvBlocksOf(gone, b))
      ASSERT_TRUE(store.Put(block, PayloadOf(block)).ok());
  }
  const KvSpace space = SmallSpace();
  const std::vector<KvBlock> first = KvBlocksOf(space, a);
  EXPECT_EQ(order, std::vector<Hash256>{first[1].key});
  EXPECT_FALSE(store.Get(first[1]).ok());
  const auto got = lower.Get(first[1]);
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(IsPayloadOf(first[1], **got));
  EXPECT_EQ(store.counters().evictions, 1u);
}

TEST(KvHostStoreTest, WhatASpaceCanNotHaveIsRefused) {
  const KvSpace space = SmallSpace(), lossy = SmallSpace("", KvForm::kQ8_0);
  const std::vector<int32_t> tokens = RandomTokens(64, 1);
  const KvBlock block = FirstKvBlock(space, tokens), inexact = FirstKvBlock(lossy, tokens);
  KvHostStore store({uint64_t{1} << 20, {}});
  const auto put = [&](const KvBlock& b, KvForm form, size_t bytes) {
    return absl::IsInvalidArgument(store.Put(b, std::make_shared<KvPayload>(form, bytes)));
  };
  EXPECT_TRUE(put(block, KvForm::kRaw, 100));
  EXPECT_TRUE(put(block, KvForm::kQ8_0, 100));
  EXPECT_FALSE(put(inexact, KvForm::kQ8_0, 100));
  EXPECT_TRUE(put(inexact, KvForm::kQ8_0, space.block_bytes() + 1));
  EXPECT_TRUE(put(inexact, KvForm::kQ4_0, 100));
  KvBlock cut = block;
  cut.tokens = cut.tokens.first(63);
  EXPECT_TRUE(put(cut, KvForm::kRaw, space.block_bytes()));
}

TEST(KvHostStoreTest, ManyThreads) {
  const KvSpace space = SmallSpace();
  KvHostStore store({20 * space.block_bytes(), {}});
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 100; ++i) {
        // Uses each text twice in a row: its four of twenty blocks are found again despite the
        // others.
        const std::vector<int32_t> tokens = RandomTokens(256, (t + i / 2) % 13);
        for (const KvBlock& block : KvBlocksOf(space, tokens)) {
          const auto got = store.Get(block);
          if (got.ok()) {
            EXPECT_TRUE(IsPayloadOf(block, **got));
          } else {
            EXPECT_TRUE(store.Put(block, PayloadOf(block)).ok());
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store.counters().bytes, 20 * space.block_bytes());
  EXPECT_GT(store.counters().hits, 0u);
}

}  // namespace
}  // namespace trine
