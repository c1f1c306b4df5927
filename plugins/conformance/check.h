// `trine plugin check`: the conformance kit in a child process, so that no plugin takes the program
// down, and its report.
#ifndef TRINE_PLUGINS_CONFORMANCE_CHECK_H_
#define TRINE_PLUGINS_CONFORMANCE_CHECK_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/conformance/kit.h"

namespace trine::conformance {

struct CheckLimits {
  std::chrono::milliseconds total{std::chrono::minutes(15)};
  std::chrono::milliseconds idle{20000};  // no word from the child for so long is a hang
  // The check goes on behind the one that crashed or hung, so that one fault does not hide the
  // others; after this many it is enough.
  int crashes = 5;
  int hangs = 2;
};

struct Report {
  std::string plugin_path;
  std::string name, version, abi;  // as the plugin says; empty when it could not be asked
  std::vector<Finding> findings;
  int passed = 0, failed = 0, skipped = 0;
  double seconds = 0;

  // At least one check passed and none failed.
  bool Ok() const { return failed == 0 && passed > 0; }
};

// Blocks. An error means that nothing could be checked: the helper did not start, or, NOT_FOUND, no
// check has a name with the filter in it.
absl::StatusOr<Report> CheckPlugin(const std::string& helper_program, const std::string& path,
                                   const KitOptions& options, const CheckLimits& limits = {});

// For a person: counts by section, then every failure; `verbose` lists every check.
std::string FormatReport(const Report& report, bool verbose);
std::string FormatReportJson(const Report& report);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_CHECK_H_
