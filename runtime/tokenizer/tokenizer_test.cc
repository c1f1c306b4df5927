#include "runtime/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>

#include "runtime/tokenizer/test_vocabulary.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using Ids = std::vector<int32_t>;

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions kParse = {.add_special = false, .parse_special = true};

Ids Encode(const Tokenizer& tokenizer, std::string_view text,
           const EncodeOptions& options = kPlain) {
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : Ids{};
}

TEST(BpeTest, MergesInTheOrderOfTheMerges) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  const int32_t bc = vocabulary.AddMerge("b", "c");
  const int32_t ab = vocabulary.AddMerge("a", "b");
  const int32_t abbc = vocabulary.AddMerge("ab", "bc");
  const int32_t space_a = vocabulary.AddMerge(" ", "a");
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre('a', bc));
  EXPECT_THAT(Encode(*tokenizer, "abbc"), ElementsAre(abbc));
  EXPECT_THAT(Encode(*tokenizer, "abab"), ElementsAre(ab, ab));
  EXPECT_THAT(Encode(*tokenizer, "b ab"), ElementsAre('b', ' ', ab));
  EXPECT_THAT(Encode(*tokenizer, "b ac"), ElementsAre('b', space_a, 'c'));
  EXPECT_THAT(Encode(*tokenizer, "b cb"), ElementsAre('b', ' ', 'c', 'b'));  // words stay apart
  EXPECT_THAT(Encode(*tokenizer, ""), ElementsAre());
}

TEST(BpeTest, OfEqualMergesTheFirstCounts) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  const int32_t ab = vocabulary.AddMerge("a", "b");
  vocabulary.AddMerge("b", "c");
  vocabulary.AddMerge("a", "b");
  EXPECT_THAT(Encode(*vocabulary.Create(), "abc"), ElementsAre(ab, 'c'));
}

TEST(BpeTest, AWholeWordIsTakenAsItIsWhereTheRuleSaysSo) {
  for (const bool llama : {false, true}) {
    TestVocabulary vocabulary = TestVocabulary::ByteLevel(llama ? "llama-bpe" : "gpt-2");
    const int32_t word = vocabulary.Add(TestVocabulary::Alphabet(" word"), TokenType::kNormal);
    const auto ids = Encode(*vocabulary.Create(), "a word");
    if (llama) {
      EXPECT_THAT(ids, ElementsAre('a', word));
    } else {
      EXPECT_THAT(ids, ElementsAre('a', ' ', 'w', 'o', 'r', 'd'));
    }
  }
}

TEST(BpeTest, AMergeWhoseResultIsNoTokenStillMergesFurther) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  vocabulary.data().merges.push_back("a b");
  const int32_t abc = vocabulary.AddMerge("ab", "c");
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre(abc));
  EXPECT_THAT(Encode(*tokenizer, "abd"), ElementsAre('a', 'b', 'd'));
}

TEST(BpeTest, AgreesWithThePlainRuleOnRandomMerges) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    TestVocabulary vocabulary = TestVocabulary::ByteLevel();
    std::vector<std::string> known = {"a", "b", "c"};
    std::map<std::pair<std::string, std::string>, size_t> ranks;
    for (size_t i = 0; i < 20; ++i) {
      const std::string left = known[random() % known.size()];
      const std::string right = known[random() % known.size()];
      ranks.try_emplace({left, right}, i);
      vocabulary.AddMerge(left, right);
      known.push_back(left + right);
    }
    const auto tokenizer = vocabulary.Create();
    const std::string text = RandomText(&random, "abc", 1 + random() % 150);
    std::vector<std::string> parts;
    for (const char c : text) parts.emplace_back(1, c);
    while (true) {
      size_t best = parts.size(), best_rank = SIZE_MAX;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto rank = ranks.find({parts[i], parts[i + 1]});
        if (rank == ranks.end() || rank->second >= best_rank) continue;
        best = i;
        best_rank = rank->second;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    Ids expected;
    for (const std::string& part : parts) expected.push_back(tokenizer->FindToken(part));
    ASSERT_EQ(Encode(*tokenizer, text), expected) << text;
  }
}

TEST(BpeTest, KeepsBytesThatAreNoUtf8) {
  const auto tokenizer = TestVocabulary::ByteLevel().Create();
  EXPECT_THAT(Encode(*tokenizer, std::string_view("a\xFF\0\xE2\x82", 5)),
              ElementsAre('a', 0xFF, 0, 0xE2, 0x82));
}

TEST(BpeTest, AByteWithoutATokenBecomesUnknownElseAReplacementElseNothing) {
  TestVocabulary all = TestVocabulary::ByteLevel();
  const auto without = [&all](std::initializer_list<int> bytes) {
    TokenizerData data = all.data();
    for (const int byte : bytes) data.types[byte] = TokenType::kUnused;
    return data;
  };
  const auto encode = [](const TokenizerData& data, std::string_view text) {
    const auto tokenizer = Tokenizer::Create(data);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return Encode(**tokenizer, text);
  };
  TokenizerData data = without({0x01});
  EXPECT_THAT(encode(data, "a\x01z"), ElementsAre('a', 0xEF, 0xBF, 0xBD, 'z'));
  data.unk = '?';
  EXPECT_THAT(encode(data, "a\x01z"), ElementsAre('a', '?', 'z'));
  data.tokens.push_back("<0x01>");
  data.types.push_back(TokenType::kByte);
  EXPECT_THAT(encode(data, "a\x01z"), ElementsAre('a', 256, 'z'));
  data = without({0x01, 0xEF, 0xBF, 0xBD});
  EXPECT_THAT(encode(data, "a\x01z"), ElementsAre('a', 'z'));
}

TEST(SpmTest, MergesTheHighestScoreFirst) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  const int32_t space = vocabulary.AddPiece("\u2581", -9);
  const int32_t a = vocabulary.AddPiece("a", -9);
  const int32_t b = vocabulary.AddPiece("b", -9);
  const int32_t ab = vocabulary.AddPiece("ab", -3);
  const int32_t ba = vocabulary.AddPiece("ba", -2);
  const int32_t space_a = vocabulary.AddPiece("\u2581a", -1);
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(Encode(*tokenizer, "ab"), ElementsAre(space_a, b));
  EXPECT_THAT(Encode(*tokenizer, "bab"), ElementsAre(space, ba, b));
  EXPECT_THAT(Encode(*tokenizer, "b  ab"), ElementsAre(space, b, space, space_a, b));
  EXPECT_THAT(Encode(*tokenizer, "xab"), ElementsAre(space, 3 + 'x', ab));
  EXPECT_THAT(Encode(*tokenizer, "a", {.add_special = true}), ElementsAre(1, space_a));
  EXPECT_THAT(Encode(*tokenizer, "", {.add_special = true}), ElementsAre(1));
  EXPECT_THAT(Encode(*tokenizer, ""), ElementsAre());
  EXPECT_EQ(tokenizer->Decode({1, space_a, b, a}), "aba");
}

TEST(SpmTest, ATokenAcrossWordsIsFound) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  vocabulary.data().add_space_prefix = false;
  vocabulary.AddPiece("\u2581", -9);
  const int32_t a = vocabulary.AddPiece("a", -9);
  const int32_t a_space = vocabulary.AddPiece("a\u2581", -1);
  EXPECT_THAT(Encode(*vocabulary.Create(), "a a"), ElementsAre(a_space, a));
}

TEST(SpmTest, AnUnknownCharacterBecomesItsBytes) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  vocabulary.data().add_space_prefix = false;
  const int32_t a = vocabulary.AddPiece("a", -9);
  EXPECT_THAT(Encode(*vocabulary.Create(), "a\u20ACa\xE2\x82"),
              ElementsAre(a, 3 + 0xE2, 3 + 0x82, 3 + 0xAC, a, 3 + 0xE2, 3 + 0x82));
  vocabulary.data().types[3 + 0x82] = TokenType::kUnused;
  EXPECT_THAT(Encode(*vocabulary.Create(), "a\u20ACa"), ElementsAre(a, 0, a));
  vocabulary.data().unk = kNoToken;
  EXPECT_THAT(Encode(*vocabulary.Create(), "a\u20ACa"), ElementsAre(a, a));
}

TEST(SpmTest, AgreesWithThePlainRuleOnRandomScores) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    TestVocabulary vocabulary = TestVocabulary::SentencePiece();
    vocabulary.data().add_space_prefix = false;
    std::map<std::string, std::pair<float, int32_t>> pieces;
    const auto add = [&](const std::string& text) {
      const float score = -static_cast<float>(random() % 8);
      const int32_t id = vocabulary.AddPiece(text, score);
      pieces.try_emplace(text, score, id);
    };
    const std::vector<std::string> letters = {"a", "b", std::string(kSpaceMark)};
    for (const std::string& letter : letters) add(letter);
    for (int i = 0; i < 25; ++i) {
      std::string text;
      // In half of the rounds no space follows another character, so words are encoded one by one.
      for (size_t n = 2 + random() % 4; n > 0; --n) {
        const bool inside = !text.empty() && text.compare(text.size() - 1, 1, "\x81") != 0;
        text += letters[random() % (round % 2 == 0 && inside ? 2 : 3)];
      }
      add(text);
    }
    const auto tokenizer = vocabulary.Create();
    std::vector<std::string> parts;
    std::string text;
    for (size_t i = 0; i < 1 + random() % 120; ++i) {
      const size_t letter = random() % 3;
      parts.push_back(letters[letter]);
      text += "ab "[letter];
    }
    while (true) {
      size_t best = parts.size();
      float best_score = -100;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto piece = pieces.find(parts[i] + parts[i + 1]);
        if (piece == pieces.end() || piece->second.first <= best_score) continue;
        best = i;
        best_score = piece->second.first;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    Ids expected;
    for (const std::string& part : parts) expected.push_back(pieces.at(part).second);
    ASSERT_EQ(Encode(*tokenizer, text), expected) << text;
  }
}

TEST(TokenizerTest, SpecialTokensAreParsedOnlyWhereAllowed) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel("llama-bpe");
  const int32_t end = vocabulary.Add("<|im_end|>", TokenType::kControl);
  const int32_t user = vocabulary.Add("<think>", TokenType::kUserDefined);
  // Text can't become a control token that reads like a word or like the result of a merge.
  vocabulary.Add("word", TokenType::kControl);
  vocabulary.data().merges.push_back("x y");
  vocabulary.Add("xy", TokenType::kControl);
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(Encode(*tokenizer, "a<|im_end|><think>", kParse), ElementsAre('a', end, user));
  EXPECT_THAT(Encode(*tokenizer, "<|im_end|>"), ElementsAreArray(std::string("<|im_end|>")));
  EXPECT_THAT(Encode(*tokenizer, "<think>"), ElementsAre(user));
  EXPECT_THAT(Encode(*tokenizer, "word"), ElementsAre('w', 'o', 'r', 'd'));
  EXPECT_THAT(Encode(*tokenizer, "xy"), ElementsAre('x', 'y'));
}

TEST(TokenizerTest, NoTextGivesAControlTokenUnlessParsed) {
  std::mt19937 random(2);
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  for (const char* piece : {"<", "s", ">", "/", "<s", "s>", "</", "</s", "<0", "x", "0", "<0x0"}) {
    vocabulary.AddPiece(piece, -1);
  }
  const auto tokenizer = vocabulary.Create();
  for (int round = 0; round < 500; ++round) {
    for (const int32_t id : Encode(*tokenizer, RandomText(&random, "</s>0xunk", 30))) {
      ASSERT_NE(tokenizer->Type(id), TokenType::kControl);
      ASSERT_NE(tokenizer->Type(id), TokenType::kUnknown);
    }
  }
  EXPECT_THAT(Encode(*tokenizer, "<s></s>", kParse), ElementsAre(1, 2));
}

TEST(TokenizerTest, ASpaceGoesBeforeTextAtTheStartAndAfterSpecialTokens) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  const int32_t a = vocabulary.AddPiece("a", -9);
  const int32_t space_a = vocabulary.AddPiece("\u2581a", -1);
  EXPECT_THAT(Encode(*vocabulary.Create(), "a<s>a", kParse), ElementsAre(space_a, 1, space_a));
  vocabulary.data().add_space_prefix = false;
  EXPECT_THAT(Encode(*vocabulary.Create(), "a<s>a", kParse), ElementsAre(a, 1, a));
}

TEST(TokenizerTest, Phi3SpecialTokensTakeTheSpaceAfterThem) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  const int32_t user = vocabulary.Add("<|user|>", TokenType::kControl);
  vocabulary.data().scores.push_back(0);
  vocabulary.data().special_strips_right = true;
  vocabulary.data().add_space_prefix = false;
  const int32_t a = vocabulary.AddPiece("a", -9);
  const int32_t space = vocabulary.AddPiece("\u2581", -9);
  EXPECT_THAT(Encode(*vocabulary.Create(), "<|user|> \n a<s> a", kParse),
              ElementsAre(user, a, 1, space, a));
}

TEST(TokenizerTest, AddsWhatTheFileAsksFor) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  vocabulary.data().bos = vocabulary.Add("<b>", TokenType::kControl);
  vocabulary.data().eos = vocabulary.Add("<e>", TokenType::kControl);
  vocabulary.data().add_bos = vocabulary.data().add_eos = true;
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(Encode(*tokenizer, "a", {}), ElementsAre(256, 'a', 257));
  EXPECT_THAT(Encode(*tokenizer, "", {}), ElementsAre(256, 257));
  EXPECT_THAT(Encode(*tokenizer, "a"), ElementsAre('a'));
}

TEST(TokenizerTest, KnowsWhatEndsAGeneration) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  vocabulary.data().eos = vocabulary.Add("<end>", TokenType::kControl);
  const int32_t im_end = vocabulary.Add("<|im_end|>", TokenType::kNormal);  // a converter's mistake
  const int32_t s = vocabulary.Add("</s>", TokenType::kNormal);             // may be HTML
  const int32_t eot = vocabulary.Add("<EOT>", TokenType::kControl);
  const int32_t start = vocabulary.Add("<|im_start|>", TokenType::kControl);
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(tokenizer->end_of_generation(), ElementsAre(256, im_end, eot));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(im_end));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(s));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(start));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(-1));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(1 << 30));
  EXPECT_EQ(tokenizer->eot(), im_end);
  EXPECT_EQ(tokenizer->Type(im_end), TokenType::kControl);
}

TEST(TokenizerTest, MessagesOfOneTurnAreNotItsEnd) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  const int32_t end = vocabulary.Add("<|end|>", TokenType::kControl);
  EXPECT_TRUE(vocabulary.Create()->IsEndOfGeneration(end));
  const int32_t back = vocabulary.Add("<|return|>", TokenType::kControl);
  const int32_t call = vocabulary.Add("<|call|>", TokenType::kControl);
  EXPECT_THAT(vocabulary.Create()->end_of_generation(), ElementsAre(back, call));
}

TEST(TokenizerTest, TokensContributeTheirBytes) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  const int32_t control = vocabulary.Add("<c>", TokenType::kControl);
  const int32_t user = vocabulary.Add("\u00F8 x", TokenType::kUserDefined);
  const int32_t odd = vocabulary.Add("\u4E2D", TokenType::kNormal);  // not in the alphabet
  const int32_t unused = vocabulary.Add("[PAD1]", TokenType::kUnused);
  const int32_t byte = vocabulary.Add("<0x0a>", TokenType::kByte);
  const auto tokenizer = vocabulary.Create();
  EXPECT_EQ(tokenizer->TokenBytes(' '), " ");
  EXPECT_EQ(tokenizer->TokenText(' '), "\u0120");
  EXPECT_EQ(tokenizer->TokenBytes(control), "");
  EXPECT_EQ(tokenizer->TokenBytes(control, SpecialText::kShow), "<c>");
  EXPECT_EQ(tokenizer->TokenBytes(user), "\u00F8 x");
  EXPECT_EQ(tokenizer->TokenBytes(odd), "\u4E2D");
  EXPECT_EQ(tokenizer->TokenBytes(unused, SpecialText::kShow), "");
  EXPECT_EQ(tokenizer->TokenBytes(byte), "\n");
  for (const int32_t id : {-1, tokenizer->vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer->TokenBytes(id, SpecialText::kShow), "");
    EXPECT_EQ(tokenizer->TokenText(id), "");
    EXPECT_EQ(tokenizer->Type(id), TokenType::kUndefined);
  }
  EXPECT_EQ(tokenizer->FindToken("<c>"), control);
  EXPECT_EQ(tokenizer->FindToken("\u0120"), ' ');
  EXPECT_EQ(tokenizer->FindToken(" "), kNoToken);
}

// The byte 0xF8 is written as the letter U+00F8. A user-defined token of that letter is the letter
// itself and must not stand for the byte.
TEST(TokenizerTest, AUserDefinedTokenIsNoByte) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel();
  vocabulary.data().types[0xF8] = TokenType::kUserDefined;
  const auto tokenizer = vocabulary.Create();
  EXPECT_THAT(Encode(*tokenizer, "\u00F8"), ElementsAre(0xF8));
  EXPECT_EQ(tokenizer->Decode({0xF8}), "\u00F8");
  EXPECT_THAT(Encode(*tokenizer, "\xF8"), ElementsAre(0xEF, 0xBF, 0xBD));
}

TEST(TokenizerTest, RandomTextComesBack) {
  std::mt19937 random(9);
  TestVocabulary bpe = TestVocabulary::ByteLevel("qwen2");
  TestVocabulary spm = TestVocabulary::SentencePiece();
  spm.AddPiece("\u2581", -9);
  for (int i = 0; i < 60; ++i) {
    const std::string left = RandomText(&random, "ab \xC3\xA4", 1 + random() % 2);
    bpe.AddMerge(left, RandomText(&random, "ab \xC3\xA4", 1));
    spm.AddPiece(RandomText(&random, "abcdef", 1 + random() % 3), -static_cast<float>(i));
  }
  bpe.Add("<|x|>", TokenType::kUserDefined);
  for (const auto& tokenizer : {bpe.Create(), spm.Create()}) {
    for (int round = 0; round < 300; ++round) {
      const std::string text = round % 2 == 0 ? RandomBytes(&random, random() % 100)
                                              : RandomUnicode(&random, random() % 100);
      ASSERT_EQ(tokenizer->Decode(Encode(*tokenizer, text)), text) << testing::PrintToString(text);
      ASSERT_EQ(tokenizer->Decode(Encode(*tokenizer, text, {})), text);
    }
  }
}

TEST(TokenizerTest, SeveralThreadsGetTheSameIds) {
  TestVocabulary vocabulary = TestVocabulary::ByteLevel("llama-bpe");
  vocabulary.AddMerge("a", "b");
  vocabulary.AddMerge("ab", "ab");
  const auto tokenizer = vocabulary.Create();
  std::mt19937 random(4);
  const std::string text = RandomUnicode(&random, 5000);
  const Ids expected = Encode(*tokenizer, text);
  std::vector<std::thread> threads;
  std::vector<Ids> results(4);
  for (Ids& result : results) {
    threads.emplace_back([&] { result = Encode(*tokenizer, text); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace trine
