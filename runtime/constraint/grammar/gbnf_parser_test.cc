#include <gtest/gtest.h>

#include <string>

#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/mask/constraint_test_util.h"
#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

struct Case {
  const char* grammar;
  std::vector<std::string> complete;
  std::vector<std::string> refused;
};

TEST(GbnfTest, ReadsWhatPeopleWrite) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  const Case cases[] = {
      {"root ::= \"ab\"", {"ab"}, {"b", "abc", "aab"}},
      {"root ::= \"a\" | \"b\" \"c\"", {"a", "bc"}, {"c", "ac"}},
      {"root ::= [a-c]+", {"a", "cab"}, {"d", "ad"}},
      {"root ::= [^a-c\\n]", {"d", "\xC3\xA9", "\xF0\x9F\x98\x80"}, {"a", "\n", "\x80", "\xFF"}},
      {"root ::= .", {"\n", "x", "\xE2\x82\xAC"}, {"xx", "\xED\xA0\x80", "\xC0\x80"}},
      {"root ::= \"\\x41\\u00e9\\U0001F600\\t\\\"\"", {"A\xC3\xA9\xF0\x9F\x98\x80\t\""}, {"B"}},
      {"root ::= \"a\"{2}", {"aa"}, {"aaa", "b"}},
      {"root ::= \"a\"{2,}", {"aa", "aaaaa"}, {"b"}},
      {"root ::= \"a\"{1,3}", {"a", "aaa"}, {"aaaa"}},
      {"root ::= \"a\"{0,0} \"b\"", {"b"}, {"a"}},
      {"root ::= (\"a\" | \"b\")* \"c\"?", {"", "abba", "abc", "c"}, {"cc", "ca"}},
      {"# a comment\nroot ::= x # another\n  | y\nx ::= \"x\"\n\ny ::= (\n \"y\" |\n \"z\"\n)\n",
       {"x", "y", "z"},
       {"xy"}},
      {"root ::= a-b_1\na-b_1 ::= \"q\"", {"q"}, {"a"}},
      {"root ::= \"[\" root \"]\" | \"x\"", {"x", "[[x]]"}, {"]"}},
      {"root ::= list\nlist ::= \"a\" list | \"\"", {"", "aaaa"}, {"b"}},
      {"root ::= |  \"a\"", {"", "a"}, {"aa"}},
      {"root ::= [a\\]\\-^]+", {"a]-^"}, {"b"}},
  };
  for (const Case& c : cases) {
    const auto constraint = MustMakeGbnf(c.grammar, vocabulary);
    ASSERT_NE(constraint, nullptr);
    for (const std::string& text : c.complete) {
      EXPECT_EQ(Read(constraint, text), Reading::kComplete) << c.grammar << ": " << text;
    }
    for (const std::string& text : c.refused) {
      EXPECT_EQ(Read(constraint, text), Reading::kRefused) << c.grammar << ": " << text;
    }
  }
}

TEST(GbnfTest, SaysWhereAndWhy) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  const struct {
    const char* grammar;
    const char* message;
  } cases[] = {
      {"", "there is no rule called root"},
      {"start ::= \"a\"", "there is no rule called root"},
      {"root ::= \"a\" nowhere", "line 1, column 14: the rule 'nowhere' is not defined"},
      {"root ::= \"a\n", "line 1, column 10: the text that begins here has no end"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule 'root' is defined twice"},
      {"root ::= [a", "line 1, column 10: the class that begins here has no end"},
      {"root ::= [b-a]", "line 1, column 11: the range ends before it begins"},
      {"root ::= []", "line 1, column 10: the class has no character"},
      {"root ::= \"a\"{2,1}", "the most is below the least"},
      {"root ::= \"a\"{x}", "line 1, column 14: a count is expected"},
      {"root ::= \"a\"{99999999}", "a count above"},
      {"root ::= (\"a\"", "')' is expected"},
      {"root ::= \"a\" )", "line 1, column 14: the end of the rule is expected"},
      {"root = \"a\"", "line 1, column 6: '::=' is expected"},
      {"root ::= \"\\q\"", "line 1, column 11: an escape that isn't known"},
      {"root ::= \"\\ud800\"", "the number of no character"},
      {"root ::= \"\xFF\"", "not valid UTF-8"},
      {"root ::= root \"a\" | \"b\"", "the rule 'root' begins with itself"},
      {"root ::= x\nx ::= y \"a\"\ny ::= \"c\"? x", "begins with itself"},
      {"root ::= x root \"a\" | \"b\"\nx ::= \"c\"?", "the rule 'root' begins with itself"},
      {"root ::= \"a\" root", "the rule 'root' can produce no finite text"},
      {"root ::= \"a\" | x\nx ::= \"b\" x", "the rule 'x' can produce no finite text"},
      {"root ::= \"a\"{1000}{1000}", "has more than"},
  };
  for (const auto& c : cases) {
    const auto made = Constraint::FromGbnf(c.grammar, vocabulary);
    ASSERT_FALSE(made.ok()) << c.grammar;
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(made.status().message().find(c.message), absl::string_view::npos)
        << c.grammar << ": " << made.status();
  }
}

TEST(GbnfTest, HostileGrammarsAreRefusedSoon) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  const std::string deep = "root ::= " + std::string(100000, '(') + "\"a\"";
  EXPECT_FALSE(Constraint::FromGbnf(deep, vocabulary).ok());
  const std::string repeats = "root ::= \"a\"" + std::string(100000, '*');
  EXPECT_FALSE(Constraint::FromGbnf(repeats, vocabulary).ok());
  EXPECT_FALSE(Constraint::FromGbnf("root ::= \"a\"{0,200000} \"\"{200000}", vocabulary).ok());
  EXPECT_FALSE(Constraint::FromGbnf("root ::= (\"a\"?){5000}", vocabulary).ok());
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 20000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  const auto made = Constraint::FromGbnf(chain + "r20000 ::= \"a\"", vocabulary);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read(*made, "a"), Reading::kComplete);
}

TEST(GbnfTest, MemoryHasALimit) {
  const auto many = constraint::ParseGbnf("root ::= " + std::string(4000000, '.'));
  ASSERT_FALSE(many.ok());
  EXPECT_NE(many.status().message().find("more than 262144 parts"), absl::string_view::npos)
      << many.status();
  std::string every_second;
  for (uint32_t c = 0x4E00; c < 0x9F00; c += 2) AppendUtf8(c, &every_second);
  const auto ranges = constraint::ParseGbnf("root ::= [" + every_second + "]");
  ASSERT_FALSE(ranges.ok());
  EXPECT_NE(ranges.status().message().find("more than 4096 ranges"), absl::string_view::npos)
      << ranges.status();
}

}  // namespace
}  // namespace trine
