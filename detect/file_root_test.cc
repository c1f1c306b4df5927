#include "detect/file_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "detect/testing/fake_root.h"

namespace trine::detect {
namespace {

using ::testing::ElementsAre;
using testing::FakeRoot;
using ::testing::IsEmpty;

TEST(FileRoot, EmptyAndSlashAreTheRunningMachine) {
  EXPECT_TRUE(FileRoot("").is_host());
  EXPECT_TRUE(FileRoot("/").is_host());
  EXPECT_FALSE(FileRoot("/tmp").is_host());
}

TEST(FileRoot, ReadsAndParses) {
  FakeRoot fake;
  fake.File("/a/number", "42\n").File("/a/hex", "0x1f\n").File("/a/text", "forty-two");
  const FileRoot root(fake.path() + "/");
  EXPECT_EQ(root.Read("/a/number"), "42\n");
  EXPECT_EQ(root.ReadU64("/a/number"), 42u);
  EXPECT_EQ(root.ReadHex("/a/hex"), 31u);
  EXPECT_EQ(root.ReadU64("/a/text"), std::nullopt);
  EXPECT_EQ(root.Read("/a/none"), std::nullopt);
  EXPECT_EQ(root.Read("/a"), std::nullopt) << "a folder is no file";
}

TEST(FileRoot, RefusesWhatIsTooLarge) {
  FakeRoot fake;
  fake.File("/exact", std::string(100, 'x')).File("/large", std::string(101, 'x'));
  const FileRoot root(fake.path());
  EXPECT_TRUE(root.Read("/exact", 100).has_value());
  EXPECT_FALSE(root.Read("/large", 100).has_value());
}

TEST(FileRoot, DoesNotBlockOnAPipe) {
  FakeRoot fake;
  ASSERT_EQ(mkfifo((fake.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(FileRoot(fake.path()).Read("/pipe"), std::nullopt);
}

TEST(FileRoot, LinksStayInside) {
  FakeRoot fake;
  fake.File("/etc/hostname", "inside")
      .Link("/absolute", "/etc/hostname")
      .Link("/climbing", "../../../../../../../../etc/hostname")
      .Link("/dir/up", "../etc")
      .Link("/outside", "/proc/self/status");
  const FileRoot root(fake.path());
  EXPECT_EQ(root.Read("/absolute"), "inside");
  EXPECT_EQ(root.Read("/climbing"), "inside");
  EXPECT_EQ(root.Read("/dir/up/hostname"), "inside");
  EXPECT_EQ(root.Resolve("/dir/up/hostname"), "/etc/hostname");
  EXPECT_EQ(root.Read("/outside"), std::nullopt);
}

TEST(FileRoot, LoopsEnd) {
  FakeRoot fake;
  fake.Link("/a", "b").Link("/b", "a").Link("/self", "self/self");
  const FileRoot root(fake.path());
  EXPECT_EQ(root.Resolve("/a"), std::nullopt);
  EXPECT_EQ(root.Read("/self/x"), std::nullopt);
  EXPECT_THAT(root.List("/b"), IsEmpty());
}

TEST(FileRoot, LinkNameNeedsNoTarget) {
  FakeRoot fake;
  fake.Link("/dev/driver", "../../bus/drivers/amdgpu").File("/dev/file", "x");
  const FileRoot root(fake.path());
  EXPECT_EQ(root.LinkName("/dev/driver"), "amdgpu");
  EXPECT_EQ(root.LinkName("/dev/file"), std::nullopt);
  EXPECT_EQ(root.LinkName("/none/driver"), std::nullopt);
}

TEST(FileRoot, ListsSorted) {
  FakeRoot fake;
  fake.File("/d/b", "").File("/d/a", "").Folder("/d/c");
  EXPECT_THAT(FileRoot(fake.path()).List("/d"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(FileRoot(fake.path()).List("/none"), IsEmpty());
  EXPECT_THAT(FileRoot(fake.path()).List("/d/a"), IsEmpty());
}

}  // namespace
}  // namespace trine::detect
