#include "tools/cli/bench/memory_bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "detect/file_root.h"
#include "detect/memory.h"
#include "dispatch/exec/segment.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

// Every machine has registers of this size; the compiler keeps larger vectors in memory.
using Word __attribute__((vector_size(16))) = uint64_t;
struct alignas(64) Line {
  Word words[4];
};

constexpr uint64_t kLinesAtOnce = 2;
// Passes take these values in turn: the number of lines that they request ahead. 0: they rely on
// the processor's prefetching alone.
#if defined(__x86_64__)
constexpr uint64_t kAheadLines[] = {0, 32, 64};
#else
constexpr uint64_t kAheadLines[] = {0};
#endif
constexpr int kLeastPasses = 6;
constexpr int kMostPasses = 200;
constexpr std::chrono::milliseconds kEnough{300};

class Mapping {
 public:
  explicit Mapping(uint64_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Ask for large pages: walking page tables is not part of the limit.
    if (ok()) madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Mapping() {
    if (ok()) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool ok() const { return data_ != MAP_FAILED; }
  Line* lines() const { return static_cast<Line*>(data_); }

 private:
  uint64_t bytes_;
  void* data_;
};

template <bool kAhead>
uint64_t Sum(const Line* lines, uint64_t n_lines, uint64_t ahead) {
  // Use as many sums as words are loaded, in registers, so that no load waits for an addition.
  Word sums[kLinesAtOnce][4] = {};
  for (uint64_t i = 0; i < n_lines; i += kLinesAtOnce) {
#pragma GCC unroll 8
    for (uint64_t k = 0; k < kLinesAtOnce; ++k) {
      if constexpr (kAhead) __builtin_prefetch(lines + i + k + ahead);
#pragma GCC unroll 8
      for (int w = 0; w < 4; ++w) sums[k][w] += lines[i + k].words[w];
    }
  }
  uint64_t sum = 0;
  for (const auto& line : sums) {
    for (const Word& word : line) sum += word[0] + word[1];
  }
  return sum;
}

// The team's passes over the buffer.
class Passes {
 public:
  Passes(Line* lines, uint64_t lines_each, uint32_t threads)
      : lines_(lines), lines_each_(lines_each), times_(threads), barrier_(threads) {}

  void Work(uint32_t worker) {
    Line* const own = lines_ + worker * lines_each_;
    // Each worker writes its pages first. So they are in memory near the worker, and are not all
    // the system's one page of zeros.
    for (uint64_t i = 0; i < lines_each_; ++i) own[i].words[0] = Word{i, i};
    uint64_t sum = 0;
    const Clock::time_point first = Clock::now();
    for (int pass = 0; pass < kMostPasses && !done_; ++pass) {
      barrier_.arrive_and_wait();
      const Clock::time_point begin = Clock::now();
      const uint64_t ahead = kAheadLines[static_cast<size_t>(pass) % std::size(kAheadLines)];
      sum += ahead == 0 ? Sum<false>(own, lines_each_, 0) : Sum<true>(own, lines_each_, ahead);
      times_[worker] = {begin, Clock::now()};
      barrier_.arrive_and_wait();
      if (worker == 0) {
        best_ = std::min(best_, Longest());
        done_ = pass + 1 >= kLeastPasses && Clock::now() - first >= kEnough;
      }
      barrier_.arrive_and_wait();
    }
    sink_.fetch_add(sum, std::memory_order_relaxed);  // keeps the compiler from dropping the sums
  }

  double best_seconds() const { return std::chrono::duration<double>(best_).count(); }

 private:
  struct alignas(64) Times {
    Clock::time_point begin, end;
  };

  // Returns the time from the first begin to the last end: a barrier does not release all at once.
  Clock::duration Longest() const {
    Times all = times_[0];
    for (const Times& t : times_) {
      all = {std::min(all.begin, t.begin), std::max(all.end, t.end)};
    }
    return all.end - all.begin;
  }

  Line* lines_;
  uint64_t lines_each_;
  std::vector<Times> times_;  // the times of the current pass, one per worker
  std::barrier<> barrier_;
  Clock::duration best_ = Clock::duration::max();  // written by worker 0
  bool done_ = false;                              // written by worker 0, read after a barrier
  std::atomic<uint64_t> sink_{0};
};

// Runs the passes once all threads exist. Returns false when a thread can't be started.
bool RunThreads(uint32_t threads, Passes* passes) {
  enum State { kWait, kGo, kLeave };
  std::atomic<int> state{kWait};
  std::vector<std::thread> others;
  const auto begin = [&](uint32_t worker) {
    state.wait(kWait);
    if (state == kGo) passes->Work(worker);
  };
  bool complete = true;
  try {
    others.reserve(threads - 1);
    for (uint32_t i = 1; i < threads; ++i) others.emplace_back(begin, i);
  } catch (const std::system_error&) {
    complete = false;
  }
  state = complete ? kGo : kLeave;
  state.notify_all();
  if (complete) passes->Work(0);
  for (std::thread& thread : others) thread.join();
  return complete;
}

constexpr int kCopies = 8;  // copies per run, so that starting a run takes little of the time
constexpr int kRuns = 6;

}  // namespace

absl::StatusOr<ReadBandwidth> MeasureReadBandwidth(uint32_t threads, uint64_t bytes) {
  detect::Notes notes;
  const uint64_t available = detect::ReadMemory(detect::FileRoot("/"), &notes).available_bytes;
  if (available > 0) bytes = std::min(bytes, available / 2);
  const uint64_t step = sizeof(Line) * kLinesAtOnce;
  const uint64_t lines_each = std::max<uint64_t>(bytes / threads / step, 1) * kLinesAtOnce;
  ReadBandwidth result;
  result.bytes = lines_each * threads * sizeof(Line);
  const Mapping memory(result.bytes);
  if (!memory.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are no ", result.bytes, " bytes to measure the read bandwidth with"));
  }
  Passes passes(memory.lines(), lines_each, threads);
  if (!RunThreads(threads, &passes)) {
    return absl::ResourceExhaustedError(absl::StrCat("the system gives no ", threads, " threads"));
  }
  result.bytes_per_second = static_cast<double>(result.bytes) / passes.best_seconds();
  return result;
}

absl::StatusOr<ReadBandwidth> MeasureCopyBandwidth(std::shared_ptr<Device> device, uint64_t bytes) {
  constexpr uint64_t kRow = 4096;  // bytes
  const auto rows = static_cast<int64_t>(std::max<uint64_t>(bytes / kRow, 1));
  const uint64_t copied = static_cast<uint64_t>(rows) * kRow;
  auto memory = Buffer::Allocate(device, 2 * copied, TRINE_MEMORY_STATE);
  if (!memory.ok()) return memory.status();
  OpGraph graph;
  const Shape shape = {kRow / 4, rows};
  const TensorId a = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F32, shape);
  const TensorId b = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F32, shape);
  for (int i = 0; i < kCopies; i += 2) {
    graph.AddOp(TRINE_OP_COPY, {a}, {b});
    graph.AddOp(TRINE_OP_COPY, {b}, {a});
  }
  graph.Finish();
  const std::vector<SlotMemory> places = {{graph.SlotOf(a), memory->Span(0, copied)},
                                          {graph.SlotOf(b), memory->Span(copied, copied)}};
  auto segment = Segment::Create(std::move(device), std::move(graph), places);
  if (!segment.ok()) return segment.status();
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Clock::time_point begin = Clock::now();
    if (absl::Status s = (*segment)->Run({}); !s.ok()) return s;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * kCopies * static_cast<double>(copied) / seconds);
  }
  return ReadBandwidth{best, copied};
}

}  // namespace trine
