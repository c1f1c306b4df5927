#include "plugins/conformance/trial.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace trine::conformance {

const char* StatusName(trine_status status) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS"};
  if (status == kThrew) return "an exception";
  return status >= 0 && status <= TRINE_DATA_LOSS ? kNames[status] : "a number that is no status";
}

std::string Answer::Text() const {
  return absl::StrCat(StatusName(status), ": ", message.empty() ? "(no message)" : message);
}

void Trial::Fail(const std::string& detail) {
  if (failures_++ == 0) detail_ = detail;
}

void Trial::FailFirst(const std::string& cause) {
  ++failures_;
  detail_ = cause;
}

void Trial::Skip(const std::string& reason) {
  skipped_ = true;
  note_ = reason;
}

Finding Trial::Result(const std::string& name, double seconds) const {
  Finding finding{name, Outcome::kPass, note_, seconds};
  if (failures_ != 0) {
    finding.outcome = Outcome::kFail;
    finding.detail = detail_;
    if (failures_ > 1) absl::StrAppend(&finding.detail, " (and ", failures_ - 1, " more)");
  } else if (skipped_) {
    finding.outcome = Outcome::kSkip;
  }
  return finding;
}

bool Trial::Expect(bool condition, const std::string& otherwise) {
  if (!condition) Fail(otherwise);
  return condition;
}

bool Trial::ExpectOk(const Answer& answer, const std::string& what) {
  return Expect(answer.Ok(), absl::StrCat(what, ": ", answer.Text()));
}

bool Trial::ExpectRefused(const Answer& answer, const std::string& what,
                          std::initializer_list<trine_status> allowed) {
  if (answer.status == kThrew) return false;  // noted already
  if (answer.Ok()) return Expect(false, absl::StrCat(what, ": accepted, must be refused"));
  if (allowed.size() != 0 &&
      std::find(allowed.begin(), allowed.end(), answer.status) == allowed.end()) {
    std::string names;
    for (trine_status s : allowed)
      absl::StrAppend(&names, names.empty() ? "" : " or ", StatusName(s));
    return Expect(false,
                  absl::StrCat(what, ": must be refused with ", names, ", not ", answer.Text()));
  }
  return Expect(
      !answer.message.empty(),
      absl::StrCat(what, ": refused with ", StatusName(answer.status), " but without a message"));
}

void Trial::FailThrown(const std::string& function) {
  Fail(absl::StrCat("threw an exception across the ABI from ", function));
}

void Trial::ReadMessage(const char* function, const trine_error& err, Answer* answer) {
  if (answer->Ok() || answer->status == kThrew) return;
  if (answer->status < 0 || answer->status > TRINE_DATA_LOSS) {
    Fail(absl::StrCat(function, " returned ", answer->status, ", which is no trine_status"));
  }
  if (static_cast<unsigned char>(err.message[0]) == kUnwritten) return;
  const void* end = std::memchr(err.message, 0, sizeof(err.message));
  if (end == nullptr) {
    Fail(absl::StrCat(function, " left its error message without a terminating NUL"));
    return;
  }
  answer->message = err.message;
}

namespace {

// Returns whether the filter (KitOptions::filter) lets the check run.
bool IsChosen(const std::string& name, const std::string& filter) {
  bool chosen = false, names_some = false;
  for (absl::string_view part : absl::StrSplit(filter, ',', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&part, "-")) {
      if (absl::StrContains(name, part)) return false;
    } else {
      names_some = true;
      chosen = chosen || absl::StrContains(name, part);
    }
  }
  return chosen || !names_some;
}

}  // namespace

Runner::Runner(const KitOptions& options, Sink& sink)
    : options_(options), sink_(sink), resumed_(options.resume_after.empty()) {}

bool Runner::Reached(const std::string& name) {
  const bool reached = resumed_;
  resumed_ |= name == options_.resume_after;
  return reached;
}

void Runner::Run(const std::string& name, const std::function<void(Trial&)>& body) {
  if (Reached(name) && IsChosen(name, options_.filter)) Perform(name, body);
}

void Runner::RunUnfiltered(const std::string& name, const std::function<void(Trial&)>& body) {
  if (Reached(name)) Perform(name, body);
}

void Runner::Perform(const std::string& name, const std::function<void(Trial&)>& body) {
  sink_.Begin(name);
  Trial trial(&sink_);
  const auto start = std::chrono::steady_clock::now();
  body(trial);
  for (const std::string& function : thrown_) trial.FailThrown(function);
  thrown_.clear();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const Finding finding = trial.Result(name, took.count());
  if (finding.outcome == Outcome::kFail) failed_.push_back(name);
  sink_.End(finding);
}

bool Runner::failed(const std::string& name) const {
  return std::find(failed_.begin(), failed_.end(), name) != failed_.end();
}

}  // namespace trine::conformance
