#include "dispatch/exec/trace.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr uint32_t kMostRows = 64;  // of a track; further overlapping events share the last row
constexpr size_t kMostText = 300;

// Returns a text as a JSON string. Texts of drivers may hold any bytes.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", byte);
      out += code;
    } else {
      out += byte < 0x7f ? c : '?';
    }
  }
  return out + '"';
}

std::string Microseconds(Trace::Clock::duration time) {
  const int64_t ns =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  char text[32];
  std::snprintf(text, sizeof(text), "%lld.%03d", static_cast<long long>(ns / 1000),
                static_cast<int>(ns % 1000));
  return text;
}

void AppendMetadata(const char* kind, uint32_t row, const std::string& argument, std::string* out) {
  absl::StrAppend(out, "{\"ph\":\"M\",\"pid\":1,\"tid\":", row, ",\"name\":\"", kind,
                  "\",\"args\":{", argument, "}},\n");
}

}  // namespace

Trace::Trace(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}

Trace::Track Trace::AddTrack(std::string name, Overlap overlap) {
  std::lock_guard lock(mutex_);
  tracks_.push_back({std::move(name), overlap, std::vector<Clock::time_point>(1, origin_)});
  return static_cast<Track>(tracks_.size() - 1);
}

uint32_t Trace::RowFor(Track track, const Event& event) {
  TrackInfo& info = tracks_[track];
  size_t row = 0;
  if (info.overlap == Overlap::kRows) {
    while (row < info.rows.size() && info.rows[row] > event.begin) ++row;
    row = std::min<size_t>(row, kMostRows - 1);
    if (row == info.rows.size()) info.rows.push_back(event.end);
    info.rows[row] = std::max(info.rows[row], event.end);
  }
  return track * kMostRows + static_cast<uint32_t>(row) + 1;
}

void Trace::Push(Track track, Event event, std::initializer_list<Arg> args) noexcept {
  event.n_args = static_cast<uint8_t>(std::min(args.size(), kMostArgs));
  std::copy_n(args.begin(), event.n_args, event.args.begin());
  std::lock_guard lock(mutex_);
  ++recorded_;
  try {
    event.row = RowFor(track, event);
    if (events_.size() == capacity_) {
      events_.pop_front();
      ++dropped_;
    }
    events_.push_back(std::move(event));
  } catch (const std::exception&) {
    ++dropped_;
  }
}

void Trace::Add(Track track, const char* name, Clock::time_point begin, Clock::time_point end,
                std::initializer_list<Arg> args) noexcept {
  Push(track, {name, 0, false, 0, begin, std::max(begin, end), {}, {}}, args);
}

void Trace::Mark(Track track, const char* name, Clock::time_point when, const std::string& text,
                 std::initializer_list<Arg> args) noexcept {
  Event event{name, 0, true, 0, when, when, {}, {}};
  try {
    event.text = text.substr(0, kMostText);
  } catch (const std::exception&) {
    event.text.clear();  // the mark itself says enough
  }
  Push(track, std::move(event), args);
}

uint64_t Trace::recorded() const {
  std::lock_guard lock(mutex_);
  return recorded_;
}

uint64_t Trace::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

void Trace::AppendEvent(const Event& event, Clock::time_point origin, std::string* out) {
  absl::StrAppend(out, "{\"ph\":\"", event.mark ? "i" : "X", "\",\"pid\":1,\"tid\":", event.row,
                  ",\"ts\":", Microseconds(event.begin - origin));
  if (event.mark) {
    absl::StrAppend(out, ",\"s\":\"g\"");
  } else {
    absl::StrAppend(out, ",\"dur\":", Microseconds(event.end - event.begin));
  }
  absl::StrAppend(out, ",\"name\":\"", event.name, "\",\"args\":{");
  for (size_t i = 0; i < event.n_args; ++i) {
    absl::StrAppend(out, i == 0 ? "" : ",", "\"", event.args[i].key, "\":", event.args[i].value);
  }
  if (!event.text.empty()) {
    absl::StrAppend(out, event.n_args == 0 ? "" : ",", "\"text\":", Quoted(event.text));
  }
  absl::StrAppend(out, "}},\n");
}

int64_t Trace::Shown::arg(std::string_view key) const {
  for (size_t i = 0; i < n_args; ++i) {
    if (args[i].key == key) return args[i].value;
  }
  return 0;
}

// Events are added when they end, by threads that do not wait for each other. So an event may be
// added up to kDisorder later than an event that ended after it.
std::vector<Trace::Event> Trace::Recent(Clock::time_point since) const {
  constexpr std::chrono::seconds kDisorder(1);
  std::vector<Event> recent;
  std::lock_guard lock(mutex_);
  for (auto e = events_.rbegin(); e != events_.rend(); ++e) {
    if (since != Clock::time_point::min() && e->end < since - kDisorder) break;
    if (e->end >= since) recent.push_back(*e);
  }
  std::reverse(recent.begin(), recent.end());
  return recent;
}

std::vector<Trace::Shown> Trace::Since(Clock::time_point since) const {
  std::vector<Shown> shown;
  for (const Event& e : Recent(since)) {
    shown.push_back({(e.row - 1) / kMostRows, e.name, e.begin, e.end, e.args, e.n_args});
  }
  return shown;
}

std::string Trace::Json(Clock::time_point since) const {
  // Copy first: threads that record must not wait until everything is written.
  const std::vector<Event> events = Recent(since);
  std::vector<TrackInfo> tracks;
  uint64_t dropped = 0;
  {
    std::lock_guard lock(mutex_);
    tracks = tracks_;
    dropped = dropped_;
  }
  // An event comes before the events that it encloses.
  std::vector<const Event*> sorted;
  std::set<uint32_t> used;
  for (const Event& event : events) {
    sorted.push_back(&event);
    used.insert(event.row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Event* a, const Event* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  const bool all = since == Clock::time_point::min();
  std::string out = absl::StrCat(
      "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"events\":", sorted.size(),
      ",\"dropped\":", dropped, ",\"dropped_first\":\"oldest\"},\n\"traceEvents\":[\n");
  for (size_t i = 0; i < tracks.size(); ++i) {
    for (size_t row = 0; row < tracks[i].rows.size(); ++row) {
      const uint32_t number = static_cast<uint32_t>(i) * kMostRows + static_cast<uint32_t>(row) + 1;
      if (!all && used.count(number) == 0) continue;
      const std::string name =
          row == 0 ? tracks[i].name : absl::StrCat(tracks[i].name, " ", row + 1);
      AppendMetadata("thread_name", number, absl::StrCat("\"name\":", Quoted(name)), &out);
      AppendMetadata("thread_sort_index", number, absl::StrCat("\"sort_index\":", number), &out);
    }
  }
  for (const Event* event : sorted) AppendEvent(*event, origin_, &out);
  absl::StrAppend(&out,
                  "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
                  "\"args\":{\"name\":\"trine\"}}\n]}\n");
  return out;
}

}  // namespace trine
