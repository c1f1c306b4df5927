#include "kernels/cpu/levels/self_test.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "kernels/cpu/levels/levels.h"
#include "kernels/reference/test_tensor.h"

namespace trine::cpu_kernels {
namespace {

using reference::Fill;
using reference::Random;
using reference::Tensor;
using reference::Type;

void Clear(const Tensor& t) { std::fill_n(t.view().data, t.bytes().size(), std::byte{0}); }

// Returns whether run(table, range over `units`) leaves the same bytes in dst as the reference.
template <typename Run>
bool Equal(const KernelTable& table, Tensor* dst, int64_t units, Run run) {
  Clear(*dst);
  run(kReferenceLevel, Range{0, units});
  const std::vector<std::byte> expected = dst->bytes();
  Clear(*dst);
  run(table, Range{0, units / 2});
  run(table, Range{units / 2, units});
  return expected == dst->bytes();
}

// A matrix packed for the level, with the last group filled up with zeros; empty if the level does
// not pack the type.
class PackedWeights {
 public:
  PackedWeights(const KernelTable& table, const View& plain) : view_(plain) {
    const PackedShape shape = table.packed_shape(plain.type, plain.dims[0]);
    if (shape.group_rows == 0) return;
    const int64_t rows = plain.dims[1], groups = (rows + shape.group_rows - 1) / shape.group_rows;
    bytes_.resize(static_cast<size_t>(groups * shape.group_bytes + kPackedAlignment));
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    view_.data = bytes_.data() + (-address & (kPackedAlignment - 1));
    view_.packed = true;
    view_.strides[1] = shape.group_bytes;
    view_.strides[2] = view_.strides[3] = groups * shape.group_bytes;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = g * shape.group_rows;
      table.pack({plain.type, plain.dims[0], reference::RowAt(plain, first), plain.strides[1],
                  std::min(shape.group_rows, rows - first)},
                 view_.data + g * shape.group_bytes);
    }
  }
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  const View* view() const { return bytes_.empty() ? nullptr : &view_; }

 private:
  View view_;
  std::vector<std::byte> bytes_;
};

// The products of one matrix. The reference computes them only once, because the result of a column
// depends neither on the other columns nor on the layout of the weights. The columns repeat, so the
// reference has little to compute.
class Products {
 public:
  Products(const KernelTable& table, const View& plain, Random* random)
      : table_(table),
        x_(Type::kF32, {plain.dims[0], kColumns}),
        bias_(Type::kF32, {plain.dims[1]}),
        y_(Type::kF32, {plain.dims[1], kColumns}) {
    const int64_t k = plain.dims[0], n = plain.dims[1];
    for (int64_t c = 0; c < kColumns; ++c) {
      const Fill fill = c % 2 == 0 ? Fill::kUniform : Fill::kWide;
      float* column = reference::F32Row(x_, c);
      for (int64_t i = 0; i < k; ++i) {
        column[i] = c < kDistinct ? quant::FillValue(fill, random)
                                  : reference::F32Row(x_, c % kDistinct)[i];
      }
    }
    bias_.FillWith(Fill::kUniform, random);
    View x = x_, y = y_;
    x.dims[1] = y.dims[1] = kDistinct;
    kReferenceLevel.matmul(plain, x, nullptr, &bias_.view(), y, {0, n}, {});
    for (int64_t c = kDistinct; c < kColumns; ++c) {
      std::copy_n(reference::F32Row(y_, c % kDistinct), n, reference::F32Row(y_, c));
    }
    expected_ = y_.bytes();
  }

  // Tries each kind of product that a level may have: one column, a few, more than a tile holds.
  bool AreEqual(const View& w) { return AreEqual(w, 1) && AreEqual(w, 5) && AreEqual(w, kColumns); }

 private:
  static constexpr int64_t kColumns = 17, kDistinct = 5;

  bool AreEqual(const View& w, int64_t columns) {
    View x = x_, y = y_;
    x.dims[1] = y.dims[1] = columns;
    const int64_t k = w.dims[0], n = w.dims[1];
    std::vector<ActivationChunk> chunks;
    if (quant::IsQuantized(w.type)) {
      chunks.resize(static_cast<size_t>(ActivationChunksOf(columns, k)));
      table_.quantize_activations(x, ActivationReader::kMatmul, chunks.data(),
                                  {0, columns * ActivationChunks(k)});
    }
    const auto is_equal = [&](Way way) {
      Clear(y_);
      for (const Range features : {Range{0, n / 2}, Range{n / 2, n}}) {
        table_.matmul(w, x, chunks.empty() ? nullptr : chunks.data(), &bias_.view(), y, features,
                      {{}, way});
      }
      return std::equal(expected_.begin(), expected_.begin() + columns * y.strides[1],
                        y_.bytes().begin());
    };
    if (!table_.matmul_has_ways(w, columns)) return is_equal(Way::kUsual);
    return is_equal(Way::kDirect) && is_equal(Way::kTiles);
  }

  const KernelTable& table_;
  Tensor x_, bias_, y_;
  std::vector<std::byte> expected_;
};

bool GatherIsEqual(const KernelTable& table, const View& w, const View& plain) {
  Tensor ids(Type::kI32, {4}), y(Type::kF32, {w.dims[0], 4});
  ids.Set({2, 0, -1, 1});
  return Equal(table, &y, 4, [&](const KernelTable& kernels, Range range) {
    kernels.gather_rows(&kernels == &table ? w : plain, ids, y, range);
  });
}

// Compares the operations that read weights, plain and packed. Returns the first to differ, or "".
std::string FirstWeightDifference(const KernelTable& table, Type type, Random* random) {
  constexpr int64_t kFeatures = 18;  // two groups or three, the last one not full
  const int64_t block = quant::Traits(type).block_values;
  // Types of 32-value blocks get a chunk and half of one, as rows of common models end with half.
  Tensor plain(type, {block == 1 ? 75 : block * (block == 32 ? 12 : 2), kFeatures});
  plain.FillWeights(false, random);
  const PackedWeights packed(table, plain);
  Products products(table, plain, random);
  for (const View* w : {&plain.view(), packed.view()}) {
    if (w == nullptr) continue;
    const std::string of =
        std::string(w->packed ? " of packed " : " of ") + quant::Traits(type).name;
    if (!products.AreEqual(*w)) return "matmul" + of;
    if (!GatherIsEqual(table, *w, plain)) return "gather_rows" + of;
  }
  return "";
}

bool AttentionIsEqual(const KernelTable& table, Type cache, Random* random) {
  constexpr int64_t kHeadDim = 64, kHeads = 4, kKvHeads = 2, kTokens = 5, kPositions = 40;
  Tensor k(cache, {kHeadDim, 16, kKvHeads, 3}), v(cache, {kHeadDim, 16, kKvHeads, 3});
  Tensor table_of_blocks(Type::kI32, {3, 1}), q_offsets(Type::kI32, {2}), lengths(Type::kI32, {1});
  Tensor source(Type::kF32, {kHeadDim, kKvHeads, kPositions}), slots(Type::kI32, {kPositions});
  Tensor q(Type::kF32, {kHeadDim, kHeads, kTokens}), y(Type::kF32, {kHeadDim, kHeads, kTokens});
  table_of_blocks.Set({1, 2, 0});
  q_offsets.Set({0, int32_t{kTokens}});
  lengths.Set({int32_t{kPositions}});
  source.FillWith(Fill::kUniform, random);
  q.FillWith(Fill::kUniform, random);
  for (int32_t i = 0; i < kPositions; ++i) {
    reinterpret_cast<int32_t*>(slots.view().data)[i] = (i + 16) % 48;
  }
  for (Tensor* to : {&k, &v}) {
    const bool stored =
        Equal(table, to, kKvHeads * kPositions, [&](const KernelTable& kernels, Range range) {
          kernels.kv_store(source, slots, *to, range);
        });
    if (!stored) return false;
  }
  const reference::AttentionInputs inputs = {q, k, v, table_of_blocks, q_offsets, lengths, nullptr};
  reference::AttentionParams params;
  params.scale = 0.125f;
  return Equal(table, &y, kHeads * kTokens, [&](const KernelTable& kernels, Range range) {
    kernels.attention(inputs, params, y, range);
  });
}

// Compares the operations of one input, or of two of one shape. Returns the first to differ, or "".
std::string FirstElementwiseDifference(const KernelTable& table, Random* random) {
  constexpr int64_t kN = 75, kRows = 3;
  Tensor a(Type::kF32, {kN, kRows}), b(Type::kF32, {kN, kRows}), y(Type::kF32, {kN, kRows});
  Tensor weight(Type::kF32, {kN}), bias(Type::kF32, {kN}), angles(Type::kF32, {32, kRows});
  Tensor heads(Type::kF32, {48, 2, kRows}), turned(Type::kF32, {48, 2, kRows});
  for (Tensor* t : {&a, &b, &weight, &bias, &heads}) t->FillWith(Fill::kWide, random);
  angles.FillWith(Fill::kUniform, random);
  const auto equal = [&](auto run) { return Equal(table, &y, kRows, run); };
  using K = const KernelTable&;
  if (!equal([&](K k, Range r) { k.copy(a, y, r); })) return "copy";
  if (!equal([&](K k, Range r) { k.add(a, b, y, r); })) return "add";
  if (!equal([&](K k, Range r) { k.mul(a, b, y, r); })) return "mul";
  if (!equal([&](K k, Range r) { k.scale(a, 0.3f, y, r); })) return "scale";
  if (!equal([&](K k, Range r) { k.softcap(a, 30.0f, y, r); })) return "softcap";
  if (!equal([&](K k, Range r) { k.rms_norm(a, &weight.view(), 1e-5f, y, r); })) return "rms_norm";
  if (!equal([&](K k, Range r) { k.layer_norm(a, &weight.view(), &bias.view(), 1e-5f, y, r); })) {
    return "layer_norm";
  }
  using reference::ActivationKind;
  for (const auto kind : {ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kRelu,
                          ActivationKind::kTanh}) {
    if (!equal([&](K k, Range r) { k.activation(a, kind, y, r); })) return "activation";
  }
  using reference::GluKind;
  for (const auto kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
    reference::GluParams params;
    params.kind = kind;
    if (!equal([&](K k, Range r) { k.glu(a, b, params, y, r); })) return "glu";
  }
  for (const auto mode : {reference::RopeMode::kInterleaved, reference::RopeMode::kHalves}) {
    if (!Equal(table, &turned, 2 * kRows,
               [&](K k, Range r) { k.rope(heads, angles, mode, turned, r); })) {
      return "rope";
    }
  }
  return "";
}

}  // namespace

std::string RunSelfTest(const KernelTable& table) {
  Random random(20240229);
  for (const Type type : quant::kWeightTypes) {
    const std::string difference = FirstWeightDifference(table, type, &random);
    if (!difference.empty()) return difference;
  }
  for (const Type cache : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV}) {
    if (!AttentionIsEqual(table, cache, &random)) {
      return std::string("attention over ") + quant::Traits(cache).name;
    }
  }
  return FirstElementwiseDifference(table, &random);
}

}  // namespace trine::cpu_kernels
