#include "runtime/gguf/quoted.h"

#include <gtest/gtest.h>

namespace trine::gguf {
namespace {

TEST(QuotedTest, LetsTextThroughAndEscapesTheRest) {
  EXPECT_EQ(Quoted("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Printable("caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x99\x82"),
            "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x99\x82");
  EXPECT_EQ(Printable("a\nb\tc\rd"), "a\\nb\\tc\\x0dd");
  EXPECT_EQ(Printable(std::string_view("\0\x1b[2J\x7f", 6)), "\\x00\\x1b[2J\\x7f");
}

TEST(QuotedTest, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(Printable("\xff"), "\\xff");
  EXPECT_EQ(Printable("\x80x"), "\\x80x");
  EXPECT_EQ(Printable("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(Printable("\xe6\x97"), "\\xe6\\x97");                    // cut short
  EXPECT_EQ(Printable("\xc3("), "\\xc3(");                           // not continued
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past the last code point
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");                    // a control of terminals
  EXPECT_EQ(Printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");           // reverses the line
}

TEST(QuotedTest, CutsBetweenCharacters) {
  EXPECT_EQ(Cut("abc", 3), "abc");
  EXPECT_EQ(Cut("abcd", 3), "abc");
  EXPECT_EQ(Cut("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(Cut("a\xf0\x9f\x99\x82", 4), "a");
  EXPECT_EQ(Cut("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80");
  EXPECT_EQ(Cut("\xa9\xa9", 1), "");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace trine::gguf
