#include "kernels/cpu/check/check.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/cpu/product/activation_records.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/test_util.h"

namespace trine::cpu_kernels {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;

// Returns the least alignment of a type's rows.
int64_t RowAlignment(Type type) {
  const int bytes = quant::Traits(type).block_bytes;
  return std::min(bytes & -bytes, 4);
}

// A tensor at the worst address and stride that its type allows; its gaps are filled with a
// pattern.
class Tensor {
 public:
  Tensor(Type type, std::vector<int64_t> dims) {
    view_.type = type;
    std::copy(dims.begin(), dims.end(), view_.dims);
    uint64_t row_bytes = 0;
    quant::RowBytes(type, view_.dims[0], &row_bytes);
    const int64_t alignment = RowAlignment(type);
    view_.strides[0] = quant::Traits(type).block_bytes;
    view_.strides[1] = static_cast<int64_t>(row_bytes) + alignment;
    view_.strides[2] = view_.strides[1] * view_.dims[1];
    view_.strides[3] = view_.strides[2] * view_.dims[2];
    bytes_.assign(static_cast<size_t>(alignment + view_.strides[3] * view_.dims[3]),
                  std::byte{0xa5});
    view_.data = bytes_.data() + alignment;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const View& view() const { return view_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  float* Row(int64_t r) const { return reference::F32Row(view_, r); }

  void FillRows(Fill fill, Random* random) {
    for (int64_t r = 0; r < reference::Rows(view_); ++r) {
      for (int64_t i = 0; i < view_.dims[0]; ++i) Row(r)[i] = quant::FillValue(fill, random);
    }
  }
  void FillWeights(bool any_scale, Random* random) {
    for (int64_t r = 0; r < reference::Rows(view_); ++r) {
      const auto row = quant::RandomWeights(view_.type, view_.dims[0], any_scale, random);
      std::copy(row.begin(), row.end(), reference::RowAt(view_, r));
    }
  }
  // Sets all of a row but the scales to one byte: a format's largest and smallest integers.
  void FillExtreme(Random* random) {
    static constexpr uint8_t kPatterns[] = {0x80, 0x7f, 0xff, 0x00, 0x88, 0xf0};
    const auto block_bytes = static_cast<size_t>(quant::Traits(view_.type).block_bytes);
    for (int64_t r = 0; r < reference::Rows(view_); ++r) {
      auto row = quant::RandomWeights(view_.type, view_.dims[0], true, random);
      const int pattern = kPatterns[static_cast<size_t>(r) % std::size(kPatterns)];
      if (quant::IsQuantized(view_.type)) {
        for (size_t at = 0; at < row.size(); at += block_bytes) {
          std::memset(row.data() + at, pattern, block_bytes);
          quant::SetScales(view_.type, row.data() + at, true, random);
        }
      }
      std::copy(row.begin(), row.end(), reference::RowAt(view_, r));
    }
  }

 private:
  View view_;
  std::vector<std::byte> bytes_;
};

enum class Values { kUniform, kWide, kTiny, kZero, kOutlier, kExtreme };
constexpr Values kAllValues[] = {Values::kUniform, Values::kWide,    Values::kTiny,
                                 Values::kZero,    Values::kOutlier, Values::kExtreme};

void FillInputs(Values values, Random* random, Tensor* w, Tensor* x) {
  if (values == Values::kExtreme) {
    w->FillExtreme(random);
    // One magnitude, any signs: every q is 127 or -127.
    for (int64_t r = 0; r < reference::Rows(x->view()); ++r) {
      const float magnitude = quant::Canon(random->Wide(-50, 49));
      for (int64_t i = 0; i < x->view().dims[0]; ++i) {
        x->Row(r)[i] = r % 3 == 0 || random->Below(2) == 0 ? magnitude : -magnitude;
      }
    }
    return;
  }
  w->FillWeights(values != Values::kUniform && values != Values::kOutlier, random);
  x->FillRows(static_cast<Fill>(values), random);
}

// A packed matrix, or several; empty if the level does not pack the type.
class PackedTensor {
 public:
  PackedTensor(const KernelTable& table, const View& plain) : view_(plain) {
    const PackedShape shape = table.packed_shape(plain.type, plain.dims[0]);
    if (shape.group_rows == 0) return;
    const int64_t groups = (plain.dims[1] + shape.group_rows - 1) / shape.group_rows;
    view_.packed = true;
    view_.strides[1] = shape.group_bytes;
    view_.strides[2] = groups * shape.group_bytes;
    view_.strides[3] = view_.strides[2] * plain.dims[2];
    bytes_.assign(static_cast<size_t>(view_.strides[3] * plain.dims[3]) + kPackedAlignment,
                  std::byte{0xa5});
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    view_.data = bytes_.data() + (-address & (kPackedAlignment - 1));
    for (int64_t matrix = 0; matrix < plain.dims[2]; ++matrix) {
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t first = g * shape.group_rows;
        table.pack({plain.type, plain.dims[0], reference::RowAt(plain, first, matrix, 0),
                    plain.strides[1], std::min(shape.group_rows, plain.dims[1] - first)},
                   view_.data + matrix * view_.strides[2] + g * view_.strides[1]);
      }
    }
  }
  const View* view() const { return bytes_.empty() ? nullptr : &view_; }

 private:
  View view_;
  std::vector<std::byte> bytes_;
};

// Returns memory for quantised activations, filled with bytes other than zeros.
std::vector<ActivationChunk> MakeChunks(const View& x) {
  const auto count = static_cast<size_t>(ActivationChunksOf(reference::Rows(x), x.dims[0]));
  std::vector<ActivationChunk> chunks(count);
  std::memset(static_cast<void*>(chunks.data()), 0x5a, count * sizeof(ActivationChunk));
  return chunks;
}

std::vector<ActivationChunk> Quantized(const KernelTable& table, const View& x,
                                       ActivationReader reader, bool wanted) {
  if (!wanted) return {};
  std::vector<ActivationChunk> chunks = MakeChunks(x);
  table.quantize_activations(x, reader, chunks.data(),
                             {0, reference::Rows(x) * ActivationChunks(x.dims[0])});
  return chunks;
}

// Calls run with `w` as it is, and once more packed if the level packs it.
template <typename Run>
void WithLayouts(const KernelTable& table, const View& w, Run run) {
  run(w, "");
  const PackedTensor packed(table, w);
  if (packed.view() != nullptr) run(*packed.view(), "packed ");
}

std::string ShapeName(Type type, int64_t k, int64_t n, int64_t m, Values values, bool flush) {
  return std::string(quant::Traits(type).name) + " k=" + std::to_string(k) +
         " n=" + std::to_string(n) + " m=" + std::to_string(m) + " values " +
         std::to_string(static_cast<int>(values)) + (flush ? ", denormals flushed" : "");
}

// Describes the first place where two results differ, by row and feature.
std::string Difference(const Tensor& want, const Tensor& got) {
  for (int64_t r = 0; r < reference::Rows(want.view()); ++r) {
    for (int64_t i = 0; i < want.view().dims[0]; ++i) {
      const uint32_t a = quant::Bits(want.Row(r)[i]), b = quant::Bits(got.Row(r)[i]);
      if (a == b) continue;
      char text[128];
      std::snprintf(text, sizeof(text), ": row %lld, feature %lld: expected %08x, got %08x",
                    static_cast<long long>(r), static_cast<long long>(i), a, b);
      return text;
    }
  }
  return ": bytes outside of the result were written";
}

// Runs `features` in three ranges, out of order; some may be empty.
template <typename Run>
void RunSplit(int64_t features, Random* random, Run run) {
  const int64_t a = random->Below(features + 1);
  const int64_t b = a + random->Below(features - a + 1);
  run(Range{b, features});
  run(Range{0, a});
  run(Range{a, b});
}

// Chooses the cases that an extent compares.
class Selection {
 public:
  explicit Selection(Extent extent) : extent_(extent) {}
  // Returns whether to compare the next case. With kSome that is every fifth case. There are six
  // kinds of values, so the cases chosen for consecutive shapes have different values.
  bool TakesNext() { return extent_ == Extent::kAll || count_++ % 5 == 0; }

 private:
  const Extent extent_;
  int64_t count_ = 0;
};

// --- Activations

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

void CheckActivationRows(const KernelTable& table, ActivationReader reader, const Tensor& x,
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

void CheckActivations(const KernelTable& table, CheckReport* report) {
  Random random(1);
  for (const int64_t k : {32, 96, 256, 288, 1024}) {
    for (const Fill fill : quant::kAllFills) {
      // With 53 rows the second range has a whole group of 16, and parts of others.
      for (const int64_t rows : {5, 11, 19, 53}) {
        Tensor x(Type::kF32, {k, rows});
        x.FillRows(fill, &random);
        CheckActivationRows(table, ActivationReader::kMatmul, x, report);
        CheckActivationRows(table, ActivationReader::kMoeMatmul, x, report);
      }
    }
    // Halves: every second value lies between two integers.
    Tensor x(Type::kF32, {k, 2});
    for (int64_t i = 0; i < k; ++i) {
      x.Row(0)[i] = i % 32 == 31 ? 127.0f : 0.5f * static_cast<float>(random.Below(508) - 254);
      x.Row(1)[i] = -x.Row(0)[i];
    }
    CheckActivationRows(table, ActivationReader::kMatmul, x, report);
  }
}

// --- Matmul

// Returns a random way, and the caches of some processor, or smaller or larger ones than any has.
Tuning SomeTuning(Random* random) {
  constexpr Caches kSome[] = {
      {},     {1 << 10, 4 << 10}, {32 << 10, 256 << 10}, {48 << 10, 2 << 20}, {64 << 10, 48 << 10},
      {0, 0}, {-1, -1},           {1 << 20, 64 << 20}};
  constexpr Way kWays[] = {Way::kUsual, Way::kDirect, Way::kTiles};
  return {kSome[random->Next() % std::size(kSome)], kWays[random->Next() % std::size(kWays)]};
}

struct MatmulCase {
  Type type;
  int64_t k, n;
  Values values;
  bool bias;
  std::vector<int64_t> columns;  // each is tried; the last is the largest
};

void CheckMatmul(const KernelTable& table, const MatmulCase& c, bool flush, CheckReport* report) {
  Random random(static_cast<uint64_t>(c.type) * 1000003 + static_cast<uint64_t>(c.k) * 31 +
                static_cast<uint64_t>(c.values));
  const int64_t max_m = c.columns.back();
  Tensor w(c.type, {c.k, c.n}), x(Type::kF32, {c.k, max_m}), bias(Type::kF32, {c.n});
  FillInputs(c.values, &random, &w, &x);
  bias.FillRows(Fill::kWide, &random);
  const View* bias_view = c.bias ? &bias.view() : nullptr;
  Tensor all(Type::kF32, {c.n, max_m});
  reference::Matmul(w.view(), x.view(), bias_view, all.view(), {0, c.n});

  std::optional<quant::ScopedFlushToZero> flushed;
  if (flush) flushed.emplace();
  const auto check = [&](const View& weights, const char* layout, int64_t m) {
    Tensor want(Type::kF32, {c.n, m}), got(Type::kF32, {c.n, m});
    for (int64_t r = 0; r < m; ++r) std::copy_n(all.Row(r), c.n, want.Row(r));
    View columns = x.view();
    columns.dims[1] = m;
    const auto chunks =
        Quantized(table, columns, ActivationReader::kMatmul, quant::IsQuantized(c.type));
    RunSplit(c.n, &random, [&](Range features) {
      table.matmul(weights, columns, chunks.empty() ? nullptr : chunks.data(), bias_view,
                   got.view(), features, SomeTuning(&random));
    });
    report->Expect(want.bytes() == got.bytes(), [&] {
      return std::string(table.level) + ": matmul " + layout +
             ShapeName(c.type, c.k, c.n, m, c.values, flush) + Difference(want, got);
    });
  };
  WithLayouts(table, w.view(), [&](const View& weights, const char* layout) {
    for (const int64_t m : c.columns) check(weights, layout, m);
  });
}

// Compares gather_rows of packed weights: every row, twice.
void CheckPackedGather(const KernelTable& table, Type type, int64_t k, CheckReport* report) {
  constexpr int64_t kRows = 21;
  Random random(static_cast<uint64_t>(k));
  Tensor w(type, {k, kRows}), ids(Type::kI32, {2 * kRows + 2});
  w.FillWeights(true, &random);
  for (int32_t i = 0; i < 2 * kRows + 2; ++i) {
    reference::I32Row(ids.view(), 0)[i] = (i * 7 + 3) % (kRows + 1);  // one id is no row
  }
  const PackedTensor packed(table, w.view());
  if (packed.view() == nullptr) return;
  Tensor want(Type::kF32, {k, 2 * kRows + 2}), got(Type::kF32, {k, 2 * kRows + 2});
  reference::GatherRows(w.view(), ids.view(), want.view(), {0, 2 * kRows + 2});
  table.gather_rows(*packed.view(), ids.view(), got.view(), {0, 2 * kRows + 2});
  report->Expect(want.bytes() == got.bytes(), [&] {
    return std::string(table.level) + ": gather_rows packed " + quant::Traits(type).name +
           Difference(want, got);
  });
}

std::vector<int64_t> RowLengths(Type type) {
  switch (quant::Traits(type).block_values) {
    case 1:
      return {1, 7, 31, 32, 33, 100, 256, 257, 512, 545, 1056};
    case quant::kGroupValues:
      return {32, 64, 96, 128, 224, 256, 288, 512, 896, 1056, 2080, 4128};
    default:
      return {256, 512, 768, 2048, 2304, 4352};
  }
}

// Returns whether a type has f16 scales or values. Other types are compared with denormals flushed
// even if conversions of f16 heed that.
bool HasF16(Type type) { return type != Type::kF32 && type != Type::kBF16 && type != Type::kMXFP4; }

// Compares products with many columns: several row tiles and column groups, of which the last are
// not full; rows of less than a chunk, and longer ones up to those that a kernel expands in several
// passes.
void CheckManyColumns(const KernelTable& table, Type type, Selection* selection,
                      CheckReport* report) {
  const bool of_groups = quant::Traits(type).block_values == quant::kGroupValues;
  for (const int64_t k : RowLengths(type)) {
    for (const Values values : kAllValues) {
      if (k > 512 && values != Values::kWide && values != Values::kExtreme) continue;
      if (!selection->TakesNext()) continue;
      const int64_t n = k <= 512 ? 67 : 35;
      CheckMatmul(table, {type, k, n, values, k % 64 == 0, {16, 17, 31, 67}}, false, report);
    }
  }
  if (selection->TakesNext()) {
    CheckMatmul(table, {type, 256, 67, Values::kUniform, true, {64, 65, 512}}, false, report);
  }
  const int64_t two_passes = of_groups ? 12320 : 12544, three_passes = of_groups ? 21536 : 23296;
  if (selection->TakesNext()) {
    CheckMatmul(table, {type, two_passes, 19, Values::kWide, true, {67}}, false, report);
  }
  if (selection->TakesNext()) {
    CheckMatmul(table, {type, three_passes, 17, Values::kWide, true, {17, 33}}, false, report);
  }
}

void CheckMatmuls(const KernelTable& table, Extent extent, CheckReport* report) {
  Selection selection(extent);
  const bool f16_heeds_flushing = F16HeedsFlushing(table);
  for (const Type type : quant::kWeightTypes) {
    for (const int64_t k : RowLengths(type)) {
      for (const Values values : kAllValues) {
        if (!selection.TakesNext()) continue;
        const bool every = values == Values::kUniform && k <= 512;
        MatmulCase c{type, k, 19, values, values != Values::kZero, {1, 3, 5, 7}};
        if (!quant::IsQuantized(type)) c.columns.push_back(17);  // by a tile
        if (quant::IsQuantized(type) && values == Values::kWide) c.columns.push_back(33);
        if (every) c.columns = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
        CheckMatmul(table, c, false, report);
        if (!HasF16(type) || !f16_heeds_flushing) CheckMatmul(table, c, true, report);
      }
    }
    const int64_t k = quant::Traits(type).block_values == 1 ? 70 : 256;
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 33, 64, 131}) {
      CheckMatmul(table, {type, k, n, Values::kOutlier, n % 2 == 0, {1, 4, 6, 33, 38}}, false,
                  report);
    }
    // More columns than one pass takes.
    CheckMatmul(table, {type, k, 9, Values::kUniform, true, {63, 64, 65, 68, 131}}, false, report);
    if (quant::IsQuantized(type)) CheckManyColumns(table, type, &selection, report);
  }
}

// --- Experts

void CheckMoe(const KernelTable& table, Type type, int64_t k, int64_t tokens, int64_t x_slots,
              CheckReport* report) {
  constexpr int64_t kN = 11, kExperts = 5, kUsed = 3;
  Random random(static_cast<uint64_t>(type) + static_cast<uint64_t>(tokens));
  Tensor w(type, {k, kN, kExperts}), bias(Type::kF32, {kN, kExperts});
  Tensor x(Type::kF32, {k, x_slots, tokens}), ids(Type::kI32, {kUsed, tokens});
  w.FillWeights(false, &random);
  x.FillRows(Fill::kUniform, &random);
  bias.FillRows(Fill::kUniform, &random);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t s = 0; s < kUsed; ++s) {  // -1 and kExperts are no experts
      // Nearly all tokens choose expert 2: its columns lie one after the other.
      const int64_t any = random.Below(kExperts + 2) - 1;
      reference::I32Row(ids.view(), t)[s] = static_cast<int32_t>(s == 0 && t % 19 != 18 ? 2 : any);
    }
  }
  if (tokens > 16) {  // one slot alone has the last expert: a column of many interleaved ones
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t s = 0; s < kUsed; ++s) {
        int32_t& id = reference::I32Row(ids.view(), t)[s];
        if (id == kExperts - 1) id = 0;
      }
    }
    reference::I32Row(ids.view(), tokens / 2)[1] = kExperts - 1;
  }
  const View* bias_view = tokens % 2 == 0 ? nullptr : &bias.view();
  Tensor want(Type::kF32, {kN, kUsed, tokens});
  reference::MoeMatmul(w.view(), x.view(), ids.view(), bias_view, want.view(), {0, kN});
  const auto chunks =
      Quantized(table, x.view(), ActivationReader::kMoeMatmul, quant::IsQuantized(type));
  WithLayouts(table, w.view(), [&](const View& weights, const char* layout) {
    Tensor got(Type::kF32, {kN, kUsed, tokens});
    RunSplit(kN, &random, [&](Range features) {
      table.moe_matmul(weights, x.view(), chunks.empty() ? nullptr : chunks.data(), ids.view(),
                       bias_view, got.view(), features, SomeTuning(&random));
    });
    report->Expect(want.bytes() == got.bytes(), [&] {
      return std::string(table.level) + ": moe_matmul " + layout +
             ShapeName(type, k, kN, tokens, Values::kUniform, false) + Difference(want, got);
    });
  });
}

}  // namespace

void CheckMatrixOps(const KernelTable& table, Extent extent, CheckReport* report) {
  CheckActivations(table, report);
  {
    const quant::ScopedFlushToZero flushed;
    CheckActivations(table, report);
  }
  CheckMatmuls(table, extent, report);
  for (const Type type : quant::kWeightTypes) {
    const int64_t block = quant::Traits(type).block_values;
    const int64_t k = block == 1 ? 45 : block * (block == quant::kGroupValues ? 12 : 3);
    CheckPackedGather(table, type, block * 11, report);
    for (const int64_t tokens : {1, 2, 7, 120}) {
      CheckMoe(table, type, k, tokens, 1, report);
      CheckMoe(table, type, k, tokens, 3, report);
    }
  }
}

}  // namespace trine::cpu_kernels
