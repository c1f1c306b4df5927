#include "plugins/conformance/check.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugins/child_process.h"

namespace trine::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// Everything that one child has reported so far.
struct Progress {
  std::string current;  // the check in progress, or ""
  std::string last;     // the last check that began
  bool done = false;
};

std::string Text(const nlohmann::json& message, const char* key) {
  const auto at = message.find(key);
  return at != message.end() && at->is_string() ? at->get<std::string>() : "";
}

void Hear(std::string_view line, Progress* progress, Report* report) {
  const auto message = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) return;
  const std::string event = Text(message, "event");
  if (event == "plugin") {
    report->name = Text(message, "name");
    report->version = Text(message, "version");
    report->abi = Text(message, "abi");
  } else if (event == "begin") {
    progress->current = progress->last = Text(message, "check");
  } else if (event == "end") {
    const auto seconds = message.find("seconds");
    report->findings.push_back(
        {Text(message, "check"), OutcomeOf(Text(message, "outcome")), Text(message, "detail"),
         seconds != message.end() && seconds->is_number() ? seconds->get<double>() : 0});
    progress->current.clear();
  } else if (event == "done") {
    progress->done = true;
  }
}

// Returns the line that says most about the child's end: a sanitizer's, or the last.
std::string TellingLine(const std::string& printed) {
  std::string last;
  for (absl::string_view line : absl::StrSplit(printed, '\n')) {
    if (absl::StrContains(line, "Sanitizer:")) return std::string(line);
    if (!line.empty()) last = std::string(line);
  }
  return last;
}

std::string DescribeFault(const ChildResult& result, const ChildOptions& child,
                          const Progress& progress) {
  std::string text;
  if (result.end == ChildResult::End::kTimedOut) {
    text = absl::StrCat("hangs: no answer for ", child.idle_timeout.count() / 1000.0, " s");
  } else {
    text = DescribeEnd(result, child);
    if (result.end == ChildResult::End::kExited) {
      absl::StrAppend(&text, ": a plugin must not end its host's process");
    }
  }
  if (progress.last.empty() || progress.current == "load/library") {
    absl::StrAppend(&text, " while it was being loaded, before any check");
  } else if (progress.current.empty()) {
    absl::StrAppend(&text, ", after the check had ended");
  }
  const std::string line = TellingLine(result.stderr_tail);
  return line.empty() ? text : absl::StrCat(text, " (it printed: ", line, ")");
}

bool IsFatal(const std::string& check) {
  return absl::StartsWith(check, "load/") || check == "life-cycle/open";
}

// Returns the first text of the filter that is in no check's name; "": there is none. Also returns
// "" if a check failed or there was nothing to check, because the checks that the filter names may
// not have been reached.
std::string NamesNothing(const Report& report, const std::string& filter) {
  for (const Finding& f : report.findings) {
    const bool nothing_to_check = f.check == "kit/coverage" && f.outcome == Outcome::kSkip;
    if (f.outcome == Outcome::kFail || nothing_to_check) return "";
  }
  for (absl::string_view part : absl::StrSplit(filter, ',', absl::SkipEmpty())) {
    if (absl::StartsWith(part, "-")) continue;
    const bool found =
        std::any_of(report.findings.begin(), report.findings.end(),
                    [&](const Finding& f) { return absl::StrContains(f.check, part); });
    if (!found) return std::string(part);
  }
  return "";
}

void Count(Report* report) {
  for (const Finding& f : report->findings) {
    ++(f.outcome == Outcome::kPass   ? report->passed
       : f.outcome == Outcome::kFail ? report->failed
                                     : report->skipped);
  }
}

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

std::string Padded(const std::string& text, size_t width) {
  return absl::StrCat(text, std::string(width - std::min(width, text.size()), ' '));
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

absl::StatusOr<Report> CheckPlugin(const std::string& helper_program, const std::string& path,
                                   const KitOptions& options, const CheckLimits& limits) {
  Report report;
  report.plugin_path = path;
  KitOptions remaining = options;
  const Clock::time_point start = Clock::now();
  int crashes = 0, hangs = 0;
  for (;;) {
    Progress progress;
    ChildOptions child;
    child.argv = {helper_program, "check", path};
    for (std::string& flag : KitFlags(remaining)) child.argv.push_back(std::move(flag));
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    child.timeout = limits.total - spent;
    child.idle_timeout = limits.idle;
    child.on_line = [&](std::string_view line) { Hear(line, &progress, &report); };
    const ChildResult result = RunChild(child);
    if (result.end == ChildResult::End::kNotStarted) {
      return absl::UnavailableError(
          absl::StrCat("the helper program could not be started: ", result.error));
    }
    if (progress.done && result.Ok()) break;

    Finding fault;
    fault.outcome = Outcome::kFail;
    fault.check = progress.done           ? "load/exit"
                  : progress.last.empty() ? "load/library"
                                          : progress.last;
    const bool out_of_time = Clock::now() - start >= limits.total;
    fault.detail = out_of_time ? absl::StrCat("the whole check took longer than ",
                                              limits.total.count() / 1000.0, " s")
                               : DescribeFault(result, child, progress);
    report.findings.push_back(fault);
    const bool hang = result.end == ChildResult::End::kTimedOut;
    ++(hang ? hangs : crashes);
    if (progress.done || out_of_time || IsFatal(fault.check)) break;
    if (crashes >= limits.crashes || hangs >= limits.hangs) {
      report.findings.push_back(
          {"kit/complete", Outcome::kFail,
           absl::StrCat("gave up after ", crashes, " crashes and ", hangs,
                        " hangs: the checks behind ", fault.check, " have not run"),
           0});
      break;
    }
    remaining.resume_after = fault.check;
  }
  if (const std::string nothing = NamesNothing(report, options.filter); !nothing.empty()) {
    return absl::NotFoundError(absl::StrCat("no check's name contains \"", nothing, "\""));
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Count(&report);
  return report;
}

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
    // A lack of devices is reported like a failure, because the other results mean little then.
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
