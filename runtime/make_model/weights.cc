#include "runtime/make_model/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/quant/encode.h"

namespace trine {
namespace {

constexpr uint64_t kPieceBytes = 16u << 20;

// The size of the pool, a tensor whose blocks make up a larger one.
constexpr int64_t kPoolRowValues = 4096;
constexpr int64_t kPoolRows = 32;

bool UsesPool(const TensorSpec& tensor) {
  return quant::IsQuantized(tensor.type) &&
         tensor.dims[0] * tensor.rows() > kPoolRowValues * kPoolRows;
}

TensorSpec PoolOf(const TensorSpec& tensor) {
  TensorSpec pool = tensor;
  pool.name += " pool";
  pool.dims = {kPoolRowValues, kPoolRows};
  return pool;
}

}  // namespace

// Rows [first_row, last_row) of a tensor, to be written to `out`.
struct WeightMaker::Piece {
  const TensorSpec& tensor;
  const RandomValues random;
  const absl::Span<const std::byte> pool;  // empty: values are drawn and encoded
  std::vector<std::vector<float>>& rows;   // scratch, one per worker
  const uint64_t row_bytes;
  const int64_t first_row;
  const int64_t last_row;
  std::byte* const out;
  std::atomic<int64_t> next_row;
  std::atomic<bool> failed{false};

  bool Fill(int64_t row, std::vector<float>* scratch) const {
    std::byte* to = out + static_cast<uint64_t>(row - first_row) * row_bytes;
    if (pool.empty()) return EncodeValues(row, scratch, to);
    CopyBlocks(row, to);
    return true;
  }

  bool EncodeValues(int64_t row, std::vector<float>* scratch, std::byte* to) const {
    const int64_t n = tensor.dims[0];
    const auto start = static_cast<uint64_t>(row) * static_cast<uint64_t>(n);
    scratch->resize(static_cast<size_t>(n));
    float* x = scratch->data();
    if (!tensor.values.empty()) {
      std::copy_n(tensor.values.data() + start, n, x);
    } else {
      const float factor =
          tensor.row_factors.empty() ? 1.0f : tensor.row_factors[static_cast<size_t>(row)];
      const float spread = tensor.spread * factor;
      for (int64_t i = 0; i < n; ++i) {
        x[i] = tensor.middle + spread * random.Normal(start + static_cast<uint64_t>(i));
      }
    }
    return quant::EncodeRow(tensor.type, x, n, /*importance=*/nullptr, to);
  }

  void CopyBlocks(int64_t row, std::byte* to) const {
    const auto block_bytes = static_cast<uint64_t>(quant::Traits(tensor.type).block_bytes);
    const uint64_t blocks = row_bytes / block_bytes;
    const uint64_t pool_blocks = pool.size() / block_bytes;  // a power of two
    const uint64_t start = static_cast<uint64_t>(row) * blocks;
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint64_t from = random.Bits(start + i) & (pool_blocks - 1);
      std::memcpy(to + i * block_bytes, pool.data() + from * block_bytes, block_bytes);
    }
  }
};

WeightMaker::WeightMaker(uint64_t seed, uint32_t workers)
    : seed_(seed), team_({.workers = workers, .cpus = {}}), rows_(team_.workers()) {}

void WeightMaker::FillShare(void* arg, uint32_t worker, uint32_t /*workers*/) {
  Piece& piece = *static_cast<Piece*>(arg);
  for (;;) {
    const int64_t row = piece.next_row.fetch_add(1, std::memory_order_relaxed);
    if (row >= piece.last_row) return;
    if (!piece.Fill(row, &piece.rows[worker])) piece.failed = true;
  }
}

absl::Status WeightMaker::Make(const TensorSpec& tensor, const Sink& sink) {
  if (!UsesPool(tensor)) return MakeFrom({}, tensor, sink);
  std::vector<std::byte> pool;
  const absl::Status status = MakeFrom({}, PoolOf(tensor), [&](absl::Span<const std::byte> data) {
    pool.insert(pool.end(), data.begin(), data.end());
    return absl::OkStatus();
  });
  return status.ok() ? MakeFrom(pool, tensor, sink) : status;
}

absl::Status WeightMaker::MakeFrom(absl::Span<const std::byte> pool, const TensorSpec& tensor,
                                   const Sink& sink) {
  uint64_t row_bytes = 0;
  if (!quant::RowBytes(tensor.type, tensor.dims[0], &row_bytes)) {
    return absl::InternalError(absl::StrCat("the tensor ", tensor.name, " has rows of ",
                                            tensor.dims[0], " values, which its type can't hold"));
  }
  const int64_t rows = tensor.rows();
  const int64_t piece_rows =
      std::clamp<int64_t>(static_cast<int64_t>(kPieceBytes / row_bytes), 1, rows);
  buffer_.resize(std::max(buffer_.size(), static_cast<uint64_t>(piece_rows) * row_bytes));
  for (int64_t row = 0; row < rows; row += piece_rows) {
    const int64_t end = std::min(row + piece_rows, rows);
    Piece piece{tensor, {seed_, tensor.name}, pool, rows_, row_bytes, row,
                end,    buffer_.data(),       {row}};
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
