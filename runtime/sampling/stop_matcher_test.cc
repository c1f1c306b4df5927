#include "runtime/sampling/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/quant/test_util.h"

namespace trine {
namespace {

StopMatcher Make(std::vector<std::string> stops) {
  absl::StatusOr<StopMatcher> matcher = StopMatcher::Create(std::move(stops));
  EXPECT_TRUE(matcher.ok()) << matcher.status();
  return *std::move(matcher);
}

// The rule: the first end wins, of equal ends the longest stop string, of equal ones the first.
struct Outcome {
  std::string shown;
  int32_t stop = -1;
  bool operator==(const Outcome&) const = default;
};

Outcome Expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    int32_t best = -1;
    for (size_t s = 0; s < stops.size(); ++s) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[s])) continue;
      const bool longer = best < 0 || stops[s].size() > stops[static_cast<size_t>(best)].size();
      if (longer) best = static_cast<int32_t>(s);
    }
    if (best >= 0) return {text.substr(0, end - stops[static_cast<size_t>(best)].size()), best};
  }
  return {text, -1};
}

// Returns the length of the longest end of the text that begins a stop string.
size_t ExpectedHeld(const std::vector<std::string>& stops, const std::string& text) {
  size_t held = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
      if (text.ends_with(stop.substr(0, n))) held = std::max(held, n);
    }
  }
  return held;
}

TEST(StopMatcherTest, EqualsItsRuleHoweverTheTextIsCut) {
  quant::Random random(81);
  for (int round = 0; round < 20000; ++round) {
    const auto letters = 1 + random.Below(3);
    const auto word = [&](int64_t length) {
      std::string text;
      while (length-- > 0) text.push_back(static_cast<char>('a' + random.Below(letters)));
      return text;
    };
    std::vector<std::string> stops;
    for (int64_t i = random.Below(4); i >= 0; --i) stops.push_back(word(1 + random.Below(6)));
    const std::string text = word(random.Below(20));
    StopMatcher matcher = Make(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const auto n = static_cast<size_t>(random.Below(5));
      shown += matcher.Push(std::string_view(text).substr(at, n));
      at = std::min(at + n, text.size());
      if (matcher.stopped()) break;
      // No more text is held back than necessary.
      const std::string so_far = text.substr(0, at);
      ASSERT_EQ(matcher.held_bytes(), ExpectedHeld(stops, so_far)) << so_far;
      ASSERT_EQ(shown.size() + matcher.held_bytes(), at);
    }
    shown += matcher.Flush();
    ASSERT_EQ((Outcome{shown, matcher.stop_index()}), Expected(stops, text)) << text;
  }
}

TEST(StopMatcherTest, HoldsBackABeginningUntilItIsNone) {
  StopMatcher matcher = Make({"<|end|>", "User:"});
  EXPECT_EQ(matcher.Push("Hello <|e"), "Hello ");
  EXPECT_EQ(matcher.Push("n"), "");
  EXPECT_EQ(matcher.Push("ergy Us"), "<|energy ");
  EXPECT_EQ(matcher.Push("er"), "");
  EXPECT_EQ(matcher.Push(": hi"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.stop_index(), 1);
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcherTest, TheFirstCompleteStringWins) {
  StopMatcher matcher = Make({"abcd", "bc"});
  EXPECT_EQ(matcher.Push("xabcd"), "xa");
  EXPECT_EQ(matcher.stop_index(), 1);
  matcher = Make({"b", "ab", "ab"});
  EXPECT_EQ(matcher.Push("xab"), "x");
  EXPECT_EQ(matcher.stop_index(), 1);
}

TEST(StopMatcherTest, BytesMayBeAnything) {
  StopMatcher matcher = Make({std::string("\0\xff", 2), "\xe2\x82\xac"});
  EXPECT_EQ(matcher.Push("1\xe2"), "1");
  EXPECT_EQ(matcher.Push("\x82"), "");
  EXPECT_EQ(matcher.Push("\xac"), "");
  EXPECT_EQ(matcher.stop_index(), 1);
  matcher.Reset();
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.Push(std::string_view("\0", 1)), "");
  EXPECT_EQ(matcher.Push("\xff"), "");
  EXPECT_EQ(matcher.stop_index(), 0);
}

TEST(StopMatcherTest, WithoutStopStringsTextPasses) {
  StopMatcher matcher;
  EXPECT_EQ(matcher.Push("abc"), "abc");
  EXPECT_EQ(matcher.Push(""), "");
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcherTest, CopiesGoTheirOwnWay) {
  StopMatcher matcher = Make({"stop"});
  EXPECT_EQ(matcher.Push("a st"), "a ");
  StopMatcher fork = matcher;
  EXPECT_EQ(matcher.Push("op"), "");
  EXPECT_EQ(fork.Push("ep"), "step");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_FALSE(fork.stopped());
}

TEST(StopMatcherTest, AnEmptyStopStringIsRefused) {
  const absl::Status status = StopMatcher::Create({"a", ""}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("stop string 2 of 2 is empty"));
}

}  // namespace
}  // namespace trine
