// Vocabularies that no honest file has: refused in a sentence or used as documented, no crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "runtime/tokenizer/test_vocabulary.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {
namespace {

using testing::HasSubstr;

std::string Refusal(const TokenizerData& data) {
  const auto tokenizer = Tokenizer::Create(data);
  EXPECT_FALSE(tokenizer.ok());
  return std::string(tokenizer.status().message());
}

TEST(HostileVocabularyTest, RefusesCountsThatDiffer) {
  EXPECT_EQ(Refusal({}), "the tokenizer has no tokens");
  TokenizerData data = {.tokens = {"a", "b"}, .types = {TokenType::kNormal}};
  EXPECT_EQ(Refusal(data), "the tokenizer has 2 tokens but 1 token types");
  data = {.model = TokenizerModel::kSentencePiece, .tokens = {"a"}, .scores = {1, 2}};
  EXPECT_EQ(Refusal(data), "the tokenizer has 1 tokens but 2 scores");
}

TEST(HostileVocabularyTest, RefusesIdsOutsideTheVocabulary) {
  const std::vector<std::string_view> tokens = {"a"};
  EXPECT_EQ(Refusal({.tokens = tokens, .bos = 1}),
            "the tokenizer's bos token is 1, but the vocabulary has 1 tokens");
  EXPECT_THAT(Refusal({.tokens = tokens, .eos = -2}), HasSubstr("eos token is -2"));
  EXPECT_THAT(Refusal({.tokens = tokens, .unk = 5}), HasSubstr("unk token is 5"));
  EXPECT_EQ(Refusal({.tokens = tokens, .add_bos = true}),
            "the tokenizer asks for a BOS token but has none");
  EXPECT_EQ(Refusal({.tokens = tokens, .add_eos = true}),
            "the tokenizer asks for an EOS token but has none");
}

TEST(HostileVocabularyTest, RefusesTypesAndScoresThatAreNone) {
  EXPECT_EQ(Refusal({.tokens = {"a"}, .types = {static_cast<TokenType>(7)}}),
            "token 0 has the unknown type 7");
  EXPECT_EQ(Refusal({.tokens = {"<0xGG>"}, .types = {TokenType::kByte}}),
            "token 0 is of type byte but its text is '<0xGG>', expected <0x00> to <0xFF>");
  EXPECT_EQ(Refusal({.model = TokenizerModel::kSentencePiece,
                     .tokens = {"a"},
                     .scores = {std::numeric_limits<float>::quiet_NaN()}}),
            "the score of token 0 is no number");
}

TEST(HostileVocabularyTest, RefusesMergesThatAreNoPairs) {
  for (const std::string_view merge : {"", "ab", " ", "a ", " a", "ab "}) {
    TokenizerData data = {.tokens = {"a"}, .merges = {"a a", merge}};
    EXPECT_THAT(Refusal(data), HasSubstr("merge 1 of the tokenizer is '")) << merge;
  }
}

TEST(HostileVocabularyTest, RefusesAnUnknownPreTokenizerByNameWithTheKnownOnes) {
  const auto tokenizer = Tokenizer::Create({.pre_tokenizer = "superbpe\x1b[2J", .tokens = {"a"}});
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              testing::AllOf(HasSubstr("'superbpe\\x1b[2J'"), HasSubstr("gpt-2, llama-bpe")));
}

// Encodes and decodes all sorts of text. Accepts any result made of the vocabulary's ids.
void Exercise(const Tokenizer& tokenizer, std::mt19937* random) {
  for (int round = 0; round < 8; ++round) {
    std::string text = round % 2 == 0 ? RandomBytes(random, 60) : RandomUnicode(random, 60);
    for (int i = 0; i < 3; ++i) {
      text += tokenizer.TokenText(static_cast<int32_t>((*random)() % 300));
    }
    const auto ids = tokenizer.Encode(text, {.parse_special = round % 4 < 2});
    ASSERT_TRUE(ids.ok()) << ids.status();
    for (const int32_t id : *ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, tokenizer.vocab_size());
    }
    tokenizer.Decode(*ids, SpecialText::kShow);
  }
}

TEST(HostileVocabularyTest, EmptyRepeatedAndUnreadableTokensDoNoHarm) {
  std::mt19937 random(13);
  const std::string_view odd[] = {
      "",           "",           "a",     "a",      "\xFF",
      "\xE2\x96",   "\xC0\x80",   " ",     "\u2581", std::string_view("\0", 1),
      "<|im_end|>", "<|im_end|>", "<0x41>"};
  for (const TokenizerModel model :
       {TokenizerModel::kByteLevelBpe, TokenizerModel::kSentencePiece}) {
    for (int type = 0; type < 6; ++type) {
      TokenizerData data = {.model = model};
      for (const std::string_view text : odd) {
        data.tokens.push_back(text);
        data.types.push_back(static_cast<TokenType>(type));
      }
      data.merges = {"a a", "\xFF \xFF", "  a", "x y"};
      const auto tokenizer = Tokenizer::Create(data);
      ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
      EXPECT_EQ((*tokenizer)->FindToken("a"), 2);
      Exercise(**tokenizer, &random);
    }
  }
}

TEST(HostileVocabularyTest, AnEmptyTokenIsNeverFound) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  vocabulary.Add("", TokenType::kUserDefined);
  vocabulary.Add("", TokenType::kControl);
  const auto ids = vocabulary.Create()->Encode("ab", {.parse_special = true});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<int32_t>{'a', 'b'}));
}

TEST(HostileVocabularyTest, AVocabularyWithoutTypesKnowsItsSpecialTokensById) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  vocabulary.AddPiece("a", -1);
  vocabulary.data().types.clear();
  const auto tokenizer = vocabulary.Create();
  EXPECT_EQ(tokenizer->Type(0), TokenType::kUnknown);
  EXPECT_EQ(tokenizer->Type(1), TokenType::kControl);
  EXPECT_EQ(tokenizer->Type(3), TokenType::kByte);
  EXPECT_EQ(tokenizer->Type(259), TokenType::kNormal);
}

TEST(HostileVocabularyTest, RandomVocabulariesAreUsedOrRefused) {
  std::mt19937 random(17);
  int used = 0;
  for (int round = 0; round < 300; ++round) {
    TestVocabulary vocabulary;
    TokenizerData& data = vocabulary.data();
    data.model = static_cast<TokenizerModel>(round % 2);
    for (size_t i = 0; i < 1 + random() % 40; ++i) {
      data.tokens.push_back(vocabulary.Own(round % 3 == 0
                                               ? RandomBytes(&random, random() % 5)
                                               : RandomText(&random, "ab <0x4>", random() % 7)));
      data.types.push_back(static_cast<TokenType>(random() % (round % 5 == 0 ? 7 : 6)));
      data.scores.push_back(random() % 4 == 0 ? INFINITY : static_cast<float>(random() % 3));
    }
    for (size_t i = 0; i < random() % 30; ++i) {
      data.merges.push_back(vocabulary.Own(RandomText(&random, "ab", 1 + random() % 3) + " " +
                                           RandomText(&random, "ab", 1 + random() % 3)));
    }
    data.bos = static_cast<int32_t>(random() % 20) - 1;
    data.add_bos = random() % 2 == 0;
    data.add_space_prefix = random() % 2 == 0;
    const auto tokenizer = Tokenizer::Create(data);
    if (!tokenizer.ok()) {
      EXPECT_FALSE(tokenizer.status().message().empty());
      continue;
    }
    ++used;
    Exercise(**tokenizer, &random);
  }
  EXPECT_GT(used, 100);
}

}  // namespace
}  // namespace trine
