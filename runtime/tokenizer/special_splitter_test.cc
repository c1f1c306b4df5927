#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "runtime/tokenizer/special_tokens.h"
#include "runtime/tokenizer/test_vocabulary.h"

namespace trine {
namespace {

struct Case {
  std::string text;
  bool strips_right = false;
};

// Returns "text" for a text and "#id" for a token.
std::vector<std::string> Describe(const std::vector<Fragment>& fragments) {
  std::vector<std::string> out;
  for (const Fragment& fragment : fragments) {
    EXPECT_NE(fragment.text.empty(), fragment.token == kNoToken);
    out.push_back(fragment.token == kNoToken ? std::string(fragment.text)
                                             : "#" + std::to_string(fragment.token));
  }
  return out;
}

std::vector<std::string> Split(const std::vector<Case>& specials, std::string_view text) {
  TokenizerData data;
  std::vector<SpecialSplitter::Special> list;
  for (const Case& special : specials) {
    list.push_back({static_cast<int32_t>(data.tokens.size()), special.strips_right});
    data.tokens.push_back(special.text);
  }
  const Vocabulary vocabulary(data,
                              std::vector<TokenType>(specials.size(), TokenType::kUserDefined));
  return Describe(SpecialSplitter(vocabulary, list).Split(text));
}

using Strings = std::vector<std::string>;

TEST(SpecialSplitterTest, CutsTokensOutOfText) {
  EXPECT_EQ(Split({{"<s>"}, {"</s>"}}, "<s>a b</s><s>c"), (Strings{"#0", "a b", "#1", "#0", "c"}));
  EXPECT_EQ(Split({{"<s>"}}, ""), Strings{});
  EXPECT_EQ(Split({{"<s>"}}, "<s"), Strings{"<s"});
  EXPECT_EQ(Split({}, "<s>"), Strings{"<s>"});
}

TEST(SpecialSplitterTest, TheLongestTokenGoesFirstWhereverItStands) {
  EXPECT_EQ(Split({{"<|"}, {"<|im|>"}, {"im"}}, "<|im|><|im"), (Strings{"#1", "#0", "#2"}));
  // The leftmost token does not win.
  EXPECT_EQ(Split({{"abc"}, {"bcde"}}, "abcde"), (Strings{"a", "#1"}));
  // Of equally long tokens the one with the lower id.
  EXPECT_EQ(Split({{"aab"}, {"aba"}}, "aaba"), (Strings{"#0", "a"}));
  EXPECT_EQ(Split({{"aba"}, {"aab"}}, "aaba"), (Strings{"a", "#0"}));
}

TEST(SpecialSplitterTest, StrippingTokensTakeTheWhiteSpaceAfterThem) {
  EXPECT_EQ(Split({{"<u>", true}}, "<u> \n\t a <u>  "), (Strings{"#0", "a ", "#0"}));
  EXPECT_EQ(Split({{"<u>", false}}, "<u> a"), (Strings{"#0", " a"}));
  // White space that a token takes can't be found by shorter tokens.
  EXPECT_EQ(Split({{"<u>", true}, {"  "}}, "<u>  a  b"), (Strings{"#0", "a", "#1", "b"}));
}

TEST(SpecialSplitterTest, EmptyAndRepeatedTextsDoNoHarm) {
  EXPECT_EQ(Split({{""}, {"x"}, {"x"}, {""}}, "axb"), (Strings{"a", "#1", "b"}));
}

// Searches for each token in turn in all that is still text.
Strings SplitOneByOne(const std::vector<Case>& specials, const std::string& text) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(specials.size()); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return specials[a].text.size() > specials[b].text.size(); });
  Strings parts;
  if (!text.empty()) parts.push_back(text);
  for (const int i : order) {
    Strings out;
    for (const std::string& part : parts) {
      std::string rest = part;
      for (size_t at; part[0] != '#' && (at = rest.find(specials[i].text)) != rest.npos;) {
        if (at > 0) out.push_back(rest.substr(0, at));
        out.push_back("#" + std::to_string(i));
        rest.erase(0, at + specials[i].text.size());
        if (specials[i].strips_right) rest.erase(0, rest.find_first_not_of(' '));
      }
      if (!rest.empty()) out.push_back(rest);
    }
    parts = out;
  }
  return parts;
}

TEST(SpecialSplitterTest, AgreesWithOneTokenAfterTheOther) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Case> specials;
    for (size_t i = 0; i < 1 + random() % 8; ++i) {
      specials.push_back({RandomText(&random, "ab ", 1 + random() % 5), random() % 3 == 0});
    }
    const std::string text = RandomText(&random, "abc ", random() % 40);
    ASSERT_EQ(Split(specials, text), SplitOneByOne(specials, text)) << "'" << text << "'";
  }
}

}  // namespace
}  // namespace trine
