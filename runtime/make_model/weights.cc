#include "runtime/make_model/weights.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "kernels/quant/encode.h"
#include "runtime/make_model/random_values.h"

namespace trine {
namespace {

constexpr uint64_t kPieceBytes = 16u << 20;

}  // namespace

// Rows [first_row, last_row) of a tensor, to be written to `out`.
struct WeightMaker::Piece {
  const TensorSpec& tensor;
  const RandomValues values;
  int64_t first_row = 0;
  int64_t last_row = 0;
  uint64_t row_bytes = 0;
  std::byte* out = nullptr;
  std::vector<std::vector<float>>& rows;  // scratch, one per worker
  std::atomic<int64_t> next_row{0};
  std::atomic<bool> failed{false};

  bool FillRow(int64_t row, std::vector<float>* scratch) const {
    const int64_t n = tensor.dims[0];
    const auto start = static_cast<uint64_t>(row) * static_cast<uint64_t>(n);
    scratch->resize(static_cast<size_t>(n));
    float* x = scratch->data();
    if (!tensor.values.empty()) {
      std::copy_n(tensor.values.data() + start, n, x);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        x[i] = tensor.middle + tensor.spread * values.Normal(start + static_cast<uint64_t>(i));
      }
    }
    std::byte* to = out + static_cast<uint64_t>(row - first_row) * row_bytes;
    return quant::EncodeRow(tensor.type, x, n, /*importance=*/nullptr, to);
  }
};

WeightMaker::WeightMaker(uint64_t seed, uint32_t workers)
    : seed_(seed), team_({.workers = workers, .cpus = {}}), rows_(team_.workers()) {}

void WeightMaker::FillShare(void* arg, uint32_t worker, uint32_t /*workers*/) {
  Piece& piece = *static_cast<Piece*>(arg);
  for (;;) {
    const int64_t row = piece.next_row.fetch_add(1, std::memory_order_relaxed);
    if (row >= piece.last_row) return;
    if (!piece.FillRow(row, &piece.rows[worker])) piece.failed = true;
  }
}

absl::Status WeightMaker::Make(const TensorSpec& tensor, const Sink& sink) {
  uint64_t row_bytes = 0;
  if (!quant::RowBytes(tensor.type, tensor.dims[0], &row_bytes)) {
    return absl::InternalError(absl::StrCat("the tensor ", tensor.name, " has rows of ",
                                            tensor.dims[0], " values, which its type can't hold"));
  }
  const int64_t rows = tensor.rows();
  const int64_t piece_rows =
      std::clamp<int64_t>(static_cast<int64_t>(kPieceBytes / row_bytes), 1, rows);
  const uint64_t piece_bytes = static_cast<uint64_t>(piece_rows) * row_bytes;
  if (buffer_.size() < piece_bytes) buffer_.resize(piece_bytes);
  for (int64_t row = 0; row < rows; row += piece_rows) {
    const int64_t end = std::min(row + piece_rows, rows);
    Piece piece{tensor, {seed_, tensor.name}, row, end, row_bytes, buffer_.data(), rows_, {row}};
    absl::Status status = team_.Run(&FillShare, &piece);
    if (status.ok() && piece.failed) {
      status = absl::InternalError(
          absl::StrCat("values of the tensor ", tensor.name, " could not be encoded"));
    }
    if (status.ok()) status = sink({buffer_.data(), static_cast<uint64_t>(end - row) * row_bytes});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace trine
