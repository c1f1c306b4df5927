#include <algorithm>
#include <optional>
#include <string_view>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/check/product_tensors.h"
#include "kernels/cpu/product/activation_records.h"
#include "kernels/quant/test_util.h"

namespace trine::cpu_kernels {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;

enum class Values { kUniform, kWide, kTiny, kZero, kOutlier, kExtreme };
constexpr Values kAllValues[] = {Values::kUniform, Values::kWide,    Values::kTiny,
                                 Values::kZero,    Values::kOutlier, Values::kExtreme};

void FillInputs(Values values, Random* random, GappedTensor* w, GappedTensor* x) {
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
  // Returns whether to compare the next case. With kSome that is every eleventh case. There are six
  // kinds of values, so the cases chosen for consecutive shapes have different values.
  bool TakesNext() { return extent_ == Extent::kAll || count_++ % 11 == 0; }

 private:
  const Extent extent_;
  int64_t count_ = 0;
};

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
  GappedTensor w(c.type, {c.k, c.n}), x(Type::kF32, {c.k, max_m}), bias(Type::kF32, {c.n});
  FillInputs(c.values, &random, &w, &x);
  bias.FillRows(Fill::kWide, &random);
  const View* bias_view = c.bias ? &bias.view() : nullptr;
  GappedTensor all(Type::kF32, {c.n, max_m});
  reference::Matmul(w.view(), x.view(), bias_view, all.view(), {0, c.n});

  std::optional<quant::ScopedFlushToZero> flushed;
  if (flush) flushed.emplace();
  const auto check = [&](const View& weights, const char* layout, int64_t m) {
    GappedTensor want(Type::kF32, {c.n, m}), got(Type::kF32, {c.n, m});
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
  GappedTensor w(type, {k, kRows}), ids(Type::kI32, {2 * kRows + 2});
  w.FillWeights(true, &random);
  for (int32_t i = 0; i < 2 * kRows + 2; ++i) {
    reference::I32Row(ids.view(), 0)[i] = (i * 7 + 3) % (kRows + 1);  // one id is no row
  }
  const PackedTensor packed(table, w.view());
  if (packed.view() == nullptr) return;
  GappedTensor want(Type::kF32, {k, 2 * kRows + 2}), got(Type::kF32, {k, 2 * kRows + 2});
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

// The scalar level computes slot by slot, and asks for no ways.
bool IsReference(const KernelTable& table) { return std::string_view(table.level) == "reference"; }

// Chooses a random way for each expert. Counts the choices, and the ends that are missing.
struct RandomWays {
  Random* random;
  int chosen = 0, open = 0;

  ExpertWays Table() {
    return {this,
            [](void* self, int64_t) {
              auto& ways = *static_cast<RandomWays*>(self);
              ++ways.chosen;
              ++ways.open;
              return SomeTuning(ways.random).way;
            },
            [](void* self) { --static_cast<RandomWays*>(self)->open; }};
  }
};

void CheckMoe(const KernelTable& table, Type type, int64_t k, int64_t tokens, int64_t x_slots,
              CheckReport* report, int64_t experts = 5) {
  constexpr int64_t kN = 11, kUsed = 3;
  Random random(static_cast<uint64_t>(type) + static_cast<uint64_t>(tokens));
  GappedTensor w(type, {k, kN, experts}), bias(Type::kF32, {kN, experts});
  GappedTensor x(Type::kF32, {k, x_slots, tokens}), ids(Type::kI32, {kUsed, tokens});
  w.FillWeights(false, &random);
  x.FillRows(Fill::kUniform, &random);
  bias.FillRows(Fill::kUniform, &random);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t s = 0; s < kUsed; ++s) {  // -1 and experts are no experts
      // Nearly all tokens choose expert 2: its columns lie one after the other.
      const int64_t any = random.Below(experts + 2) - 1;
      reference::I32Row(ids.view(), t)[s] = static_cast<int32_t>(s == 0 && t % 19 != 18 ? 2 : any);
    }
  }
  if (tokens > 16) {  // one slot alone has the last expert: a column of many interleaved ones
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t s = 0; s < kUsed; ++s) {
        int32_t& id = reference::I32Row(ids.view(), t)[s];
        if (id == experts - 1) id = 0;
      }
    }
    reference::I32Row(ids.view(), tokens / 2)[1] = experts - 1;
  }
  const View* bias_view = tokens % 2 == 0 ? nullptr : &bias.view();
  GappedTensor want(Type::kF32, {kN, kUsed, tokens});
  reference::MoeMatmul(w.view(), x.view(), ids.view(), bias_view, want.view(), {0, kN});
  const auto chunks =
      Quantized(table, x.view(), ActivationReader::kMoeMatmul, quant::IsQuantized(type));
  WithLayouts(table, w.view(), [&](const View& weights, const char* layout) {
    GappedTensor got(Type::kF32, {kN, kUsed, tokens});
    RandomWays ways{&random};
    const ExpertWays each = ways.Table();
    bool asked = false;
    RunSplit(kN, &random, [&](Range features) {
      Tuning tuning = SomeTuning(&random);
      if (random.Below(2) == 0) tuning.experts = &each;
      asked |= tuning.experts != nullptr;
      table.moe_matmul(weights, x.view(), chunks.empty() ? nullptr : chunks.data(), ids.view(),
                       bias_view, got.view(), features, tuning);
    });
    // Two tokens share expert 2, so that a way is chosen for it.
    const bool chooses = asked && tokens > 1 && !IsReference(table);
    report->Expect(
        want.bytes() == got.bytes() && ways.open == 0 && (!chooses || ways.chosen > 0), [&] {
          return std::string(table.level) + ": moe_matmul " + layout +
                 ShapeName(type, k, kN, tokens, Values::kUniform, false) + Difference(want, got);
        });
  });
}

}  // namespace

void CheckProducts(const KernelTable& table, Extent extent, CheckReport* report) {
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
  // More experts, and more slots of tokens, than are looked at together.
  CheckMoe(table, Type::kQ8_0, 32, 90, 1, report, 300);
  CheckMoe(table, Type::kQ8_0, 32, 2800, 1, report);
}

}  // namespace trine::cpu_kernels
