#include "runtime/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

using Kind = Utf8Step::Kind;

TEST(Utf8Test, ReadsBackEveryCodePoint) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    std::string text;
    AppendUtf8(code_point, &text);
    const Utf8Step step = NextUtf8(text);
    ASSERT_EQ(step.kind, Kind::kCharacter) << code_point;
    ASSERT_EQ(step.bytes, text.size());
    ASSERT_EQ(step.code_point, code_point);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Step part = NextUtf8(std::string_view(text).substr(0, cut));
      ASSERT_EQ(part.kind, Kind::kIncomplete) << code_point;
      ASSERT_EQ(part.bytes, cut);
    }
  }
}

TEST(Utf8Test, RefusesWhatUnicodeRefuses) {
  struct {
    std::string_view text;
    size_t bytes;  // replaced by one U+FFFD
  } const cases[] = {
      {"\x80", 1},              // a continuation alone
      {"\xC0\x80", 1},          // overlong NUL
      {"\xC1\xBF", 1},          // overlong
      {"\xE0\x9F\xBF", 1},      // overlong
      {"\xF0\x8F\xBF\xBF", 1},  // overlong
      {"\xED\xA0\x80", 1},      // surrogate
      {"\xF4\x90\x80\x80", 1},  // above U+10FFFF
      {"\xF5\x80\x80\x80", 1},
      {"\xFF", 1},
      {"\xE2\x82 ", 2},  // a beginning, then something else
      {"\xF0\x9F\x98 ", 3},
      {"\xC3(", 1},
  };
  for (const auto& [text, bytes] : cases) {
    const Utf8Step step = NextUtf8(text);
    EXPECT_EQ(step.kind, Kind::kInvalid) << testing::PrintToString(text);
    EXPECT_EQ(step.bytes, bytes) << testing::PrintToString(text);
  }
}

TEST(Utf8Test, FindsTheFirstInvalidByte) {
  EXPECT_EQ(FindInvalidUtf8(""), 0u);
  EXPECT_EQ(FindInvalidUtf8("a\xC3\xA4"), 3u);
  EXPECT_EQ(FindInvalidUtf8("a\xC3\xA4\xFFz"), 3u);
  EXPECT_EQ(FindInvalidUtf8("ab\xE2\x82"), 2u);
  EXPECT_TRUE(ValidateUtf8("gut", "the prompt").ok());
  EXPECT_EQ(ValidateUtf8("no\xFE", "the prompt").message(),
            "the prompt is not valid UTF-8: the byte 0xfe at offset 2 belongs to no character");
}

TEST(Utf8Test, ReplacesInvalidBytesAndLeavesTheBeginningOfACharacter) {
  std::string out;
  EXPECT_EQ(AppendValidUtf8("a\xFF\xE2\x82z\xF0\x9F", &out), 5u);
  EXPECT_EQ(out, "a\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(ByteAlphabetTest, IsTheOneOfGpt2) {
  std::string text;
  AppendAlphabet("a b\n\x7F\xAD\xC3", &text);
  EXPECT_EQ(text, "a\u0120b\u010A\u0121\u0143\u00C3");
}

TEST(ByteAlphabetTest, ReadsBackEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  std::string text, back;
  AppendAlphabet(all, &text);
  EXPECT_EQ(FindInvalidUtf8(text), text.size());
  EXPECT_TRUE(AppendAlphabetBytes(text, &back));
  EXPECT_EQ(back, all);
}

TEST(ByteAlphabetTest, RefusesOtherCharacters) {
  for (const std::string_view text : {" ", "\u2581", "\u0144", "\u00AD", "\xFF", "a\xC4"}) {
    std::string bytes;
    EXPECT_FALSE(AppendAlphabetBytes(text, &bytes)) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace trine
