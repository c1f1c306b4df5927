#include "tools/cli/terminal/line_buffer.h"

#include "gtest/gtest.h"

namespace trine {
namespace {

TEST(LineBuffer, EditsWholeCharacters) {
  LineBuffer line;
  line.Insert("aé😀z");
  line.Left();
  line.Backspace();
  EXPECT_EQ(line.text(), "aéz");
  line.Left();
  line.Delete();
  EXPECT_EQ(line.text(), "az");
  line.Insert("ü");
  EXPECT_EQ(line.text(), "aüz");
  line.Home();
  line.Backspace();
  line.Right();
  line.Right();
  line.DeleteToEnd();
  EXPECT_EQ(line.text(), "aü");
  line.Delete();
  line.DeleteToHome();
  EXPECT_EQ(line.text(), "");
}

TEST(LineBuffer, EditsWords) {
  LineBuffer line;
  line.Insert("one two  three");
  line.DeleteWord();
  EXPECT_EQ(line.text(), "one two  ");
  line.WordLeft();
  EXPECT_EQ(line.cursor(), 4u);
  line.WordLeft();
  line.WordRight();
  EXPECT_EQ(line.cursor(), 3u);
}

TEST(LineBuffer, GoesBackAndForthInTheHistory) {
  LineBuffer line;
  for (const char* text : {"first", "second", "second", ""}) {
    line.Insert(text);
    EXPECT_EQ(line.Take(), text);
  }
  line.Insert("typed");
  line.Older();
  EXPECT_EQ(line.text(), "second");
  line.Older();
  line.Older();
  EXPECT_EQ(line.text(), "first");
  line.Newer();
  line.Newer();
  EXPECT_EQ(line.text(), "typed");
  line.Newer();
  EXPECT_EQ(line.text(), "typed");
}

TEST(LineBuffer, KnowsHowWideTextIs) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("grüß"), 4);
  EXPECT_EQ(DisplayWidth("你好"), 4);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
}

}  // namespace
}  // namespace trine
