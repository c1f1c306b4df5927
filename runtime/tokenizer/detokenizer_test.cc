#include <gtest/gtest.h>

#include <random>
#include <string>

#include "runtime/tokenizer/test_vocabulary.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {
namespace {

// Returns the text that a Detokenizer should give, converted in one go.
std::string Sanitized(std::string_view bytes) {
  std::string text;
  if (AppendValidUtf8(bytes, &text) < bytes.size()) text += kReplacementCharacter;
  return text;
}

TEST(DetokenizerTest, HoldsACharacterBackUntilItIsWhole) {
  Detokenizer detokenizer(TestVocabulary::ByteLevel().Create());
  EXPECT_EQ(detokenizer.Push('a'), "a");
  EXPECT_EQ(detokenizer.Push(0xF0), "");
  EXPECT_EQ(detokenizer.Push(0x9F), "");
  EXPECT_EQ(detokenizer.Push(0x98), "");
  EXPECT_EQ(detokenizer.held_bytes(), 3u);
  EXPECT_EQ(detokenizer.Push(0x80), "\U0001F600");
  EXPECT_EQ(detokenizer.held_bytes(), 0u);
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, ReplacesWhatCanBecomeNoCharacter) {
  Detokenizer detokenizer(TestVocabulary::ByteLevel().Create());
  EXPECT_EQ(detokenizer.Push(0x80), "\uFFFD");
  EXPECT_EQ(detokenizer.Push(0xE2), "");
  EXPECT_EQ(detokenizer.Push('a'), "\uFFFDa");
  EXPECT_EQ(detokenizer.Push(0xE2), "");
  EXPECT_EQ(detokenizer.Push(0x82), "");
  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Push(0xAC), "\uFFFD");  // starts anew
}

TEST(DetokenizerTest, PiecesJoinedAreTheWholeHoweverTokensAreCut) {
  std::mt19937 random(21);
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  for (int i = 0; i < 200; ++i) {
    vocabulary.AddMerge(RandomBytes(&random, 1), RandomBytes(&random, 1 + random() % 3));
  }
  vocabulary.AddMerge("\xE2", "\x82");
  vocabulary.AddMerge("\x82", "\xAC");
  const auto tokenizer = vocabulary.Create();
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> ids(random() % 30);
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random() % static_cast<uint32_t>(tokenizer->vocab_size()));
    }
    Detokenizer detokenizer(tokenizer);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.Push(id);
      ASSERT_EQ(FindInvalidUtf8(piece), piece.size());
      ASSERT_LT(detokenizer.held_bytes(), 4u);
      joined += piece;
    }
    joined += detokenizer.Flush();
    ASSERT_EQ(joined, Sanitized(tokenizer->Decode(ids)));
  }
}

// Valid UTF-8 is unchanged, wherever it is cut into tokens.
TEST(DetokenizerTest, EverySplitOfATextGivesTheText) {
  const std::string text = "a\u00E4\u20AC\U0001F600z";
  const auto alone = TestVocabulary::ByteLevel().Create();
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Detokenizer detokenizer(alone);
    std::string before, after;
    for (size_t i = 0; i < text.size(); ++i) {
      (i < cut ? before : after) += detokenizer.Push(static_cast<uint8_t>(text[i]));
    }
    EXPECT_EQ(before + after + detokenizer.Flush(), text);
    EXPECT_EQ(FindInvalidUtf8(before), before.size());
  }
}

TEST(DetokenizerTest, TheEncodersSpaceGoesOnlyAtTheStartOfAText) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  const int32_t word = vocabulary.AddPiece("\u2581word", -1);
  const int32_t user = vocabulary.AddPiece(" u", 0, TokenType::kUserDefined);
  const auto tokenizer = vocabulary.Create();
  Detokenizer at_start(tokenizer, {.at_start = true});
  EXPECT_EQ(at_start.Push(1), "");  // <s>
  EXPECT_EQ(at_start.Push(word), "word");
  EXPECT_EQ(at_start.Push(word), " word");
  EXPECT_EQ(at_start.Flush(), "");
  EXPECT_EQ(at_start.Push(word), "word");

  Detokenizer going_on(tokenizer);
  EXPECT_EQ(going_on.Push(word), " word");

  Detokenizer shown(tokenizer, {.special = SpecialText::kShow, .at_start = true});
  EXPECT_EQ(shown.Push(1), "<s>");
  EXPECT_EQ(shown.Push(word), "word");
  EXPECT_EQ(tokenizer->Decode({1, word}, SpecialText::kShow), "<s>word");

  Detokenizer user_first(tokenizer, {.at_start = true});
  EXPECT_EQ(user_first.Push(user), " u");  // the space is part of the token
}

TEST(DetokenizerTest, UnknownIdsContributeNothing) {
  Detokenizer detokenizer(TestVocabulary::ByteLevel().Create());
  for (int32_t id : {0xE2, -1, 1 << 30, 0x82}) EXPECT_EQ(detokenizer.Push(id), "");
  EXPECT_EQ(detokenizer.Push(0xAC), "\u20AC");
}

TEST(DetokenizerTest, AppendsWhereAsked) {
  Detokenizer detokenizer(TestVocabulary::ByteLevel().Create());
  std::string text = "so ";
  detokenizer.Push('f', &text);
  detokenizer.Push('a', &text);
  EXPECT_EQ(text, "so fa");
}

}  // namespace
}  // namespace trine
