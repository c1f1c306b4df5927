#include "backends/vulkan/work_cuts.h"

#include <algorithm>

namespace trine::vulkan {
namespace {

// Whole tiles and workgroups, whatever the tuning.
constexpr int64_t kRowUnit = 64;
constexpr int64_t kTokenUnit = 8;

// Items, of `count` with `operations` between them, that have `most`: whole units, or at least one.
int64_t ItemsOfPart(int64_t count, uint64_t operations, uint64_t most, int64_t unit) {
  if (operations <= most) return std::max<int64_t>(count, 1);
  const uint64_t each = std::max<uint64_t>(operations / static_cast<uint64_t>(count), 1);
  const auto items = static_cast<int64_t>(most / each);
  return std::clamp<int64_t>(items >= unit ? items / unit * unit : items, 1, count);
}

void Skip(TensorView* view, int dim, int64_t first, int64_t count) {
  const int64_t stride = dim == 0 ? static_cast<int64_t>(sizeof(float)) : view->strides[dim];
  view->offset += static_cast<uint64_t>(first * stride);
  view->dims[dim] = count;
}

AttentionViews TokensOf(const AttentionViews& whole, int64_t first, int64_t count) {
  AttentionViews part = whole;
  Skip(&part.q, 2, first, count);
  Skip(&part.y, 2, first, count);
  part.first_token = whole.first_token + first;
  return part;
}

// `sinks` is for the part to point to.
AttentionViews HeadsOf(const AttentionViews& whole, int64_t first, int64_t count,
                       TensorView* sinks) {
  const int64_t group = whole.q.dims[1] / whole.k.dims[2];
  AttentionViews part = whole;
  Skip(&part.q, 1, first * group, count * group);
  Skip(&part.y, 1, first * group, count * group);
  Skip(&part.k, 2, first, count);
  Skip(&part.v, 2, first, count);
  if (whole.sinks != nullptr) {
    *sinks = *whole.sinks;
    Skip(sinks, 0, first * group, count * group);
    part.sinks = sinks;
  }
  return part;
}

}  // namespace

Product RowsOf(const Product& whole, int64_t first, int64_t count) {
  Product part = whole;
  Skip(&part.w, 1, first, count);
  Skip(&part.y, 0, first, count);
  if (part.bias) Skip(&*part.bias, 0, first, count);
  return part;
}

uint64_t OperationsOf(const Product& product) {
  return 2 * static_cast<uint64_t>(product.w.dims[0]) *
         static_cast<uint64_t>(product.y.dims[0] * Rows(product.y));
}

std::vector<Product> CutProduct(const Product& whole, uint64_t most) {
  const int64_t rows = whole.w.dims[1];
  const int64_t of_part =
      std::max(ItemsOfPart(rows, OperationsOf(whole), most, kRowUnit), kRowUnit);
  if (rows <= of_part) return {whole};
  std::vector<Product> parts;
  for (int64_t first = 0; first < rows; first += of_part) {
    parts.push_back(RowsOf(whole, first, std::min(of_part, rows - first)));
  }
  return parts;
}

uint64_t OperationsOf(const AttentionViews& views, int64_t positions) {
  return 2 * static_cast<uint64_t>(views.k.dims[0] + views.v.dims[0]) *
         static_cast<uint64_t>(views.q.dims[1] * views.q.dims[2]) *
         static_cast<uint64_t>(std::max<int64_t>(positions, 1));
}

std::string CutAttention(const AttentionViews& whole, int64_t positions, uint64_t most,
                         const std::function<std::string(const AttentionViews& part)>& add) {
  const int64_t tokens = whole.q.dims[2], heads = whole.k.dims[2];
  if (OperationsOf(whole, positions) <= most) return add(whole);
  const int64_t n = ItemsOfPart(tokens, OperationsOf(whole, positions), most, kTokenUnit);
  for (int64_t token = 0; token < tokens; token += n) {
    const AttentionViews row = TokensOf(whole, token, std::min(n, tokens - token));
    const int64_t h = ItemsOfPart(heads, OperationsOf(row, positions), most, 1);
    for (int64_t head = 0; head < heads; head += h) {
      TensorView sinks;
      const AttentionViews part = HeadsOf(row, head, std::min(h, heads - head), &sinks);
      if (std::string why = add(part); !why.empty()) return why;
    }
  }
  return "";
}

}  // namespace trine::vulkan
