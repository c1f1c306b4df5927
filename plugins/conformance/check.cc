#include "plugins/conformance/check.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugins/child_process.h"
#include "plugins/conformance/check_main.h"
#include "plugins/conformance/outcome_name.h"

namespace trine::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// What one child has said so far.
struct Progress {
  std::string current;  // the check in progress, or ""
  std::string last;     // the last one that began
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

// The line of what the child printed that says most about its end.
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

// load/library runs whatever the filter says, and a plugin that fails before any other check has
// failed.
bool FilterNamesNothing(const Report& report, const std::string& filter) {
  for (const Finding& f : report.findings) {
    if (f.outcome == Outcome::kFail || f.check != "load/library" ||
        absl::StrContains(f.check, filter)) {
      return false;
    }
  }
  return true;
}

void Count(Report* report) {
  for (const Finding& f : report->findings) {
    ++(f.outcome == Outcome::kPass   ? report->passed
       : f.outcome == Outcome::kFail ? report->failed
                                     : report->skipped);
  }
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
  if (FilterNamesNothing(report, options.filter)) {
    return absl::NotFoundError(
        absl::StrCat("no check's name contains \"", options.filter, "\": nothing was checked"));
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Count(&report);
  return report;
}

}  // namespace trine::conformance
