#include "runtime/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "runtime/tokenizer/test_vocabulary.h"

namespace trine {
namespace {

using testing::ElementsAre;

std::unique_ptr<const PreTokenizer> Create(std::string_view name, bool allow_jit = true) {
  const PreTokenizerRule* rule = FindPreTokenizerRule(name);
  EXPECT_NE(rule, nullptr) << name;
  if (rule == nullptr) return nullptr;
  auto pre_tokenizer = PreTokenizer::Create(*rule, allow_jit);
  EXPECT_TRUE(pre_tokenizer.ok()) << name << ": " << pre_tokenizer.status();
  return pre_tokenizer.ok() ? *std::move(pre_tokenizer) : nullptr;
}

std::vector<std::string> Words(const PreTokenizer& pre_tokenizer, std::string_view text) {
  std::vector<uint32_t> ends;
  const absl::Status status = pre_tokenizer.Split(text, &ends);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> words;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    EXPECT_LT(begin, end);
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return words;
}

std::vector<std::string> Words(std::string_view name, std::string_view text) {
  const auto pre_tokenizer = Create(name);
  return pre_tokenizer == nullptr ? std::vector<std::string>() : Words(*pre_tokenizer, text);
}

std::vector<std::string> AllNames() { return absl::StrSplit(PreTokenizerNames(), ", "); }

TEST(PreTokenizerTest, CutsAsEachFamilyDoes) {
  EXPECT_THAT(Words("gpt-2", "It's  1234 x!"), ElementsAre("It", "'s", " ", " 1234", " x", "!"));
  EXPECT_THAT(Words("llama-bpe", "It'S  12345 x!\n\n"),
              ElementsAre("It", "'S", " ", " ", "123", "45", " x", "!\n\n"));
  EXPECT_THAT(Words("qwen2", "a 12\n\n b"), ElementsAre("a", " ", "1", "2", "\n\n", " b"));
  EXPECT_THAT(Words("starcoder", "x 12"), ElementsAre("x", " ", "1", "2"));
  EXPECT_THAT(Words("smollm", "x12"), ElementsAre("x", "1", "2"));
  EXPECT_THAT(Words("falcon", "a+b 12345"), ElementsAre("a", "+", "b", " ", "123", "45"));
  EXPECT_THAT(Words("default", "a 1234"), ElementsAre("a", " ", "123", "4"));
  EXPECT_THAT(Words("deepseek-llm", "hi\n\n\u4E2D\u6587 123  "),
              ElementsAre("hi", "\n", "\n", "\u4E2D\u6587", " ", "123", "  "));
  EXPECT_THAT(Words("deepseek-coder", "f(x)1 2"), ElementsAre("f", "(", "x", ")", "1", " ", "2"));
  EXPECT_THAT(Words("deepseek-v3", "x=1234;y"), ElementsAre("x", "=", "123", "4", ";y"));
  EXPECT_THAT(Words("tekken", "HelloWorld\u00C9t\u00E9 12"),
              ElementsAre("Hello", "World", "\u00C9t\u00E9", " ", "1", "2"));
  EXPECT_THAT(Words("gpt-4o", "HelloWorld's 1234"),
              ElementsAre("Hello", "World's", " ", "123", "4"));
  EXPECT_THAT(Words("bloom", "a b, c"), ElementsAre("a", " b", ",", " c"));
  EXPECT_THAT(Words("viking", "a12"), ElementsAre("a", "1", "2"));
  EXPECT_THAT(Words("qwen35", "n\u0303a"), ElementsAre("n\u0303a"));
  EXPECT_THAT(Words("qwen2", "n\u0303a"), ElementsAre("n", "\u0303a"));
}

TEST(PreTokenizerTest, WhiteSpaceIsUnicodes) {
  for (const char* space : {"\u0085", "\u00A0", "\u1680", "\u2003", "\u2028", "\u3000", "\v"}) {
    EXPECT_THAT(Words("gpt-2", std::string("!") + space + "!"), ElementsAre("!", space, "!"));
  }
  for (const char* other : {"\u180E", "\u200B", "\uFEFF"}) {
    EXPECT_THAT(Words("gpt-2", std::string("!") + other + "!").size(), 1u) << other;
  }
}

TEST(PreTokenizerTest, KnowsNoOtherName) {
  EXPECT_EQ(FindPreTokenizerRule("superbpe"), nullptr);
  EXPECT_EQ(FindPreTokenizerRule("gpt-2 "), nullptr);
  EXPECT_EQ(FindPreTokenizerRule(""), FindPreTokenizerRule("default"));
}

TEST(PreTokenizerTest, EveryRuleCoversAnyTextWithAndWithoutMachineCode) {
  std::mt19937 random(1);
  for (const std::string& name : AllNames()) {
    SCOPED_TRACE(name);
    const auto jit = Create(name), interpreter = Create(name, /*allow_jit=*/false);
    ASSERT_NE(jit, nullptr);
    ASSERT_NE(interpreter, nullptr);
    for (int round = 0; round < 30; ++round) {
      const std::string text = RandomUnicode(&random, 1 + random() % 200);
      ASSERT_EQ(Words(*jit, text), Words(*interpreter, text)) << testing::PrintToString(text);
    }
  }
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A rule that reads the rest of a run again from each position would take many seconds per text.
TEST(PreTokenizerTest, LongRunsTakeTimeInProportion) {
  constexpr size_t kBytes = 100'000;
  std::vector<std::string> texts;
  for (const char* unit : {"a", "A", " ", "\n", "7", "!", "\t\r", "\u4E2D"}) {
    std::string run;
    while (run.size() < kBytes) run += unit;
    texts.push_back(run);
    texts.push_back(run + "5");
  }
  std::set<const std::string_view*> done;
  for (const std::string& name : AllNames()) {
    if (!done.insert(FindPreTokenizerRule(name)->patterns.data()).second) continue;
    // Machine code skips some work that the interpreter would repeat.
    for (const bool jit : {true, false}) {
      const auto pre_tokenizer = Create(name, jit);
      ASSERT_NE(pre_tokenizer, nullptr);
      std::vector<uint32_t> ends;
      for (const std::string& text : texts) {
        const double start = CpuSeconds();
        const absl::Status status = pre_tokenizer->Split(text, &ends);
        ASSERT_TRUE(status.ok()) << name << ": " << status;
        ASSERT_EQ(ends.back(), text.size());
        ASSERT_LT(CpuSeconds() - start, 2) << name << " on " << text.substr(0, 6) << "...";
      }
    }
  }
}

}  // namespace
}  // namespace trine
