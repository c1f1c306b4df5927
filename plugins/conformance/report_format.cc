// Reports as text and as JSON.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugins/conformance/check.h"
#include "plugins/conformance/outcome_name.h"

namespace trine::conformance {
namespace {

struct Section {
  std::string name;
  int passed = 0, failed = 0, skipped = 0;
};

std::vector<Section> Sections(const Report& report) {
  std::vector<Section> sections;
  for (const Finding& f : report.findings) {
    const std::string name = f.check.substr(0, f.check.find('/'));
    auto at = std::find_if(sections.begin(), sections.end(),
                           [&](const Section& s) { return s.name == name; });
    if (at == sections.end()) at = sections.insert(at, {name});
    ++(f.outcome == Outcome::kPass   ? at->passed
       : f.outcome == Outcome::kFail ? at->failed
                                     : at->skipped);
  }
  return sections;
}

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string Counts(int passed, int failed, int skipped) {
  std::string text = absl::StrCat(passed, " passed");
  if (failed != 0) absl::StrAppend(&text, ", ", failed, " FAILED");
  if (skipped != 0) absl::StrAppend(&text, ", ", skipped, " skipped");
  return text;
}

std::string Line(const Finding& f) {
  char seconds[16];
  std::snprintf(seconds, sizeof(seconds), "%8.3f s", f.seconds);
  return absl::StrCat("  ", OutcomeName(f.outcome), "  ", Padded(f.check, 32), seconds,
                      f.detail.empty() ? "" : "  ", f.detail, "\n");
}

}  // namespace

std::string FormatReport(const Report& report, bool verbose) {
  std::string text = report.plugin_path;
  if (!report.name.empty()) {
    absl::StrAppend(&text, ": ", report.name, " ", report.version, ", ABI ", report.abi);
  }
  absl::StrAppend(&text, "\n");
  if (verbose) {
    for (const Finding& f : report.findings) absl::StrAppend(&text, Line(f));
  }
  for (const Section& s : Sections(report)) {
    absl::StrAppend(&text, "  ", Padded(s.name, 14), Counts(s.passed, s.failed, s.skipped), "\n");
  }
  for (const Finding& f : report.findings) {
    // What was left out for want of a device is told as loud as a failure: the rest says little.
    const bool uncovered = f.outcome == Outcome::kSkip && absl::StartsWith(f.check, "kit/");
    if (f.outcome != Outcome::kFail && !uncovered) continue;
    absl::StrAppend(&text, uncovered ? "SKIPPED " : "FAILED ", f.check, "\n    ", f.detail, "\n");
  }
  char seconds[16];
  std::snprintf(seconds, sizeof(seconds), "%.1f s", report.seconds);
  absl::StrAppend(&text, report.Ok() ? "conforms: " : "does not conform: ",
                  Counts(report.passed, report.failed, report.skipped), ", in ", seconds, "\n");
  return text;
}

std::string FormatReportJson(const Report& report) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& f : report.findings) {
    findings.push_back({{"check", f.check},
                        {"outcome", OutcomeName(f.outcome)},
                        {"detail", f.detail},
                        {"seconds", f.seconds}});
  }
  const nlohmann::json root = {{"path", report.plugin_path}, {"name", report.name},
                               {"version", report.version},  {"abi", report.abi},
                               {"ok", report.Ok()},          {"passed", report.passed},
                               {"failed", report.failed},    {"skipped", report.skipped},
                               {"seconds", report.seconds},  {"findings", findings}};
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace trine::conformance
