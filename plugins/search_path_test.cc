#include "plugins/search_path.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SearchPathTest : public ::testing::Test {
 protected:
  SearchPathTest()
      : root_(fs::path(::testing::TempDir()) / ("search." + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    unsetenv("TRINE_PLUGIN_PATH");
    unsetenv("TRINE_PROBE");
    fs::current_path(root_);
  }
  ~SearchPathTest() override {
    fs::current_path("/");
    fs::remove_all(root_);
    unsetenv("TRINE_PLUGIN_PATH");
    unsetenv("TRINE_PROBE");
  }
  std::string File(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
    return (root_ / path).string();
  }
  std::vector<std::string> Paths(const SearchOptions& options) {
    std::vector<std::string> paths;
    for (const Candidate& c : FindPlugins(options).candidates) paths.push_back(c.path);
    return paths;
  }
  fs::path root_;
};

TEST_F(SearchPathTest, AFileThatIsNamedCountsAsNamedWhereverElseItIsFound) {
  const std::string a = File("named/libtrine-backend-a.so");
  const std::string b = File("named/libtrine-backend-b.so");
  SearchOptions options;
  options.use_default_folders = false;
  options.explicit_paths = {(root_ / "named").string(), b};
  EXPECT_THAT(Paths(options), ElementsAre(a, b));
  const SearchResult result = FindPlugins(options);
  EXPECT_FALSE(result.candidates[0].named);
  EXPECT_TRUE(result.candidates[1].named);
}

TEST_F(SearchPathTest, NamedComesBeforeEnvironment) {
  const std::string a = File("env/libtrine-backend-a.so");
  const std::string b = File("named/libtrine-backend-b.so");
  const std::string c = File("somewhere/odd-name.so");
  setenv("TRINE_PLUGIN_PATH", (root_ / "env").c_str(), 1);
  SearchOptions options;
  options.use_default_folders = false;
  options.explicit_paths = {c, (root_ / "named").string()};
  EXPECT_THAT(Paths(options), ElementsAre(c, b, a));
  const SearchResult result = FindPlugins(options);
  EXPECT_EQ(result.candidates[0].found_by, "named by the user");
  EXPECT_EQ(result.candidates[2].found_by, "TRINE_PLUGIN_PATH");
}

TEST_F(SearchPathTest, OnlyPluginNamesInFolders) {
  File("p/libtrine-backend-a.so");
  File("p/libtrine-backend-a.so.bak");
  File("p/libother.so");
  File("p/readme.txt");
  SearchOptions options;
  options.use_default_folders = false;
  options.explicit_paths = {(root_ / "p").string()};
  EXPECT_EQ(Paths(options).size(), 1u);
}

TEST_F(SearchPathTest, EachFileOnce) {
  const std::string a = File("p/libtrine-backend-a.so");
  fs::create_symlink(a, root_ / "p/libtrine-backend-link.so");
  SearchOptions options;
  options.use_default_folders = false;
  options.explicit_paths = {a, (root_ / "p").string(), a};
  EXPECT_THAT(Paths(options), ElementsAre(a));
}

TEST_F(SearchPathTest, NeverTheCurrentFolder) {
  File("libtrine-backend-evil.so");  // the current folder is root_
  for (const char* value : {"", ".", ":", "::.:", "./", "relative"}) {
    setenv("TRINE_PLUGIN_PATH", value, 1);
    for (const std::string& path : Paths({})) {
      EXPECT_EQ(path.find("evil"), std::string::npos) << "TRINE_PLUGIN_PATH='" << value << "'";
    }
  }
}

TEST_F(SearchPathTest, FolderThatCannotBeReadSaysSo) {
  const fs::path closed = root_ / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::none);
  SearchOptions options;
  options.use_default_folders = false;
  options.explicit_paths = {closed.string()};
  const bool root = geteuid() == 0;  // root can read everything: act as another user
  ASSERT_EQ(root ? seteuid(65534) : 0, 0);
  const SearchResult result = FindPlugins(options);
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  ASSERT_EQ(result.folders.size(), 1u);
  EXPECT_TRUE(result.folders[0].exists);
  EXPECT_NE(result.folders[0].error, "");
}

TEST_F(SearchPathTest, AbsentNamedFileIsStillACandidate) {
  SearchOptions options;
  options.use_default_folders = false;
  options.explicit_paths = {"/nowhere/libtrine-backend-x.so"};
  ASSERT_EQ(Paths(options).size(), 1u);
  EXPECT_TRUE(FindPlugins(options).candidates[0].named);
}

TEST_F(SearchPathTest, LooksBesideTheProgramAndInTheInstalledFolder) {
  const SearchResult result = FindPlugins({});
  ASSERT_GE(result.folders.size(), 2u);
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(result.folders[0].path, program.string());
  EXPECT_TRUE(result.folders[0].exists);
  EXPECT_EQ(result.folders.back().found_by, "installed");
}

TEST_F(SearchPathTest, ProbeProgramCanBeNamed) {
  std::vector<std::string> looked_at;
  setenv("TRINE_PROBE", "/nowhere/trine-probe", 1);
  EXPECT_EQ(FindProbeProgram(&looked_at), "");
  EXPECT_THAT(looked_at, ElementsAre("/nowhere/trine-probe"));
  setenv("TRINE_PROBE", "/bin/sh", 1);
  EXPECT_EQ(FindProbeProgram(&looked_at), "/bin/sh");
}

}  // namespace
}  // namespace trine
