// Records what happened when, for a timeline in Perfetto or chrome://tracing (docs/tracing.md).
// Holds a bounded number of events: the oldest make room for the newest. Thread-safe; no other lock
// is taken while its lock is held.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace trine {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  // The number of a track: a line of the timeline, such as that of a stage or of the leader.
  using Track = uint32_t;
  // A number that is shown with an event. Keys, and names of events, must live as long as the
  // trace: use literals.
  struct Arg {
    const char* key;
    int64_t value;
  };
  static constexpr size_t kMostArgs = 6;  // of an event; further ones are left out
  static constexpr size_t kDefaultCapacity = size_t{1} << 18;

  // `capacity`: the most events that are held.
  explicit Trace(size_t capacity = kDefaultCapacity);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Says whether events of a track may overlap without one enclosing the other. kNever: they nest
  // or follow each other. kRows: they may overlap, and the track is then shown in several rows.
  enum class Overlap { kNever, kRows };
  // Adds a track and returns its number. Its name and number never change.
  Track AddTrack(std::string name, Overlap overlap = Overlap::kNever);

  // Adds an event that lasted from `begin` to `end`. Never fails: if there is no memory for it, it
  // is counted as dropped. REQUIRES: AddTrack returned `track`.
  void Add(Track track, const char* name, Clock::time_point begin, Clock::time_point end,
           std::initializer_list<Arg> args = {}) noexcept;
  // Adds a mark: a moment, shown with a text. A long text is cut. Otherwise as Add.
  void Mark(Track track, const char* name, Clock::time_point when, const std::string& text,
            std::initializer_list<Arg> args = {}) noexcept;

  uint64_t recorded() const;  // the number of events and marks so far, including dropped ones
  uint64_t dropped() const;   // those that made room for newer ones, or that found no memory

  // Returns the trace as JSON in the trace-event format, in ASCII. If `since` is given, leaves out
  // events that ended before it, and tracks without later events.
  std::string Json(Clock::time_point since = Clock::time_point::min()) const;

  // An event, or a mark without its text.
  struct Shown {
    Track track;
    const char* name;
    Clock::time_point begin, end;  // equal for a mark
    std::array<Arg, kMostArgs> args;
    size_t n_args;  // how many of `args` are set

    int64_t arg(std::string_view key) const;  // 0 if there is no such key
  };
  // Returns the events that ended at `since` or later, in the order in which they were added.
  std::vector<Shown> Since(Clock::time_point since) const;

 private:
  struct Event {
    const char* name;
    uint32_t row;  // its thread number in the file
    bool mark;
    uint8_t n_args;
    Clock::time_point begin, end;
    std::array<Arg, kMostArgs> args;
    std::string text;
  };
  struct TrackInfo {
    std::string name;
    Overlap overlap;
    std::vector<Clock::time_point> rows;  // when the last event of each row ended
  };

  std::vector<Event> Recent(Clock::time_point since) const;
  void Push(Track track, Event event, std::initializer_list<Arg> args) noexcept;
  uint32_t RowFor(Track track, const Event& event);
  static void AppendEvent(const Event& event, Clock::time_point origin, std::string* out);

  const size_t capacity_;
  const Clock::time_point origin_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<TrackInfo> tracks_;  // all below are guarded by mutex_
  std::deque<Event> events_;
  uint64_t recorded_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace trine
