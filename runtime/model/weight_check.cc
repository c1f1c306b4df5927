#include "runtime/model/weight_check.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/scalar.h"
#include "kernels/quant/validate.h"

namespace trine {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;  // what a worker takes at a time

// Rows [begin, end) of a tensor.
struct Piece {
  size_t tensor = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

bool RowIsCanonical(quant::Type type, const std::byte* row, int64_t n) {
  bool same = true;
  if (type == quant::Type::kF32) {
    const auto* x = reinterpret_cast<const float*>(row);
    for (int64_t i = 0; i < n; ++i) same &= quant::Bits(quant::Canon(x[i])) == quant::Bits(x[i]);
  } else if (type == quant::Type::kBF16) {
    const auto* x = reinterpret_cast<const uint16_t*>(row);
    for (int64_t i = 0; i < n; ++i) {
      const float value = quant::Bf16ToF32(x[i]);
      same &= quant::Bits(quant::Canon(value)) == quant::Bits(value);
    }
  }
  return same;
}

// Shared by the workers of one stretch of pieces.
struct Job {
  const std::vector<const gguf::TensorInfo*>* tensors;
  const std::vector<Piece>* pieces;
  size_t end = 0;
  std::atomic<size_t> next{0};
  std::atomic<size_t> bad_piece{static_cast<size_t>(-1)};
  std::vector<std::atomic<bool>>* out_of_range;

  const gguf::TensorInfo& TensorOf(size_t piece) const {
    return *(*tensors)[(*pieces)[piece].tensor];
  }
};

// The first row of a piece that is not finite, or -1.
int64_t FirstBadRow(const gguf::TensorInfo& t, const Piece& piece, bool* out_of_range) {
  const uint64_t row_bytes = t.bytes / static_cast<uint64_t>(t.Rows());
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    const std::byte* row = t.data + static_cast<uint64_t>(r) * row_bytes;
    if (!quant::RowIsFinite(t.type, row, t.dims[0])) return r;
    if (!RowIsCanonical(t.type, row, t.dims[0])) *out_of_range = true;
  }
  return -1;
}

void CheckPieces(void* arg, uint32_t, uint32_t) {
  Job& job = *static_cast<Job*>(arg);
  for (size_t i = job.next.fetch_add(1); i < job.end; i = job.next.fetch_add(1)) {
    const Piece& piece = (*job.pieces)[i];
    bool out_of_range = false;
    if (FirstBadRow(job.TensorOf(i), piece, &out_of_range) >= 0) {
      size_t seen = job.bad_piece.load();
      while (i < seen && !job.bad_piece.compare_exchange_weak(seen, i)) {
      }
    }
    if (out_of_range) (*job.out_of_range)[piece.tensor] = true;
  }
}

std::vector<Piece> CutIntoPieces(const std::vector<const gguf::TensorInfo*>& tensors) {
  std::vector<Piece> pieces;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t rows = tensors[t]->Rows();
    const uint64_t row_bytes =
        std::max<uint64_t>(1, tensors[t]->bytes / static_cast<uint64_t>(rows));
    const auto step = static_cast<int64_t>(std::max<uint64_t>(1, kPieceBytes / row_bytes));
    for (int64_t begin = 0; begin < rows; begin += step) {
      pieces.push_back({t, begin, std::min(rows, begin + step)});
    }
  }
  return pieces;
}

absl::Status NotFinite(const gguf::TensorInfo& t, const Piece& piece) {
  bool ignored = false;
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", std::string(t.name), " holds a value or scale that is no finite number, in row ",
      FirstBadRow(t, piece, &ignored)));
}

}  // namespace

absl::StatusOr<std::vector<bool>> CheckWeights(const std::vector<const gguf::TensorInfo*>& tensors,
                                               const HostServices& host,
                                               const LoadProgress& progress) {
  const std::vector<Piece> pieces = CutIntoPieces(tensors);
  std::vector<std::atomic<bool>> out_of_range(tensors.size());
  // A parallel region per stretch, so that progress can be told and cancelled in between.
  const size_t stretch = 64 * host.table()->worker_count;
  for (size_t begin = 0; begin < pieces.size(); begin += stretch) {
    Job job;
    job.tensors = &tensors;
    job.pieces = &pieces;
    job.next = begin;
    job.end = std::min(pieces.size(), begin + stretch);
    job.out_of_range = &out_of_range;
    const trine_status ran = host.table()->parallel_run(host.table()->self, CheckPieces, &job);
    if (ran != TRINE_OK) return absl::InternalError("the thread team did not check the weights");
    const size_t bad = job.bad_piece;
    if (bad != static_cast<size_t>(-1)) return NotFinite(job.TensorOf(bad), pieces[bad]);
    if (progress && !progress(static_cast<double>(job.end) / static_cast<double>(pieces.size()))) {
      return absl::CancelledError("loading was cancelled");
    }
  }
  return std::vector<bool>(out_of_range.begin(), out_of_range.end());
}

}  // namespace trine
