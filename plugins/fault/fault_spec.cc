#include "plugins/fault/fault_spec.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace trine::fault {
namespace {

template <class T>
struct Named {
  absl::string_view name;
  T value;
};

constexpr Named<Kind> kKinds[] = {{"oom", Kind::kOom},    {"lost", Kind::kLost},
                                  {"hang", Kind::kHang},  {"timeout", Kind::kTimeout},
                                  {"slow", Kind::kSlow},  {"garbage", Kind::kGarbage},
                                  {"chaos", Kind::kChaos}};

constexpr Named<Moment> kMoments[] = {
    {"open", Moment::kOpen},     {"load", Moment::kLoad},         {"alloc", Moment::kAlloc},
    {"import", Moment::kImport}, {"write", Moment::kWrite},       {"read", Moment::kRead},
    {"copy", Moment::kCopy},     {"query", Moment::kQuery},       {"layout", Moment::kLayout},
    {"plan", Moment::kPlan},     {"run", Moment::kRun},           {"token", Moment::kToken},
    {"free", Moment::kFree},     {"shutdown", Moment::kShutdown}, {"random", Moment::kRandom}};

constexpr Named<Junk> kJunk[] = {
    {"nan", Junk::kNan},   {"inf", Junk::kInf},       {"huge", Junk::kHuge}, {"tiny", Junk::kTiny},
    {"bits", Junk::kBits}, {"status", Junk::kStatus}, {"size", Junk::kSize}};

constexpr std::chrono::milliseconds kDriverTimeout{2000};
constexpr std::chrono::milliseconds kChaosTimeout{100};  // short, because there may be many
constexpr uint64_t kMaxMilliseconds = 24 * 3600 * 1000;

absl::Status Wrong(absl::string_view part, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", part, "': ", why));
}

template <class T, size_t N>
absl::StatusOr<T> Find(const Named<T> (&table)[N], absl::string_view name, absl::string_view what) {
  std::string known;
  for (const Named<T>& one : table) {
    if (one.name == name) return one.value;
    absl::StrAppend(&known, known.empty() ? "" : ", ", one.name);
  }
  return Wrong(name, absl::StrCat("no ", what, "; there are: ", known));
}

// Takes over a value that could be read.
template <class T>
absl::Status Set(const absl::StatusOr<T>& value, T* out) {
  if (value.ok()) *out = *value;
  return value.status();
}

absl::StatusOr<uint64_t> Number(absl::string_view text, absl::string_view part) {
  uint64_t value = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (!digits || !absl::SimpleAtoi(text, &value)) return Wrong(part, "a whole number is missing");
  return value;
}

// Reads a time: "250" and "250ms" are milliseconds, "3s" seconds.
absl::StatusOr<std::chrono::milliseconds> Time(absl::string_view text, absl::string_view part) {
  uint64_t unit = 1;
  if (!absl::ConsumeSuffix(&text, "ms") && absl::ConsumeSuffix(&text, "s")) unit = 1000;
  const auto value = Number(text, part);
  if (!value.ok()) return Wrong(part, "a time such as 250ms or 3s is missing");
  if (*value > kMaxMilliseconds / unit) return Wrong(part, "more than a day");
  return std::chrono::milliseconds(*value * unit);
}

// Reads which calls of a moment are meant: "5", "5+" or "5-9".
absl::Status Which(absl::string_view text, absl::string_view part, Fault* fault) {
  fault->last = Fault::kAlways;
  const bool open_end = absl::ConsumeSuffix(&text, "+");
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  const auto first = Number(ends.first, part);
  if (!first.ok()) return first.status();
  fault->first = *first;
  if (!open_end) fault->last = *first;
  if (absl::StrContains(text, "-")) {
    const auto last = Number(ends.second, part);
    if (!last.ok()) return last.status();
    fault->last = *last;
    if (open_end) return Wrong(part, "either a range or an open end");
  }
  if (fault->first == 0 || fault->last < fault->first) {
    return Wrong(part, "calls are counted from 1, and ranges go up");
  }
  return absl::OkStatus();
}

absl::Status ReadKind(absl::string_view text, Fault* fault) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto kind = Find(kKinds, parts.first, "kind of fault");
  if (!kind.ok()) return kind.status();
  fault->kind = *kind;
  const bool valued = absl::StrContains(text, "=");
  switch (*kind) {
    case Kind::kTimeout:
    case Kind::kSlow:
      fault->time = kDriverTimeout;
      if (!valued && *kind == Kind::kTimeout) return absl::OkStatus();
      return Set(Time(parts.second, text), &fault->time);
    case Kind::kGarbage:
      if (!valued) return absl::OkStatus();
      return Set(Find(kJunk, parts.second, "kind of garbage"), &fault->junk);
    case Kind::kChaos:
      fault->time = kChaosTimeout;
      [[fallthrough]];
    default:
      return valued ? Wrong(text, "this kind takes no value") : absl::OkStatus();
  }
}

absl::Status ReadMoment(absl::string_view text, Fault* fault) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto moment = Find(kMoments, parts.first, "moment");
  if (!moment.ok()) return moment.status();
  fault->moment = *moment;
  if (*moment == Moment::kLoad || *moment == Moment::kShutdown) fault->last = 1;
  if (!absl::StrContains(text, "=")) return absl::OkStatus();
  if (*moment == Moment::kLoad || *moment == Moment::kShutdown || *moment == Moment::kRandom) {
    return Wrong(text, "this moment takes no number");
  }
  return Which(parts.second, text, fault);
}

absl::Status ReadOption(absl::string_view text, Fault* fault, bool* rated) {
  absl::string_view value = text;
  if (absl::ConsumePrefix(&value, "rate=")) {
    *rated = true;
    if (!absl::SimpleAtod(value, &fault->rate) || !(fault->rate > 0 && fault->rate <= 1)) {
      return Wrong(text, "a rate lies above 0 and is at most 1");
    }
    return absl::OkStatus();
  }
  if (absl::ConsumePrefix(&value, "seed=")) return Set(Number(value, text), &fault->seed);
  if (absl::ConsumePrefix(&value, "back=")) {
    fault->back = Fault::Back::kAfter;
    return Set(Time(value, text), &fault->back_after);
  }
  if (absl::ConsumePrefix(&value, "back@open=")) {
    fault->back = Fault::Back::kOpen;
    const absl::Status status = Set(Number(value, text), &fault->back_open);
    if (!status.ok() || fault->back_open != 0) return status;
    return Wrong(text, "attempts are counted from 1");
  }
  if (text == "in=team") {
    fault->in_team = true;
    return absl::OkStatus();
  }
  return Wrong(text, "no option; there are: rate=, seed=, back=, back@open=, in=team");
}

bool IsValues(const Fault& f) { return f.junk != Junk::kStatus && f.junk != Junk::kSize; }

// Refuses combinations of parts that are valid one by one and make no sense together.
absl::Status Check(const Fault& f, bool rated) {
  const bool random = f.moment == Moment::kRandom;
  const bool runs = f.moment == Moment::kRun || f.moment == Moment::kToken || random;
  if (random != rated) {
    return Wrong(f.text, random ? "@random needs a rate=" : "rate= goes with @random");
  }
  if (f.kind == Kind::kChaos && !random) return Wrong(f.text, "chaos is @random");
  const bool gives_back = f.moment == Moment::kFree || f.moment == Moment::kShutdown;
  if (f.kind == Kind::kOom && gives_back) {
    return Wrong(f.text, "giving memory back never runs out of it");
  }
  if (f.kind == Kind::kGarbage && f.junk == Junk::kSize && f.moment != Moment::kQuery &&
      f.moment != Moment::kLayout) {
    return Wrong(f.text, "sizes are answered @query and @layout");
  }
  if (f.kind == Kind::kGarbage && IsValues(f) && !runs) {
    return Wrong(f.text, "values come out of a @run, @token or @random");
  }
  if (f.kind == Kind::kGarbage && gives_back) {
    return Wrong(f.text, "what is called to give something back answers nothing");
  }
  const bool hangs = f.kind == Kind::kHang || f.kind == Kind::kTimeout;
  if (f.in_team && !(hangs && (runs || f.moment == Moment::kPlan || f.moment == Moment::kCopy))) {
    return Wrong(f.text, "in=team is for a hang or timeout @plan, @copy, @run, @token or @random");
  }
  if (f.back != Fault::Back::kNever && !hangs && f.kind != Kind::kLost && f.kind != Kind::kChaos) {
    return Wrong(f.text, "nothing is lost that could come back");
  }
  return absl::OkStatus();
}

absl::StatusOr<Fault> ReadFault(absl::string_view text) {
  Fault fault;
  fault.text = std::string(text);
  const size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) {
    return Wrong(text, "a fault is written DEVICE:KIND@MOMENT, such as dgpu:lost@token=17");
  }
  fault.device = std::string(absl::StripAsciiWhitespace(text.substr(0, colon)));
  std::vector<absl::string_view> parts = absl::StrSplit(text.substr(colon + 1), ',');
  const absl::string_view what = absl::StripAsciiWhitespace(parts[0]);
  const size_t at = what.find('@');
  if (at == what.npos) return Wrong(text, "it has no moment, such as @run=3 or @load");
  absl::Status status = ReadKind(what.substr(0, at), &fault);
  if (status.ok()) status = ReadMoment(what.substr(at + 1), &fault);
  bool rated = false;
  for (size_t i = 1; i < parts.size() && status.ok(); ++i) {
    status = ReadOption(absl::StripAsciiWhitespace(parts[i]), &fault, &rated);
  }
  if (status.ok()) status = Check(fault, rated);
  if (!status.ok()) return status;
  return fault;
}

}  // namespace

absl::StatusOr<FaultSpec> FaultSpec::Parse(const std::string& text) {
  FaultSpec spec;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    auto fault = ReadFault(part);
    if (!fault.ok()) {
      const absl::string_view why = fault.status().message();
      if (absl::StrContains(why, part)) return fault.status();
      return absl::InvalidArgumentError(absl::StrCat("in '", part, "': ", why));
    }
    spec.faults.push_back(*std::move(fault));
  }
  return spec;
}

std::string KindName(Kind kind) {
  for (const Named<Kind>& one : kKinds) {
    if (one.value == kind) return std::string(one.name);
  }
  return "";
}

bool Concerns(const Fault& fault, const DeviceNames& names) {
  if (fault.device == "*" || fault.device == "any") return true;
  const std::string lower = absl::AsciiStrToLower(fault.device);
  const bool numbered = !lower.empty() && absl::ascii_isdigit(lower.back());
  return lower == names.tier_name || (!numbered && absl::StrCat(lower, "0") == names.tier_name) ||
         fault.device == names.backend_name;
}

}  // namespace trine::fault
