// Runs the tests of one source of a program that has the tests of several:
//
//   PROGRAM --source=room/thing_test.cc [options of GoogleTest]
//
// Without --source, runs all tests. Fails if the source has no test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// Returns the names of the tests that are written in `source`, as a filter for GoogleTest.
std::string TestsIn(std::string_view source) {
  const std::string ending = "/" + std::string(source);
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with(ending)) continue;
      filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view kSource = "--source=";
  for (int i = 1; i < argc; ++i) {
    if (!std::string_view(argv[i]).starts_with(kSource)) continue;
    const std::string filter = TestsIn(std::string_view(argv[i]).substr(kSource.size()));
    if (filter.empty()) {
      std::fprintf(stderr, "no test is in %s\n", argv[i] + kSource.size());
      return 1;
    }
    if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
