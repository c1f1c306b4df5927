#include "kernels/vulkan/data_movement.h"

#include "kernels/vulkan/flatten.h"
#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {
namespace {

using quant::Type;

// As in copy.comp.
enum class CopyForm : uint32_t { kWord, kHalf, kByte, kF32, kF16, kBf16 };

struct Element {
  CopyForm form;
  int64_t bytes;
};

Element ConvertedElement(Type type) {
  if (type == Type::kF16) return {CopyForm::kF16, 2};
  if (type == Type::kBF16) return {CopyForm::kBf16, 2};
  return {CopyForm::kF32, 4};
}

// The largest unit that rows of `row_bytes` can be moved in.
Element MovedElement(const TensorView& x, const TensorView& y, int64_t row_bytes) {
  for (const Element& element : {Element{CopyForm::kWord, 4}, Element{CopyForm::kHalf, 2}}) {
    const int64_t unit = element.bytes;
    if (row_bytes % unit == 0 && IsWhole(x, unit) && IsWhole(y, unit)) return element;
  }
  return {CopyForm::kByte, 1};
}

}  // namespace

KernelRun CopyRun(const TensorView& x, const TensorView& y, uint32_t workgroup) {
  TensorView from_view = x, to_view = y;
  std::array<int64_t, 4> dims = y.dims;
  Element from = ConvertedElement(x.type), to = ConvertedElement(y.type);
  if (x.type == y.type) {
    const quant::TypeTraits traits = quant::Traits(x.type);
    const int64_t row_bytes = dims[0] / traits.block_values * traits.block_bytes;
    from = to = MovedElement(x, y, row_bytes);
    dims[0] = row_bytes / from.bytes;
  }
  const auto total = static_cast<uint64_t>(dims[0] * Rows(y));
  Flatten(&dims, {{&from_view, from.bytes}, {&to_view, to.bytes}});
  KernelRun run;
  run.shader = &shaders::copy;
  run.constants = {workgroup, static_cast<uint32_t>(from.form), static_cast<uint32_t>(to.form)};
  run.push = {Word(dims[0]), Word(dims[1]), Word(dims[2]), static_cast<uint32_t>(total)};
  AppendPlace(from_view, 4, from.bytes, &run.push);
  AppendPlace(to_view, 4, to.bytes, &run.push);
  run.groups = {CappedGroups(total, workgroup), 1, 1};
  run.operands = {0, 1};
  return run;
}

KernelRun GatherRowsRun(const TensorView& table, const TableWindow& window, const TensorView& ids,
                        const TensorView& y, uint32_t workgroup) {
  const int64_t k = table.dims[0], n = y.dims[1];
  KernelRun run;
  run.shader = &shaders::gather_rows;
  run.constants = {workgroup, static_cast<uint32_t>(table.type)};
  run.push = {Word(k), Word(n)};
  AppendPlace(table, 2, 1, &run.push);
  run.push.push_back(Word(table.dims[1]));
  run.push.push_back(Word(window.first_row));
  run.push.push_back(Word(window.first_row + window.rows));
  AppendPlace(ids, 1, sizeof(int32_t), &run.push);
  AppendPlace(y, 2, sizeof(float), &run.push);
  run.groups = {CappedGroups(static_cast<uint64_t>(k), workgroup),
                CappedGroups(static_cast<uint64_t>(n), 1), 1};
  run.operands = {0, 1, 2};
  return run;
}

}  // namespace trine::vulkan
