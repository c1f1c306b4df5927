// Compares patterns and character automata with the standard library's regular expressions.
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

#include "runtime/constraint/grammar/char_dfa.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

std::string RandomPattern(std::mt19937* random, int depth) {
  const auto pick = [&](uint32_t n) { return (*random)() % n; };
  if (depth == 0) {
    const char* atoms[] = {"a", "b", "c", ".", "[ab]", "[^a]", "\\d", "\\w", "\\.", "1", "[a-c1]"};
    return atoms[pick(11)];
  }
  const std::string inner = RandomPattern(random, depth - 1);
  switch (pick(7)) {
    case 0:
      return "(" + inner + ")*";
    case 1:
      return "(?:" + inner + ")+";
    case 2:
      return "(" + inner + ")?";
    case 3:
      return "(" + inner + "){1,2}";
    case 4:
      return "(" + inner + "|" + RandomPattern(random, depth - 1) + ")";
    default:
      return inner + RandomPattern(random, depth - 1);
  }
}

CharDfa Compile(const std::string& pattern) {
  const auto expr = ParseRegex(pattern);
  EXPECT_TRUE(expr.ok()) << pattern << ": " << expr.status();
  if (!expr.ok()) return {};
  auto dfa = CharDfa::Of(**expr);
  EXPECT_TRUE(dfa.ok()) << dfa.status();
  return dfa.ok() ? *std::move(dfa) : CharDfa();
}

std::string RandomSubject(std::mt19937* random) {
  std::string text;
  for (size_t n = (*random)() % 7; n > 0; --n) text += "abc1._"[(*random)() % 6];
  return text;
}

TEST(RegexTest, MatchesWhatTheStandardLibraryMatches) {
  std::mt19937 random(11);
  int matches = 0;
  for (int round = 0; round < 250; ++round) {
    std::string pattern = RandomPattern(&random, 3);
    if (random() % 2 == 0) pattern = "^" + pattern;
    if (random() % 2 == 0) pattern += "$";
    const CharDfa dfa = Compile(pattern);
    const std::regex standard(pattern);
    for (int i = 0; i < 60; ++i) {
      const std::string text = RandomSubject(&random);
      const bool expected = std::regex_search(text, standard);
      ASSERT_EQ(dfa.Accepts(text), expected) << pattern << " on '" << text << "'";
      matches += expected ? 1 : 0;
    }
  }
  EXPECT_GT(matches, 1000);
}

TEST(RegexTest, SetsOfTextsMeetAndPart) {
  std::mt19937 random(12);
  for (int round = 0; round < 60; ++round) {
    const CharDfa a = Compile("^" + RandomPattern(&random, 3) + "$");
    const CharDfa b = Compile(RandomPattern(&random, 2));
    const auto both = a.Intersect(b);
    const auto only_a = a.Minus(b);
    const auto short_a = a.Intersect(CharDfa::Lengths(1, 3));
    ASSERT_TRUE(both.ok() && only_a.ok() && short_a.ok());
    for (int i = 0; i < 60; ++i) {
      const std::string text = RandomSubject(&random);
      ASSERT_EQ(both->Accepts(text), a.Accepts(text) && b.Accepts(text));
      ASSERT_EQ(only_a->Accepts(text), a.Accepts(text) && !b.Accepts(text));
      ASSERT_EQ(short_a->Accepts(text), a.Accepts(text) && text.size() >= 1 && text.size() <= 3);
    }
  }
}

TEST(RegexTest, CharactersNotBytes) {
  const CharDfa dfa = Compile("^.{2}$");
  EXPECT_TRUE(dfa.Accepts("é\xF0\x9F\x98\x80"));
  EXPECT_FALSE(dfa.Accepts("é"));
  EXPECT_FALSE(dfa.Accepts("a\n"));
  EXPECT_TRUE(Compile("^[à-ü\\u{1F600}]+$").Accepts("é\xF0\x9F\x98\x80"));
  EXPECT_TRUE(Compile("^\\s$").Accepts("\u2003"));
}

TEST(RegexTest, RefusesWhatIsNoRegularLanguage) {
  for (const char* pattern :
       {"(?=a)", "(?!a)", "(?<=a)b", "(a)\\1", "\\bword", "\\p{L}", "a(b", "a)", "[b-a]", "*a",
        "[a", "a{2,1}", "a^b", "a$b", "(^a)", "\\", "a{99999}", "\\u{110000}"}) {
    EXPECT_FALSE(ParseRegex(pattern).ok()) << pattern;
  }
  // Needs too many states to be deterministic.
  const auto wide = ParseRegex("(a|b)*a(a|b){200}");
  ASSERT_TRUE(wide.ok());
  EXPECT_FALSE(CharDfa::Of(**wide).ok());
}

TEST(RegexTest, SetsOfStatesHaveALimit) {
  // Few DFA states, each of which stands for thousands of NFA states.
  const auto optional = ParseRegex("^(?:a?){9999}$");
  ASSERT_TRUE(optional.ok());
  EXPECT_FALSE(CharDfa::Of(**optional).ok());
  // Many ranges, repeated many times.
  std::string every_second;
  for (uint32_t c = 0x4E00; c < 0x9F00; c += 2) AppendUtf8(c, &every_second);
  const auto ranges = ParseRegex("^[" + every_second + "]{9999}$");
  ASSERT_TRUE(ranges.ok());
  EXPECT_FALSE(CharDfa::Of(**ranges).ok());
}

}  // namespace
}  // namespace trine::constraint
