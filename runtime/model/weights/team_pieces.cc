#include "runtime/model/weights/team_pieces.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// Pieces per worker in one parallel region. Progress is reported, and can be cancelled, in between.
constexpr size_t kPiecesPerWorker = 32;

struct Piece {
  size_t range = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t owner = 0;
};

// Appends the pieces of a range. Takes them from the stretches of all workers in turn, so that all
// workers are busy at any time.
void CutRange(const TeamRange& range, size_t number, uint32_t workers, std::vector<Piece>* out) {
  const uint64_t step =
      std::max<uint64_t>(1, kPieceBytes / std::max<uint64_t>(1, range.unit_bytes));
  if (range.units <= step) {
    if (range.units > 0) {
      out->push_back({number, 0, range.units, static_cast<uint32_t>(number % workers)});
    }
    return;
  }
  const auto stretch_begin = [&](uint64_t w) {
    return range.units / workers * w + range.units % workers * w / workers;
  };
  for (uint64_t i = 0, more = 1; more != 0; ++i) {
    more = 0;
    for (uint32_t w = 0; w < workers; ++w) {
      const uint64_t end = stretch_begin(w + 1), begin = stretch_begin(w) + i * step;
      if (begin >= end) continue;
      out->push_back({number, begin, std::min(end, begin + step), w});
      more = 1;
    }
  }
}

// One parallel region of the team: its pieces, and the first failure.
struct Region {
  explicit Region(uint32_t workers) : pieces(workers), next(workers) {}

  const PieceWork* work = nullptr;
  std::vector<std::vector<Piece>> pieces;  // by the worker that they belong to
  std::vector<std::atomic<size_t>> next;
  std::mutex mutex;
  absl::Status status;  // the status of the first piece that failed
  std::pair<size_t, uint64_t> failed{static_cast<size_t>(-1), 0};

  void Do(const Piece& piece) {
    absl::Status s;
    try {
      s = (*work)(piece.range, piece.begin, piece.end);
    } catch (const std::bad_alloc&) {
      s = absl::ResourceExhaustedError("out of memory");
    }
    if (s.ok()) return;
    std::lock_guard<std::mutex> lock(mutex);
    const std::pair<size_t, uint64_t> place{piece.range, piece.begin};
    if (place < failed) {
      failed = place;
      status = std::move(s);
    }
  }
};

void RunWorker(void* arg, uint32_t worker, uint32_t workers) {
  Region& region = *static_cast<Region*>(arg);
  for (uint32_t i = 0; i < workers; ++i) {
    const uint32_t of = (worker + i) % workers;  // its own pieces first
    const std::vector<Piece>& pieces = region.pieces[of];
    for (size_t p = region.next[of]++; p < pieces.size(); p = region.next[of]++) {
      region.Do(pieces[p]);
    }
  }
}

}  // namespace

absl::Status RunPieces(const std::vector<TeamRange>& ranges, const HostServices& host,
                       const PieceWork& work, LoadMeter* meter) {
  const uint32_t workers = host.table()->worker_count;
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranges.size(); ++r) CutRange(ranges[r], r, workers, &pieces);
  for (size_t begin = 0; begin < pieces.size();) {
    const size_t end = std::min(pieces.size(), begin + kPiecesPerWorker * workers);
    Region region(workers);
    region.work = &work;
    uint64_t bytes = 0;
    for (; begin < end; ++begin) {
      const Piece& p = pieces[begin];
      region.pieces[p.owner].push_back(p);
      bytes += (p.end - p.begin) * ranges[p.range].unit_bytes;
    }
    const trine_status ran = host.table()->parallel_run(host.table()->self, RunWorker, &region);
    if (ran != TRINE_OK) {
      return absl::Status(static_cast<absl::StatusCode>(ran),
                          absl::StrCat("the thread team did not look at the weights: ",
                                       HostServices::TakeWhyNotRun()));
    }
    if (!region.status.ok()) return region.status;
    if (absl::Status s = meter->Done(bytes); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace trine
