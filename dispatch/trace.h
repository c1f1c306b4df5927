// A recording of what happened when, for a timeline in Perfetto or chrome://tracing
// (docs/tracing.md). Holds a bounded number of events: the oldest make room for the newest.
// Thread-safe; its lock is the last one that anybody takes.
#ifndef TRINE_DISPATCH_TRACE_H_
#define TRINE_DISPATCH_TRACE_H_

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
  using Track = uint32_t;
  // Strings of both live as long as the trace: literals.
  struct Arg {
    const char* key;
    int64_t value;
  };
  static constexpr size_t kMostArgs = 6;  // more are left out
  static constexpr size_t kDefaultCapacity = size_t{1} << 18;

  explicit Trace(size_t capacity = kDefaultCapacity);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Events of a track nest or follow each other; where they may overlap, they get rows of their
  // own.
  enum class Overlap { kNever, kRows };
  Track AddTrack(std::string name, Overlap overlap = Overlap::kNever);

  // Never fails: what there is no memory for counts as dropped.
  void Add(Track track, const char* name, Clock::time_point begin, Clock::time_point end,
           std::initializer_list<Arg> args = {}) noexcept;
  // A moment, with a few words, which are cut where they are many.
  void Mark(Track track, const char* name, Clock::time_point when, const std::string& text,
            std::initializer_list<Arg> args = {}) noexcept;

  uint64_t recorded() const;  // so far, with those that were dropped
  uint64_t dropped() const;

  // In the trace-event format: UTF-8, and in fact ASCII. What ended before `since` is left out, and
  // tracks with it that have nothing else.
  std::string Json(Clock::time_point since = Clock::time_point::min()) const;

  // What has ended since, of tracks whose names and numbers stay.
  struct Shown {
    Track track;
    const char* name;
    Clock::time_point begin, end;
    std::array<Arg, kMostArgs> args;
    size_t n_args;

    int64_t arg(std::string_view key) const;  // 0 where there is none
  };
  std::vector<Shown> Since(Clock::time_point since) const;

 private:
  struct Event {
    const char* name;
    uint32_t row;  // number of its thread in the file
    bool mark;
    uint8_t n_args;
    Clock::time_point begin, end;
    std::array<Arg, kMostArgs> args;
    std::string text;
  };
  struct TrackInfo {
    std::string name;
    Overlap overlap;
    std::vector<Clock::time_point> rows;  // when the last event of each ended
  };

  std::vector<Event> Recent(Clock::time_point since) const;
  void Push(Track track, Event event, std::initializer_list<Arg> args) noexcept;
  uint32_t RowFor(Track track, const Event& event);
  static void AppendEvent(const Event& event, Clock::time_point origin, std::string* out);

  const size_t capacity_;
  const Clock::time_point origin_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<TrackInfo> tracks_;  // all below is guarded by mutex_
  std::deque<Event> events_;
  uint64_t recorded_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace trine

#endif  // TRINE_DISPATCH_TRACE_H_
