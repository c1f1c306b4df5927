// Compares the layout of trine/backend.h with the golden file of its version, and with those of all
// earlier versions from 1.0 on, which stay in this folder for ever, as does the major.
//
// After a change that only appends (an enumerator, a struct) run this test with
// TRINE_UPDATE_GOLDEN=1: the new lines go to the end of the file. A struct that grows, and anything
// else that changes a line, needs a new TRINE_ABI_MINOR, and with it a new file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/abi/layout.h"
#include "trine/backend.h"

namespace trine::abi {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = TRINE_GOLDEN_FOLDER;

fs::path GoldenPath(uint32_t minor) {
  return kFolder / ("backend_1_" + std::to_string(minor) + ".golden");
}

bool Updating() {
  const char* update = std::getenv("TRINE_UPDATE_GOLDEN");
  return update != nullptr && std::string(update) == "1";
}

std::string Read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<LayoutEntry> Layout() { return {kLayout, kLayout + kLayoutCount}; }

std::vector<std::string> LayoutLines() {
  std::vector<std::string> lines;
  for (const LayoutEntry& entry : Layout()) lines.push_back(Line(entry));
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void AppendToGolden(const fs::path& path, const std::vector<std::string>& lines) {
  const bool fresh = !fs::exists(path);
  std::ofstream out(path, std::ios::app);
  if (fresh) {
    out << "# trine/backend.h on 64-bit targets. const NAME VALUE, struct NAME SIZE,\n"
           "# member STRUCT.NAME OFFSET SIZE. Lines are appended, never changed: see\n"
           "# layout_golden_test.cc.\n";
  }
  out << Join(lines);
}

class LayoutGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    if (sizeof(void*) != 8) GTEST_SKIP() << "the golden files hold the layout of 64-bit targets";
  }
};

TEST_F(LayoutGoldenTest, EveryByteBelongsToAListedMember) { EXPECT_EQ(FindGap(Layout()), ""); }

TEST_F(LayoutGoldenTest, KeepsWhatEarlierVersionsPromised) {
  for (uint32_t minor = 0; minor <= TRINE_ABI_MINOR; ++minor) {
    ASSERT_TRUE(fs::exists(GoldenPath(minor)) || Updating())
        << GoldenPath(minor).filename() << " is missing: every version keeps its file";
    EXPECT_EQ(Join(BrokenPromises(GoldenLines(Read(GoldenPath(minor))), LayoutLines())), "")
        << "lines of " << GoldenPath(minor).filename() << " that no longer hold";
  }
}

TEST_F(LayoutGoldenTest, EqualsTheGoldenFile) {
  const fs::path path = GoldenPath(TRINE_ABI_MINOR);
  const Difference difference = Compare(GoldenLines(Read(path)), LayoutLines());
  ASSERT_EQ(Join(difference.lost), "")
      << "these lines of " << path.filename()
      << " no longer hold: a plugin that is already built would break. Undo the change, or raise "
         "TRINE_ABI_MINOR if a struct has grown at its end";
  if (Updating()) {
    if (!difference.added.empty()) AppendToGolden(path, difference.added);
    return;
  }
  EXPECT_EQ(Join(difference.added), "") << "these lines are new: if they are meant to be part of "
                                           "the ABI for ever, run with TRINE_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace trine::abi
