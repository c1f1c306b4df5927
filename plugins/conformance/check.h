// `trine plugin check`: runs the conformance kit in a child process, so that no plugin ends this
// program, and formats the report.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/conformance/kit.h"

namespace trine::conformance {

// When the check of a plugin gives up.
struct CheckLimits {
  std::chrono::milliseconds total{std::chrono::minutes(15)};
  std::chrono::milliseconds idle{20000};  // a child that reports nothing for this long hangs
  // After this many crashes the check gives up. Until then it continues after the check that
  // crashed or hung, so that one fault does not hide the others.
  int crashes = 5;
  int hangs = 2;
};

struct Report {
  std::string plugin_path;
  std::string name, version, abi;  // as the plugin says; "" if it could not be asked
  std::vector<Finding> findings;
  int passed = 0, failed = 0, skipped = 0;
  double seconds = 0;

  // Returns whether at least one check passed and none failed.
  bool Ok() const { return failed == 0 && passed > 0; }
};

// Runs the kit in a child and waits for it. Returns an error only if nothing was checked: the
// helper did not start, or no check's name contains the filter (NOT_FOUND).
absl::StatusOr<Report> CheckPlugin(const std::string& helper_program, const std::string& path,
                                   const KitOptions& options, const CheckLimits& limits = {});

// Formats a report for a person: counts by section, then every failure. `verbose` lists all checks.
std::string FormatReport(const Report& report, bool verbose);
std::string FormatReportJson(const Report& report);

// Runs the kit in the child: loads one plugin, checks it and reports on kReportFd, one JSON object
// a line:
//
//   {"event":"plugin","name":"cpu","version":"1.0","abi":"1.0"}
//   {"event":"begin","check":"memory/bounds"}
//   {"event":"alive"}
//   {"event":"end","check":"memory/bounds","outcome":"pass","detail":"","seconds":0.01}
//   {"event":"done"}
//
// If "done" is missing, the plugin has ended the process. argv holds "check", the plugin's path and
// the flags of KitFlags. Returns the exit code.
int CheckMain(int argc, char** argv);

// Returns the options as command-line arguments of the child.
std::vector<std::string> KitFlags(const KitOptions& options);

}  // namespace trine::conformance
