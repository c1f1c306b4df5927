#include "kernels/cpu/check/product_tensors.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kernels/cpu/product/activation_records.h"

namespace trine::cpu_kernels {

using quant::Fill;
using quant::Random;
using quant::Type;

namespace {

// Returns the least alignment of a type's rows.
int64_t RowAlignment(Type type) {
  const int bytes = quant::Traits(type).block_bytes;
  return std::min(bytes & -bytes, 4);
}

}  // namespace

GappedTensor::GappedTensor(Type type, std::vector<int64_t> dims) {
  view_.type = type;
  std::copy(dims.begin(), dims.end(), view_.dims);
  uint64_t row_bytes = 0;
  quant::RowBytes(type, view_.dims[0], &row_bytes);
  const int64_t alignment = RowAlignment(type);
  view_.strides[0] = quant::Traits(type).block_bytes;
  view_.strides[1] = static_cast<int64_t>(row_bytes) + alignment;
  view_.strides[2] = view_.strides[1] * view_.dims[1];
  view_.strides[3] = view_.strides[2] * view_.dims[2];
  bytes_.assign(static_cast<size_t>(alignment + view_.strides[3] * view_.dims[3]), std::byte{0xa5});
  view_.data = bytes_.data() + alignment;
}

void GappedTensor::FillRows(Fill fill, Random* random) {
  for (int64_t r = 0; r < reference::Rows(view_); ++r) {
    for (int64_t i = 0; i < view_.dims[0]; ++i) Row(r)[i] = quant::FillValue(fill, random);
  }
}

void GappedTensor::FillWeights(bool any_scale, Random* random) {
  for (int64_t r = 0; r < reference::Rows(view_); ++r) {
    const auto row = quant::RandomWeights(view_.type, view_.dims[0], any_scale, random);
    std::copy(row.begin(), row.end(), reference::RowAt(view_, r));
  }
}

void GappedTensor::FillExtreme(Random* random) {
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

PackedTensor::PackedTensor(const KernelTable& table, const View& plain) : view_(plain) {
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

std::vector<ActivationChunk> MakeChunks(const View& x) {
  const auto count = static_cast<size_t>(ActivationChunksOf(reference::Rows(x), x.dims[0]));
  std::vector<ActivationChunk> chunks(count);
  std::memset(static_cast<void*>(chunks.data()), 0x5a, count * sizeof(ActivationChunk));
  return chunks;
}

std::string Difference(const GappedTensor& want, const GappedTensor& got) {
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

}  // namespace trine::cpu_kernels
