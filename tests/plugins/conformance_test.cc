// Every broken plugin is caught, for the right reason; the sound ones pass; nothing takes the test
// down.
#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <regex>
#include <string>

#include "plugins/conformance/check.h"

namespace trine::conformance {
namespace {

std::string FixturePath(const std::string& name) {
  return std::string(TRINE_FIXTURE_DIR) + "/libtrine-backend-" + name + ".so";
}

Report Check(const std::string& fixture, const std::string& filter = "") {
  KitOptions options;
  options.create_destroy_cycles = 200;
  options.filter = filter;
  CheckLimits limits;
#ifdef TRINE_SANITIZED
  limits.idle = std::chrono::seconds(10);
#else
  limits.idle = std::chrono::seconds(2);
#endif
  limits.crashes = 2;
  limits.hangs = 1;
  absl::StatusOr<Report> report = CheckPlugin(TRINE_HELPER, FixturePath(fixture), options, limits);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : Report{};
}

// A fixture, and the finding that must be among its failures.
struct Fault {
  const char* fixture;
  const char* check;  // regular expressions
  const char* detail;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.fixture; }

// A sanitizer turns a crash into a report and an exit.
#define TRINE_CRASH "(crashed with|exited with code)"

constexpr Fault kFaults[] = {
    {"crash-on-load", "load/library", TRINE_CRASH ".*while it was being loaded"},
    {"hang-on-load", "load/library", "hangs: no answer.*while it was being loaded"},
    {"missing-library", "load/library", "libtrine-fixture-nowhere"},
    {"not-a-plugin", "load/library", "trine_plugin_query"},
    {"abort-on-query", "load/query", "crashed with SIGABRT"},
    {"short-table", "load/table", "the ABI requires"},
    {"huge-struct-size", "load/table", "must be sizeof"},
    {"null-function", "load/table", "timeline_wait"},
    {"wrong-major", "load/other-major", "returned a table to a host of ABI"},
    {"wrong-major", "load/table", "built for ABI 7"},
    {"bad-name", "load/table", "name"},
    {"hang-on-open", "life-cycle/open", "hangs: no answer"},
    {"throws-in-open", "life-cycle/open", "threw an exception across the ABI from open"},
    {"accepts-unknown-option", "life-cycle/unknown-option", "accepted, must be refused"},
    {"writes-past-struct", "life-cycle/older-and-newer-structs", "wrote byte .* struct_size is"},
    {"no-bounds-check", "memory/bounds", "accepted, must be refused|" TRINE_CRASH},
    {"timeline-goes-back", "timelines/never-backwards", "backwards"},
    {"timeline-never-fails", "timelines/failure-stays", "beyond a failure with DATA_LOSS"},
    {"ignores-waits", "submissions/waits", "did not wait"},
    {"ignores-stride", "abi/longer-elements", ""},
    {"keeps-graph-pointer", "abi/.*", "the graph has changed|" TRINE_CRASH},
    {"ignores-alternates", "abi/alternates", "buffers of alternate"},
    {"writes-gaps", "abi/views-with-gaps", "outside of every output|expected 0x"},
    {"refuses-without-reason", "refusals/every-op", "without a reason"},
    {"claims-then-refuses", "refusals/every-op", "softcap.*but plan_create refuses it"},
    {"wrong-answer", "op/matmul/f32",
     "matmul f32\\[96,17\\].* at \\[11,0,0,0\\] expected 0x[0-9a-f]{8} .*got 0x[0-9a-f]{8}"},
    {"wrong-answer-threads", "op/worker-counts", "depends on the number of workers"},
    {"wrong-layout", "layouts/f32", "differs from"},
    {"exits", "submissions/signals", "exited with code 0"},
    {"hang-in-run", "submissions/signals", "hangs: no answer"},
    {"throws-in-run", "submissions/signals", "threw an exception across the ABI from plan_run"},
    {"throws-in-worker", "submissions/signals", "from a worker function"},
    {"leaks-buffers", "cycles/buffers", "leaks about [0-9]+ bytes"},
    {"leaks-fds", "cycles/backends", "leaks file descriptors"},
    {"leaks-threads", "cycles/devices", "leaks threads"},
};

class ConformanceTest : public testing::TestWithParam<Fault> {};

TEST_P(ConformanceTest, CatchesFault) {
  const Fault& fault = GetParam();
  // Its section alone: what is wrong must show there.
  const std::string check = fault.check;
  const Report report = Check(fault.fixture, check.substr(0, check.find('/') + 1));
  EXPECT_FALSE(report.Ok());
  bool caught = false;
  for (const Finding& f : report.findings) {
    caught |= f.outcome == Outcome::kFail && std::regex_match(f.check, std::regex(fault.check)) &&
              std::regex_search(f.detail, std::regex(fault.detail));
  }
  EXPECT_TRUE(caught) << "no failure of " << fault.check << " says " << fault.detail << "\n"
                      << FormatReport(report, false);
}

INSTANTIATE_TEST_SUITE_P(Broken, ConformanceTest, testing::ValuesIn(kFaults), [](const auto& info) {
  std::string name = std::string(info.param.fixture) + "_" + info.param.check;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

TEST(ConformanceKitTest, PassesSoundPlugin) {
  const Report report = Check("sound");
  EXPECT_TRUE(report.Ok()) << FormatReport(report, true);
  EXPECT_EQ(report.name, "sound");
  EXPECT_EQ(report.abi, "0.9");
  EXPECT_GT(report.passed, 40);
}

TEST(ConformanceKitTest, PassesPluginBuiltAgainstFrozenHeader) {
  const Report report = Check("frozen-0-9");
  EXPECT_TRUE(report.Ok()) << FormatReport(report, true);
}

TEST(ConformanceKitTest, GoesOnBehindACrash) {
  const Report report = Check("exits");
  int crashes = 0;
  for (const Finding& f : report.findings) {
    crashes += f.detail.find("exited with code 0") != std::string::npos;
  }
  EXPECT_EQ(crashes, 2);
  EXPECT_EQ(report.findings.back().check, "kit/complete");
}

TEST(ConformanceKitTest, RunsOnlyWhatTheFilterNames) {
  const Report report = Check("sound", "memory/");
  EXPECT_TRUE(report.Ok()) << FormatReport(report, true);
  for (const Finding& f : report.findings) {
    EXPECT_TRUE(f.check == "load/library" || f.check.rfind("memory/", 0) == 0) << f.check;
  }
}

TEST(ConformanceKitTest, SaysWhenTheHelperIsMissing) {
  const auto report = CheckPlugin("/nonexistent/helper", FixturePath("sound"), {});
  EXPECT_FALSE(report.ok());
}

TEST(ConformanceKitTest, SaysWhenThePluginIsMissing) {
  const Report report = Check("no-such-fixture");
  ASSERT_EQ(report.failed, 1);
  EXPECT_EQ(report.findings[0].check, "load/library");
}

TEST(ConformanceKitTest, ReportsAreReadable) {
  Report report;
  report.plugin_path = "x.so";
  report.findings = {{"load/library", Outcome::kPass, "", 0.1},
                     {"op/add", Outcome::kFail, "expected 1, got 2", 0.2}};
  report.passed = report.failed = 1;
  EXPECT_NE(FormatReport(report, false).find("FAILED op/add\n    expected 1, got 2"),
            std::string::npos);
  EXPECT_NE(FormatReportJson(report).find("\"ok\": false"), std::string::npos);
}

}  // namespace
}  // namespace trine::conformance
