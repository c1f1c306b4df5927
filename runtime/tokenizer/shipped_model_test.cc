// Tests the vocabulary of the model that comes with the project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "runtime/gguf/gguf_file.h"
#include "runtime/tokenizer/test_vocabulary.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {
namespace {

constexpr char kKnownText[] =
    "Once upon a time there was a little girl who lived near a deep, dark forest.";
constexpr int32_t kKnownIds[] = {4615, 616,  258, 551, 462,  309, 258,  483,  763,
                                 449,  1542, 998, 258, 1489, 11,  1191, 1927, 13};

class ShippedModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto file = gguf::File::Open(TRINE_SHIPPED_MODEL);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto data = ReadTokenizerData((*file)->metadata());
    ASSERT_TRUE(data.ok()) << data.status();
    auto tokenizer = Tokenizer::Create(*data);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    // The file is closed here: the tokenizer must not need it.
    tokenizer_ = *std::move(tokenizer);
  }
  static void TearDownTestSuite() { tokenizer_.reset(); }

  void SetUp() override { ASSERT_NE(tokenizer_, nullptr); }

  static inline std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(ShippedModelTest, IsWhatItSays) {
  EXPECT_EQ(tokenizer_->vocab_size(), 8192);
  EXPECT_EQ(tokenizer_->model(), TokenizerModel::kByteLevelBpe);
  EXPECT_EQ(tokenizer_->pre_tokenizer(), "qwen2");
  const int32_t im_end = tokenizer_->FindToken("<|im_end|>");
  ASSERT_NE(im_end, kNoToken);
  EXPECT_TRUE(tokenizer_->IsEndOfGeneration(im_end));
  EXPECT_TRUE(tokenizer_->IsEndOfGeneration(tokenizer_->eos()));
}

// The ids that another engine gives with this file.
TEST_F(ShippedModelTest, GivesTheKnownIds) {
  const auto ids = tokenizer_->Encode(kKnownText, {.add_special = false});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_THAT(*ids, testing::ElementsAreArray(kKnownIds));
}

TEST_F(ShippedModelTest, ChatMarkersAreOneTokenEachWhereParsed) {
  const std::string chat = "<|im_start|>user\nHi<|im_end|>\n";
  const auto parsed = tokenizer_->Encode(chat, {.parse_special = true});
  const auto plain = tokenizer_->Encode(chat, {.parse_special = false});
  ASSERT_TRUE(parsed.ok() && plain.ok());
  EXPECT_EQ(parsed->front(), tokenizer_->FindToken("<|im_start|>"));
  EXPECT_THAT(*plain, testing::Not(testing::Contains(tokenizer_->FindToken("<|im_start|>"))));
  EXPECT_GT(plain->size(), parsed->size());
  EXPECT_EQ(tokenizer_->Decode(*parsed, SpecialText::kShow), chat);
  EXPECT_EQ(tokenizer_->Decode(*parsed), "user\nHi\n");
  EXPECT_EQ(tokenizer_->Decode(*plain), chat);
}

TEST_F(ShippedModelTest, AnyTextComesBackWholeAndInPieces) {
  std::mt19937 random(31);
  for (int round = 0; round < 300; ++round) {
    const std::string text = round % 3 == 0 ? RandomBytes(&random, random() % 200)
                                            : RandomUnicode(&random, random() % 200);
    const auto ids = tokenizer_->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(tokenizer_->Decode(*ids), text) << testing::PrintToString(text);
    Detokenizer detokenizer(tokenizer_, {.at_start = true});
    std::string joined;
    for (const int32_t id : *ids) joined += detokenizer.Push(id);
    joined += detokenizer.Flush();
    ASSERT_EQ(FindInvalidUtf8(joined), joined.size());
    if (FindInvalidUtf8(text) == text.size()) {
      ASSERT_EQ(joined, text);
    }
  }
}

TEST_F(ShippedModelTest, AMegabyteOfOneKindIsNoTrouble) {
  for (const char c : {'a', ' ', '\n', '7', '!', '\0', '\xFF'}) {
    const std::string text(1'000'000, c);
    const auto ids = tokenizer_->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    ASSERT_EQ(tokenizer_->Decode(*ids), text);
  }
}

}  // namespace
}  // namespace trine
