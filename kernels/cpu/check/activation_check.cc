#include <algorithm>
#include <cstring>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/check/product_tensors.h"
#include "kernels/cpu/product/activation_records.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/test_util.h"

namespace trine::cpu_kernels {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;

void CheckBlock(const KernelTable& table, const float* x, const ActivationChunk& chunk, int b,
                CheckReport* report) {
  quant::ActivationBlock want;
  quant::QuantizeActivation(x, &want);
  const bool equal = quant::Bits(want.d) == quant::Bits(chunk.d[b]) &&
                     std::memcmp(want.q, chunk.q + 32 * b, sizeof(want.q)) == 0 &&
                     want.sum[0] == chunk.half_sum[0][b] && want.sum[1] == chunk.half_sum[1][b] &&
                     want.sum[0] + want.sum[1] == chunk.sum[b];
  report->Expect(equal, [&] {
    return std::string(table.level) +
           ": quantize_activations: a block of which the first value is " + std::to_string(x[0]);
  });
}

// Returns chunk c of row r, as the level has quantised it for a reader.
ActivationChunk ChunkAt(const KernelTable& table, ActivationReader reader, const View& x,
                        const std::vector<ActivationChunk>& chunks, int64_t r, int64_t c) {
  const int64_t k = x.dims[0], rows = x.dims[1];
  const ActivationOrder order_of_reader =
      reader == ActivationReader::kMatmul ? table.matmul_order : ActivationOrder::kRows;
  const auto place = [&](int64_t row) -> const ActivationChunk& {
    return chunks[static_cast<size_t>(FirstChunkOf(row, rows, k) + c * ActivationStep(rows))];
  };
  if (order_of_reader == ActivationOrder::kPairs && rows >= kMinPairedRows && (r | 1) < rows) {
    // Eight values of the one row, eight of the other, through both chunks.
    ActivationChunk chunk = place(r);
    for (int64_t i = 0; i < quant::kSuperValues; ++i) {
      const int64_t at = i / 8 * 16 + (r & 1) * 8 + i % 8;
      const ActivationChunk& from = place(at < quant::kSuperValues ? r & ~int64_t{1} : r | 1);
      chunk.q[i] = from.q[at % quant::kSuperValues];
    }
    return chunk;
  }
  if (order_of_reader != ActivationOrder::kRecords || rows < kInterleavedRows) return place(r);
  const auto group = RecordsOfGroup(chunks.data(), r / kInterleavedRows, k);
  const RecordOrder order = OrderOfRecords(RecordCount(k));
  const int64_t column = r % kInterleavedRows;
  ActivationChunk chunk = {};
  for (int j = 0; j < 8 && 8 * c + j < RecordCount(k); ++j) {
    const ActivationRecord& record = group.records[order.first[j] + c];
    const ActivationSums& sums = group.sums[order.first[j] + c];
    std::copy_n(record.q[column], 32, chunk.q + 32 * j);
    chunk.d[j] = record.d[column];
    chunk.sum[j] = static_cast<int32_t>(sums.sum[column]);
    for (int h = 0; h < 2; ++h) {
      chunk.half_sum[h][j] = static_cast<int32_t>(sums.half_sum[h][column]);
    }
  }
  return chunk;
}

void CheckActivationRows(const KernelTable& table, ActivationReader reader, const GappedTensor& x,
                         CheckReport* report) {
  const View& view = x.view();
  const int64_t k = view.dims[0], chunk_count = ActivationChunks(k);
  std::vector<ActivationChunk> chunks = MakeChunks(view);
  const int64_t all = view.dims[1] * chunk_count, cut = all / 3;
  table.quantize_activations(view, reader, chunks.data(), {cut, all});
  table.quantize_activations(view, reader, chunks.data(), {0, cut});
  for (int64_t r = 0; r < view.dims[1]; ++r) {
    for (int64_t b = 0; b < k / 32; ++b) {
      const ActivationChunk chunk = ChunkAt(table, reader, view, chunks, r, b / 8);
      CheckBlock(table, x.Row(r) + 32 * b, chunk, static_cast<int>(b % 8), report);
    }
    for (int64_t b = k / 32; b < 8 * chunk_count; ++b) {
      const ActivationChunk chunk = ChunkAt(table, reader, view, chunks, r, b / 8);
      const auto* q = chunk.q + 32 * (b % 8);
      const bool zero = quant::Bits(chunk.d[b % 8]) == 0 && chunk.sum[b % 8] == 0 &&
                        chunk.half_sum[0][b % 8] == 0 && chunk.half_sum[1][b % 8] == 0 &&
                        std::all_of(q, q + 32, [](int8_t v) { return v == 0; });
      report->Expect(zero, [&] {
        return std::string(table.level) + ": quantize_activations: no zeros behind the row's end";
      });
    }
  }
}

void CheckAllActivations(const KernelTable& table, CheckReport* report) {
  Random random(1);
  for (const int64_t k : {32, 96, 256, 288, 1024}) {
    for (const Fill fill : quant::kAllFills) {
      // With 53 rows the second range has a whole group of 16, and parts of others.
      for (const int64_t rows : {5, 11, 19, 53}) {
        GappedTensor x(Type::kF32, {k, rows});
        x.FillRows(fill, &random);
        CheckActivationRows(table, ActivationReader::kMatmul, x, report);
        CheckActivationRows(table, ActivationReader::kMoeMatmul, x, report);
      }
    }
    // Halves: every second value lies between two integers.
    GappedTensor x(Type::kF32, {k, 2});
    for (int64_t i = 0; i < k; ++i) {
      x.Row(0)[i] = i % 32 == 31 ? 127.0f : 0.5f * static_cast<float>(random.Below(508) - 254);
      x.Row(1)[i] = -x.Row(0)[i];
    }
    CheckActivationRows(table, ActivationReader::kMatmul, x, report);
  }
}

}  // namespace

void CheckActivations(const KernelTable& table, CheckReport* report) {
  CheckAllActivations(table, report);
  const quant::ScopedFlushToZero flushed;
  CheckAllActivations(table, report);
}

}  // namespace trine::cpu_kernels
