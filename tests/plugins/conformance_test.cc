// Tests the conformance kit: every broken plugin is found, for the right reason; sound ones pass;
// nothing ends the test's process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <regex>
#include <sstream>
#include <string>

#include "plugins/conformance/check.h"

namespace trine::conformance {
namespace {

std::string FixturePath(const std::string& name) {
  return std::string(TRINE_FIXTURE_DIR) + "/libtrine-backend-" + name + ".so";
}

KitOptions Filtered(const std::string& filter) {
  KitOptions options;
  options.create_destroy_cycles = 200;
  options.filter = filter;
  return options;
}

absl::StatusOr<Report> TryCheck(const std::string& fixture, const KitOptions& options) {
  CheckLimits limits;
  // A busy machine must not make a sound plugin look as if it hangs.
  const bool hangs = fixture.rfind("hang", 0) == 0;
#ifdef TRINE_SANITIZED
  limits.idle = std::chrono::seconds(hangs ? 10 : 60);
#else
  limits.idle = std::chrono::seconds(hangs ? 2 : 20);
#endif
  limits.crashes = 2;
  limits.hangs = 1;
  return CheckPlugin(TRINE_HELPER, FixturePath(fixture), options, limits);
}

Report Check(const std::string& fixture, const KitOptions& options) {
  absl::StatusOr<Report> report = TryCheck(fixture, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : Report{};
}

Report Check(const std::string& fixture, const std::string& filter = "") {
  return Check(fixture, Filtered(filter));
}

// Returns the finding of a check, or an empty one.
Finding Find(const Report& report, const std::string& check) {
  for (const Finding& f : report.findings) {
    if (f.check == check) return f;
  }
  return {};
}

// A fixture, and the failure that the kit must find.
struct Fault {
  const char* fixture;
  const char* check;  // regular expressions
  const char* detail;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.fixture; }

// A sanitizer turns a crash into a report and an exit, and may change the code of an exit.
#define TRINE_CRASH "(crashed with|exited with code)"
#define TRINE_EXIT "exited with code [0-9]+: a plugin must not end its host's process"

constexpr Fault kFaults[] = {
    {"crash-on-load", "load/library", TRINE_CRASH ".*while it was being loaded"},
    {"hang-on-load", "load/library", "hangs: no answer.*while it was being loaded"},
    {"missing-library", "load/library", "missing library: it needs libtrine-fixture-nowhere"},
    {"not-a-plugin", "load/library", "trine_plugin_query"},
    {"abort-on-query", "load/query", TRINE_CRASH},
    {"short-table", "load/table", "the ABI requires"},
    {"huge-struct-size", "load/table", "must be sizeof"},
    {"null-function", "load/table", "timeline_wait"},
    {"wrong-major", "load/other-major", "returned a table to a host of ABI"},
    {"wrong-major", "load/table", "built for ABI 7"},
    {"before-one", "load/other-major", "returned a table to a host of ABI 0.0"},
    {"before-one", "load/table", "built for ABI 0\\.12, this program speaks 1\\.0: install"},
    {"bad-name", "load/table", "name"},
    {"hang-on-open", "life-cycle/open", "hangs: no answer"},
    {"throws-in-open", "life-cycle/open", "threw an exception across the ABI from open"},
    {"accepts-unknown-option", "life-cycle/unknown-option", "accepted, must be refused"},
    {"writes-past-struct", "life-cycle/older-and-newer-structs", "wrote byte .* struct_size is"},
    {"imports-untried", "life-cycle/devices", "but not that it was TRIED"},
    {"imports-unknown-kind", "life-cycle/devices", "imports 519 has bits that mean nothing"},
    {"misses-imports", "memory/import", "other bytes after copy_run from the imported memory"},
    {"misses-imports", "memory/import-file", "other bytes after copy_run from the mapped file"},
    {"no-bounds-check", "memory/bounds", "accepted, must be refused|" TRINE_CRASH},
    {"timeline-goes-back", "timelines/never-backwards", "backwards"},
    {"timeline-never-fails", "timelines/failure-stays", "beyond a failure with DATA_LOSS"},
    {"fails-without-failure", "timelines/no-failure", "with DEADLINE_EXCEEDED: accepted"},
    {"ignores-waits", "submissions/waits", "did not wait"},
    {"runs-before-waits", "submissions/waits", "plan_run .*read its inputs before its wait"},
    {"runs-before-waits", "submissions/copy-waits", "copy_run .*read its inputs before its wait"},
    {"passes-on-failed-waits", "submissions/failed-wait", "refused with ABORTED, not DATA_LOSS"},
    {"spoils-graph", "graphs/unknown-beside", "an op that is claimed, beside an op of an unknown"},
    {"no-device", "kit/coverage", "nothing to check: the plugin has no device"},
    {"claims-nothing", "kit/coverage", "nothing to check: the device claims no op.*not today"},
    {"ignores-stride", "abi/longer-elements", ""},
    {"keeps-graph-pointer", "abi/.*", "the graph has changed|" TRINE_CRASH},
    {"ignores-alternates", "abi/alternates", "buffers of alternate"},
    {"writes-gaps", "abi/views-with-gaps", "outside of every output|expected 0x"},
    {"refuses-without-reason", "refusals/every-op", "without a reason"},
    {"claims-then-refuses", "refusals/every-op", "softcap.*but plan_create refuses it"},
    {"wrong-answer", "op/matmul/f32",
     "matmul f32\\[96,17\\].* at \\[11,0,0,0\\] expected 0x[0-9a-f]{8} .*got 0x[0-9a-f]{8}"},
    {"no-barrier", "op/order", "matmul.*expected 0x"},
    {"wrong-answer-threads", "op/worker-counts", "depends on the number of workers"},
    {"wrong-layout", "layouts/f32", "differs from"},
    {"public-layout", "layouts/f32", "no public layout exists yet"},
    {"groups-across-experts", "layouts/f32", "\\[512,5,3\\].*do not fit in packed_bytes"},
    {"cannot-unpack", "layouts/cache/f32", "UNPACK of a cache is refused"},
    {"exits", "submissions/signals", TRINE_EXIT},
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
  // Run only its section: the fault must show there.
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
  EXPECT_EQ(report.abi, "1.0");
  EXPECT_GT(report.passed, 40);
}

TEST(ConformanceKitTest, PassesPluginBuiltAgainstFrozenHeader) {
  const Report report = Check("frozen-1-0");
  EXPECT_TRUE(report.Ok()) << FormatReport(report, true);
  for (const char* check : {"memory/import", "memory/import-file", "memory/host-pointer"}) {
    EXPECT_EQ(Find(report, check).outcome, Outcome::kPass) << check;
  }
}

TEST(ConformanceKitTest, GoesOnBehindACrash) {
  const Report report = Check("exits", "submissions/");
  int crashes = 0;
  for (const Finding& f : report.findings) {
    // Don't compare the exit code: ThreadSanitizer sleeps inside _exit. Meanwhile a thread of the
    // kit ends that is never joined, and ThreadSanitizer turns the 0 into its own 66 to report it.
    crashes += std::regex_search(f.detail, std::regex(TRINE_EXIT)) ? 1 : 0;
  }
  EXPECT_EQ(crashes, 2) << FormatReport(report, true);
  EXPECT_EQ(report.findings.back().check, "kit/complete");
}

// Checks of several plans say that they go on. On a busy machine they take longer than a plugin may
// be silent.
TEST(ConformanceKitTest, ChecksOfSeveralPlansGiveSignsOfLife) {
  const std::string report = testing::TempDir() + "signs_of_life";
  for (const char* check : {"op/order", "op/worker-counts"}) {
    const std::string command = std::string("'") + TRINE_HELPER + "' check '" +
                                FixturePath("sound") + "' --filter " + check +
                                " --workers 5 --cycles 1 3>'" + report + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::stringstream lines;
    lines << std::ifstream(report).rdbuf();
    EXPECT_NE(lines.str().find("\"alive\""), std::string::npos) << check << "\n" << lines.str();
  }
  std::remove(report.c_str());
}

TEST(ConformanceKitTest, CatchesALittleLeak) {
  KitOptions options = Filtered("cycles/timelines");
  options.create_destroy_cycles = 1000;
  const Report report = Check("leaks-little", options);
  const Finding finding = Find(report, "cycles/timelines");
  EXPECT_EQ(finding.outcome, Outcome::kFail) << FormatReport(report, true);
  // Allocators round sizes differently.
  EXPECT_TRUE(std::regex_search(finding.detail, std::regex("leaks about [2-4][0-9] bytes of heap")))
      << finding.detail;
  EXPECT_TRUE(Check("sound", options).Ok());
}

// The cache grows in both of the windows at the end of 1000 cycles, and not after.
TEST(ConformanceKitTest, ACacheThatFillsUpLateIsNoLeak) {
  KitOptions options = Filtered("cycles/timelines");
  options.create_destroy_cycles = 1000;
  options.long_run = true;  // however long a cycle takes
  const Report report = Check("fills-up", options);
  const Finding finding = Find(report, "cycles/timelines");
  EXPECT_EQ(finding.outcome, Outcome::kPass) << FormatReport(report, true);
  EXPECT_EQ(finding.detail, "2000 cycles");
}

// The kit itself has no descriptors left then.
TEST(ConformanceKitTest, CatchesALeakOfAllDescriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  KitOptions options = Filtered("cycles/backends");
  options.create_destroy_cycles = 1000;
  const Report report = Check("leaks-fds", options);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const Finding finding = Find(report, "cycles/backends");
  EXPECT_EQ(finding.outcome, Outcome::kFail) << FormatReport(report, true);
  EXPECT_EQ(finding.detail, "leaks file descriptors: none is left");
}

TEST(ConformanceKitTest, SaysWhenTheFilterNamesNothing) {
  const auto report = TryCheck("sound", Filtered("op/matmull"));
  EXPECT_TRUE(absl::IsNotFound(report.status())) << report.status();
  EXPECT_NE(report.status().message().find("op/matmull"), std::string::npos);
  EXPECT_TRUE(TryCheck("sound", Filtered("load/library")).ok());
  const auto second = TryCheck("sound", Filtered("memory/,nosuch/"));
  EXPECT_TRUE(absl::IsNotFound(second.status())) << second.status();
  EXPECT_NE(second.status().message().find("\"nosuch/\""), std::string::npos) << second.status();
}

TEST(ConformanceKitTest, NoDeviceIsAFailureUnlessAllowed) {
  for (const char* fixture : {"no-device", "claims-nothing"}) {
    KitOptions options = Filtered("");
    EXPECT_FALSE(Check(fixture, options).Ok()) << fixture;
    options.allow_no_device = true;
    const Report report = Check(fixture, options);
    EXPECT_TRUE(report.Ok()) << FormatReport(report, true);
    const Finding finding = Find(report, "kit/coverage");
    EXPECT_EQ(finding.outcome, Outcome::kSkip);
    EXPECT_NE(finding.detail.find("nothing to check"), std::string::npos);
  }
  // Fails for any check: without a device there is no result.
  EXPECT_FALSE(Check("no-device", "op/matmul").Ok());
}

TEST(ConformanceKitTest, RunsOnlyWhatTheFilterNames) {
  const Report report = Check("sound", "memory/");
  EXPECT_TRUE(report.Ok()) << FormatReport(report, true);
  for (const Finding& f : report.findings) {
    EXPECT_TRUE(f.check == "load/library" || f.check.rfind("memory/", 0) == 0) << f.check;
  }
  const Report fewer = Check("sound", "memory/,-memory/import");
  EXPECT_TRUE(fewer.Ok()) << FormatReport(fewer, true);
  EXPECT_LT(fewer.findings.size(), report.findings.size());
  EXPECT_GT(fewer.findings.size(), 1u);
  const Report two = Check("sound", "memory/,copies/");
  EXPECT_TRUE(two.Ok()) << FormatReport(two, true);
  EXPECT_GT(two.findings.size(), report.findings.size());
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
