#include "plugins/conformance/case_builder.h"

#include <algorithm>
#include <cstring>

#include "trine/sdk/graph.h"

namespace trine::conformance {

int64_t CaseBuilder::Param(uint32_t kind, int64_t value, int64_t max) {
  case_.params.push_back(value);
  return case_.graph.AddParam(kind, 1, max);
}

uint32_t CaseBuilder::Add(uint32_t role, uint32_t dtype, std::vector<int64_t> dims) {
  GraphSpec& g = case_.graph;
  const uint32_t tensor = gapped_ && role != TRINE_ROLE_TEMP
                              ? g.AddGappedTensor(role, dtype, std::move(dims))
                              : g.AddTensor(role, dtype, std::move(dims));
  const bool temp = role == TRINE_ROLE_TEMP;
  case_.images.emplace_back(temp ? 0 : g.slots.back().bytes, kGarbage);
  return tensor;
}

template <class Fill>
void CaseBuilder::FillRows(uint32_t tensor, Fill fill) {
  const trine_tensor& t = case_.graph.tensors[tensor];
  const std::vector<int64_t> max = case_.graph.MaxParams();
  const sdk::Dims dims = sdk::ResolveDims(t, max.data());
  const sdk::Dims strides = sdk::ResolveStrides(t, dims);
  const auto row_bytes = static_cast<size_t>(sdk::ValueBytes(t.dtype, dims[0]));
  std::byte* data = case_.images[t.slot].data() + t.offset;
  for (int64_t i3 = 0; i3 < dims[3]; ++i3) {
    for (int64_t i2 = 0; i2 < dims[2]; ++i2) {
      for (int64_t i1 = 0; i1 < dims[1]; ++i1) {
        fill(data + i1 * strides[1] + i2 * strides[2] + i3 * strides[3], row_bytes);
      }
    }
  }
}

uint32_t CaseBuilder::Input(std::vector<int64_t> dims, Spread32 spread) {
  const uint32_t tensor = Add(TRINE_ROLE_IO, TRINE_DTYPE_F32, std::move(dims));
  FillRows(tensor, [&](std::byte* row, size_t bytes) {
    FillWeights(random_, TRINE_DTYPE_F32, spread, row, bytes);
  });
  return tensor;
}

uint32_t CaseBuilder::Weight(uint32_t dtype, std::vector<int64_t> dims) {
  const bool gapped = gapped_;
  gapped_ = false;  // rows of a file follow each other
  const uint32_t tensor = Add(TRINE_ROLE_CONSTANT, dtype, std::move(dims));
  gapped_ = gapped;
  FillRows(tensor,
           [&](std::byte* row, size_t bytes) { FillWeights(random_, dtype, spread_, row, bytes); });
  return tensor;
}

uint32_t CaseBuilder::Cache(uint32_t dtype, std::vector<int64_t> dims) {
  const uint32_t tensor = Add(TRINE_ROLE_STATE, dtype, std::move(dims));
  FillRows(tensor, [&](std::byte* row, size_t bytes) { FillCache(random_, dtype, row, bytes); });
  return tensor;
}

uint32_t CaseBuilder::Ints(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  const uint32_t tensor = Add(TRINE_ROLE_IO, TRINE_DTYPE_I32, std::move(dims));
  size_t next = 0;
  FillRows(tensor, [&](std::byte* row, size_t bytes) {
    const size_t n = std::min(bytes / sizeof(int32_t), values.size() - next);
    std::memcpy(row, values.data() + next, n * sizeof(int32_t));
    next += n;
  });
  return tensor;
}

uint32_t CaseBuilder::Output(uint32_t dtype, std::vector<int64_t> dims) {
  return Add(TRINE_ROLE_IO, dtype, std::move(dims));
}

uint32_t CaseBuilder::Temp(std::vector<int64_t> dims) {
  return Add(TRINE_ROLE_TEMP, TRINE_DTYPE_F32, std::move(dims));
}

}  // namespace trine::conformance
