#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "kernels/cpu/check/case_runner.h"
#include "kernels/cpu/check/check.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::cpu_kernels {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using reference::ActivationKind;
using reference::GluKind;
using reference::RopeMode;
using reference::Rows;
using reference::Tensor;

struct Shape {
  int64_t width;
  int64_t padding;  // bytes after each row: rows start at any multiple of four

  std::string Name(const char* operation) const {
    return std::string(operation) + ", width " + std::to_string(width) + ", padding " +
           std::to_string(padding);
  }
};

// Fills rows with canonical values, each row with its own kind of values.
void FillRows(const Tensor& tensor, Random* random) {
  for (int64_t r = 0; r < Rows(tensor); ++r) {
    const Fill fill = quant::kAllFills[random->Below(std::size(quant::kAllFills))];
    for (int64_t i = 0; i < tensor.view().dims[0]; ++i) {
      tensor.Row(r)[i] = quant::FillValue(fill, random);
    }
  }
}

// --- Element by element

void CheckPairs(Shape shape, Random* random, CaseRunner* runner) {
  const Tensor a(Type::kF32, {shape.width, 3, 2}, shape.padding);
  const Tensor full(Type::kF32, {shape.width, 3, 2}, shape.padding + 4);
  const Tensor row(Type::kF32, {shape.width});
  const Tensor column(Type::kF32, {1, 3, 2});
  const Tensor plane(Type::kF32, {shape.width, 1, 2});
  const Tensor dst(Type::kF32, {shape.width, 3, 2}, shape.padding);
  for (const Tensor* tensor : {&a, &full, &row, &column, &plane, &dst}) FillRows(*tensor, random);
  for (const Tensor* b : {&full, &row, &column, &plane}) {
    runner->Compare(shape.Name("add"), dst, 6,
                    [&](const auto& k, Range r) { k.add(a, *b, dst, r); });
    runner->Compare(shape.Name("mul"), dst, 6,
                    [&](const auto& k, Range r) { k.mul(a, *b, dst, r); });
    runner->Compare(shape.Name("add in place"), dst, 6,
                    [&](const auto& k, Range r) { k.add(dst, *b, dst, r); });
  }
  runner->Compare(shape.Name("mul into the second operand"), dst, 6,
                  [&](const auto& k, Range r) { k.mul(a, dst, dst, r); });
}

void CheckValues(Shape shape, Random* random, CaseRunner* runner) {
  const Tensor x(Type::kF32, {shape.width, 7}, shape.padding);
  const Tensor dst(Type::kF32, {shape.width, 7}, 2 * shape.padding);
  FillRows(x, random);
  for (float factor : {0.125f, -3.7f, 0x1p+40f, 0x1p-40f, 0.0f}) {
    runner->Compare(shape.Name("scale"), dst, 7,
                    [&](const auto& k, Range r) { k.scale(x, factor, dst, r); });
  }
  for (float cap : {30.0f, 0.3f, 0x1p+50f, 0x1p-50f}) {
    runner->Compare(shape.Name("softcap"), dst, 7,
                    [&](const auto& k, Range r) { k.softcap(x, cap, dst, r); });
  }
  for (ActivationKind kind : {ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kRelu,
                              ActivationKind::kTanh}) {
    runner->Compare(shape.Name("activation"), dst, 7,
                    [&](const auto& k, Range r) { k.activation(x, kind, dst, r); });
    runner->Compare(shape.Name("activation in place"), x, 7,
                    [&](const auto& k, Range r) { k.activation(x, kind, x, r); });
  }
}

void CheckGlu(Shape shape, Random* random, CaseRunner* runner) {
  const Tensor gate(Type::kF32, {shape.width, 6}, shape.padding);
  const Tensor up(Type::kF32, {shape.width, 6}, 12);
  const Tensor dst(Type::kF32, {shape.width, 6}, shape.padding);
  FillRows(gate, random);
  FillRows(up, random);
  for (GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
    const reference::GluParams params = {.kind = kind, .alpha = 1.702f, .limit = 0.75f};
    runner->Compare(shape.Name("glu"), dst, 6,
                    [&](const auto& k, Range r) { k.glu(gate, up, params, dst, r); });
    runner->Compare(shape.Name("glu into the gate"), gate, 6,
                    [&](const auto& k, Range r) { k.glu(gate, up, params, gate, r); });
  }
}

// Sums over experts, with a weight for each expert and token.
void CheckMoeCombine(Shape shape, Random* random, CaseRunner* runner) {
  for (const int64_t used : {1, 2, 8}) {
    const Tensor x(Type::kF32, {shape.width, used, 3}, shape.padding);
    const Tensor weights(Type::kF32, {used, 3}, shape.padding);
    const Tensor dst(Type::kF32, {shape.width, 3}, shape.padding);
    FillRows(x, random);
    FillRows(weights, random);
    runner->Compare(shape.Name("moe_combine"), dst, 3,
                    [&](const auto& k, Range r) { k.moe_combine(x, weights, dst, r); });
  }
}

// --- Norms, rope

void CheckNorms(Shape shape, Random* random, CaseRunner* runner) {
  const Tensor x(Type::kF32, {shape.width, 5, 2}, shape.padding);
  const Tensor weight(Type::kF32, {shape.width}), bias(Type::kF32, {shape.width});
  const Tensor dst(Type::kF32, {shape.width, 5, 2}, 8);
  for (const Tensor* tensor : {&x, &weight, &bias}) FillRows(*tensor, random);
  const View* w = &weight.view();
  const View* b = &bias.view();
  for (float eps : {1e-5f, 0.0f}) {
    for (const View* optional_w : {w, static_cast<const View*>(nullptr)}) {
      runner->Compare(shape.Name("rms_norm"), dst, 10,
                      [&](const auto& k, Range r) { k.rms_norm(x, optional_w, eps, dst, r); });
      for (const View* optional_b : {b, static_cast<const View*>(nullptr)}) {
        runner->Compare(shape.Name("layer_norm"), dst, 10, [&](const auto& k, Range r) {
          k.layer_norm(x, optional_w, optional_b, eps, dst, r);
        });
      }
    }
  }
  runner->Compare(shape.Name("rms_norm in place"), x, 10,
                  [&](const auto& k, Range r) { k.rms_norm(x, w, 1e-6f, x, r); });
  runner->Compare(shape.Name("layer_norm in place"), x, 10,
                  [&](const auto& k, Range r) { k.layer_norm(x, w, b, 1e-6f, x, r); });
}

void CheckRope(Shape shape, Random* random, CaseRunner* runner) {
  const Tensor x(Type::kF32, {shape.width, 3, 2}, shape.padding);
  const Tensor dst(Type::kF32, {shape.width, 3, 2}, 4);
  FillRows(x, random);
  for (int64_t pairs : {shape.width / 2, shape.width / 3}) {
    if (pairs == 0) continue;
    const Tensor table(Type::kF32, {2 * pairs, 2}, shape.padding);
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t i = 0; i < 2 * pairs; ++i) table.Row(r)[i] = quant::Canon(random->Uniform());
    }
    for (RopeMode mode : {RopeMode::kInterleaved, RopeMode::kHalves}) {
      runner->Compare(shape.Name("rope"), dst, 6,
                      [&](const auto& k, Range r) { k.rope(x, table, mode, dst, r); });
      runner->Compare(shape.Name("rope in place"), x, 6,
                      [&](const auto& k, Range r) { k.rope(x, table, mode, x, r); });
    }
  }
}

// --- Moving data

void CheckCopy(Shape shape, Random* random, CaseRunner* runner) {
  const Type types[] = {Type::kF32, Type::kF16, Type::kBF16};
  const Tensor values(Type::kF32, {shape.width, 6});
  FillRows(values, random);
  for (Type from : types) {
    const Tensor src(from, {shape.width, 6}, shape.padding);
    reference::Copy(values, src, reference::AllRows(src));
    for (Type to : types) {
      const Tensor dst(to, {shape.width, 6}, shape.padding);
      runner->Compare(
          shape.Name("copy"), dst, 6, [&](const auto& k, Range r) { k.copy(src, dst, r); },
          from == Type::kF16 || to == Type::kF16);
    }
  }
}

void CheckKvStore(Shape shape, Random* random, CaseRunner* runner) {
  constexpr int64_t kTokens = 6, kKvHeads = 2;
  const Tensor src(Type::kF32, {shape.width, kKvHeads, kTokens}, shape.padding);
  FillRows(src, random);
  for (int64_t r = 0; r < Rows(src); ++r) {  // either side of the floor, and of the f16 range
    src.Row(r)[0] = random->Wide(-32, -29);
    src.Row(r)[shape.width - 1] = random->Wide(13, 17);
  }
  Tensor slots(Type::kI32, {kTokens});
  slots.Set({5, -1, 0, 8, 7, 2});  // there are eight slots
  for (Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV}) {
    if (type == Type::kQ8_KV && shape.width % 32 != 0) continue;
    const Tensor cache(type, {shape.width, 4, kKvHeads, 2}, shape.padding);
    runner->Compare(
        shape.Name("kv_store"), cache, Rows(src),
        [&](const auto& k, Range r) { k.kv_store(src, slots, cache, r); }, type == Type::kF16);
  }
}

void CheckGatherRows(Random* random, CaseRunner* runner) {
  Tensor ids(Type::kI32, {5});
  ids.Set({2, -1, 0, 3, 1});  // there are three rows
  for (Type type : quant::kWeightTypes) {
    const int64_t block = quant::Traits(type).block_values;
    for (int64_t width : {block, 3 * block, 33 * block}) {
      for (bool any_scale : {false, true}) {
        Tensor table(type, {width, 3}, 4);
        table.FillWeights(any_scale, random);
        const Tensor dst(Type::kF32, {width, 5}, 4);
        runner->Compare(
            std::string("gather_rows of ") + quant::Traits(type).name, dst, 5,
            [&](const auto& k, Range r) { k.gather_rows(table, ids, dst, r); }, type == Type::kF16);
      }
    }
  }
}

// Converts every f16 to f32, and back from both sides of every rounding boundary.
void CheckHalves(CaseRunner* runner) {
  constexpr int64_t kHalves = 0x7c00;
  const Tensor halves(Type::kF16, {kHalves, 2}), floats(Type::kF32, {kHalves, 2});
  for (int64_t i = 0; i < kHalves; ++i) {
    reinterpret_cast<uint16_t*>(RowAt(halves, 0))[i] = static_cast<uint16_t>(i);
    reinterpret_cast<uint16_t*>(RowAt(halves, 1))[i] = static_cast<uint16_t>(i | 0x8000);
  }
  runner->Compare(
      "every f16 to f32", floats, 2, [&](const auto& k, Range r) { k.copy(halves, floats, r); },
      true);
  for (int32_t nudge : {-1, 0, 1}) {
    const Tensor near(Type::kF32, {kHalves, 2});
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t i = 0; i + 1 < kHalves; ++i) {
        const float between = 0.5f * (floats.Row(r)[i] + floats.Row(r)[i + 1]);
        const uint32_t bits = quant::Bits(between) + static_cast<uint32_t>(nudge);
        near.Row(r)[i] = quant::Canon(quant::FromBits(bits));
      }
    }
    for (Type type : {Type::kF16, Type::kBF16}) {
      const Tensor dst(type, {kHalves, 2});
      runner->Compare(
          "f32 between halves", dst, 2, [&](const auto& k, Range r) { k.copy(near, dst, r); },
          type == Type::kF16);
    }
  }
}

uint32_t WordAt(const std::vector<std::byte>& bytes, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min<size_t>(sizeof(word), bytes.size() - at));
  return word;
}

}  // namespace

void CheckFloatOps(const KernelTable& table, CheckReport* report) {
  CaseRunner runner(table, report);
  Random random(1);
  for (int64_t width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 100, 257, 1056}) {
    for (int64_t padding : {0, 4, 20}) {
      const Shape shape = {width, padding};
      CheckPairs(shape, &random, &runner);
      CheckValues(shape, &random, &runner);
      CheckGlu(shape, &random, &runner);
      CheckMoeCombine(shape, &random, &runner);
      CheckNorms(shape, &random, &runner);
      CheckRope(shape, &random, &runner);
      CheckCopy(shape, &random, &runner);
      CheckKvStore(shape, &random, &runner);
    }
  }
  CheckGatherRows(&random, &runner);
  CheckHalves(&runner);
}

std::string CaseRunner::Describe(const std::string& what, bool flush,
                                 const std::vector<std::byte>& expected,
                                 const std::vector<std::byte>& found) {
  const auto difference = std::mismatch(expected.begin(), expected.end(), found.begin());
  const size_t at = static_cast<size_t>(difference.first - expected.begin()) / 4 * 4;
  char words[80];
  std::snprintf(words, sizeof(words), ": byte %zu: found %08" PRIx32 ", expected %08" PRIx32, at,
                WordAt(found, at), WordAt(expected, at));
  return what + (flush ? ", denormals flushed" : "") + words;
}

bool F16HeedsFlushing(const KernelTable& table) {
  const reference::Tensor half(quant::Type::kF16, {1}), value(quant::Type::kF32, {1});
  *reinterpret_cast<uint16_t*>(half.view().data) = 1;
  const quant::ScopedFlushToZero flush_to_zero;
  table.copy(half, value, {0, 1});
  return value.Row(0)[0] == 0.0f;
}

}  // namespace trine::cpu_kernels
