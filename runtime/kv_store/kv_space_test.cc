#include "runtime/kv_store/kv_space.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/kv_store/hash256.h"
#include "runtime/kv_store/kv_test_util.h"

namespace trine {
namespace {

TEST(Hash256Test, HexThereAndBack) {
  Hash256 hash;
  for (size_t i = 0; i < 32; ++i) hash.bytes[i] = static_cast<std::byte>(i * 9);
  const std::string hex = ToHex(hash);
  EXPECT_EQ(hex.substr(0, 6), "000912");
  EXPECT_EQ(FromHex(hex), hash);
  EXPECT_EQ(FromHex(hex.substr(1)), std::nullopt);
  EXPECT_EQ(FromHex(hex + "0"), std::nullopt);
  EXPECT_EQ(FromHex("X" + hex.substr(1)), std::nullopt);
  EXPECT_EQ(FromHex("A" + hex.substr(1)), std::nullopt);
}

// The input is eight zero bytes (the length of the empty purpose) and "abc".
TEST(Sha256Test, IsSha256) {
  Sha256 hash("");
  hash.Bytes("abc", 3);
  EXPECT_EQ(ToHex(hash.Finish()),
            "f3652e4ce938bb9965f62c3ca4d8f69301a6c85b1e86eac67e291152d3c0e3dd");
}

// Files contain these hashes, so they may never change.
TEST(KvSpaceTest, KeysAreWhatTheyAlwaysWere) {
  const KvSpace space = SmallSpace();
  const std::vector<int32_t> tokens = RandomTokens(128, 1);
  const std::vector<KvBlock> blocks = KvBlocksOf(space, tokens);
  EXPECT_EQ(ToHex(space.id()), "cba059d0f032bfd595bf5a6303ab5917822e92522600b22a86f90d2005a845f1");
  EXPECT_EQ(ToHex(blocks[0].key),
            "b4e291878609d7e94e349e88679bdf7eb8b604aa7fd09f79f23ee42ce58fbefb");
  EXPECT_EQ(ToHex(blocks[1].key),
            "f299966bc190793165afa51d6cf6e8fe4920eb42e0a512bb9847dc7b00c079a9");
}

TEST(KvSpaceTest, EveryFieldMakesAnotherSpace) {
  const std::vector<std::function<void(KvSpaceFields*)>> changes = {
      [](KvSpaceFields*) {},
      [](KvSpaceFields* f) { f->model.bytes[31] = std::byte{1}; },
      [](KvSpaceFields* f) { f->numerics_version = 2; },
      [](KvSpaceFields* f) { f->layout.layers = 3; },
      [](KvSpaceFields* f) { f->layout.kv_heads = 2; },
      [](KvSpaceFields* f) { f->layout.head_dim_k = 64; },
      [](KvSpaceFields* f) { f->layout.head_dim_v = 64; },
      [](KvSpaceFields* f) { f->layout.type_k = quant::Type::kBF16; },
      [](KvSpaceFields* f) { f->layout.type_v = quant::Type::kBF16; },
      [](KvSpaceFields* f) { f->layout.positions = 32; },
      [](KvSpaceFields* f) { f->form = KvForm::kQ8_0; },
      [](KvSpaceFields* f) { f->owner = "a"; },
      [](KvSpaceFields* f) { f->other = "a"; },
  };
  std::set<Hash256> ids;
  for (const auto& change : changes) {
    KvSpaceFields fields = SmallFields();
    change(&fields);
    const auto space = KvSpace::Create(fields);
    ASSERT_TRUE(space.ok()) << space.status();
    ids.insert(space->id());
  }
  EXPECT_EQ(ids.size(), changes.size());
}

TEST(KvSpaceTest, BytesOfABlock) {
  EXPECT_EQ(SmallSpace().block_bytes(), 2u * 64 * 32 * 2 * 2);
  KvSpaceFields fields = SmallFields();
  fields.layout.type_v = quant::Type::kQ8_KV;
  EXPECT_EQ(KvSpace::Create(fields)->block_bytes(), 2u * 64 * (64 + 36));
}

TEST(KvSpaceTest, LayoutsThatCanNotBeAreRefused) {
  const auto refused = [](auto change) {
    KvSpaceFields fields = SmallFields();
    change(&fields.layout);
    return absl::IsInvalidArgument(KvSpace::Create(fields).status());
  };
  EXPECT_TRUE(refused([](KvLayout* l) { l->layers = 0; }));
  EXPECT_TRUE(refused([](KvLayout* l) { l->kv_heads = 1u << 31; }));
  EXPECT_TRUE(refused([](KvLayout* l) { l->head_dim_k = 0; }));
  EXPECT_TRUE(refused([](KvLayout* l) { l->positions = 63; }));
  EXPECT_TRUE(refused([](KvLayout* l) { l->type_k = static_cast<quant::Type>(99); }));
  EXPECT_TRUE(refused([](KvLayout* l) {
    l->type_k = quant::Type::kQ8_KV;
    l->head_dim_k = 48;
  }));
}

TEST(KvSpaceTest, AKeyStandsForAllThatIsBefore) {
  const KvSpace space = SmallSpace();
  std::vector<int32_t> tokens = RandomTokens(64 * 4 + 17, 2);
  const std::vector<KvBlock> blocks = KvBlocksOf(space, tokens);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].parent, Hash256{});
  EXPECT_EQ(blocks[3].parent, blocks[2].key);
  EXPECT_EQ(blocks[3].first_position, 192u);
  std::vector<int32_t> changed = tokens;
  changed[70] ^= 1;
  const std::vector<KvBlock> others = KvBlocksOf(space, changed);
  EXPECT_EQ(others[0].key, blocks[0].key);
  for (size_t i = 1; i < 4; ++i) EXPECT_NE(others[i].key, blocks[i].key);
  const KvSpace private_space = SmallSpace("somebody's key");
  EXPECT_NE(KvBlocksOf(private_space, tokens)[0].key, blocks[0].key);
}

}  // namespace
}  // namespace trine
