#include "backends/hip/weight_windows.h"

#include <algorithm>
#include <utility>

#include "backends/common/op_attributes.h"
#include "backends/common/packed_layout.h"

namespace trine::hip {
namespace {

// Windows have a multiple of this many rows if they have more: whole tiles of a product.
constexpr uint64_t kWholeRows = 128;

uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// The matrices of a constant tensor: rows of `row_bytes`, `stride` apart.
struct Matrices {
  uint64_t rows = 0, count = 0;
  uint64_t row_bytes = 0, stride = 0, matrix_stride = 0;
};

Matrices MatricesOf(const trine_tensor& t, const std::vector<int64_t>& max) {
  const sdk::Dims dims = sdk::ResolveDims(t, max.data());
  const sdk::Dims strides = backends::StridesOf(t, dims);
  Matrices m;
  m.rows = static_cast<uint64_t>(dims[1]);
  m.count = static_cast<uint64_t>(dims[2] * dims[3]);
  m.row_bytes = backends::RowBytesOf(t, dims);
  m.stride = static_cast<uint64_t>(strides[1]);
  m.matrix_stride = static_cast<uint64_t>(strides[2]);
  return m;
}

// Returns the whole tensor as it lies, with any gaps between its rows.
StagedTensor WholeOf(const trine_tensor& t, const std::vector<int64_t>& max) {
  if (t.layout == TRINE_LAYOUT_PLAIN) {
    const sdk::ByteRange range = sdk::RangeOf(t, max);
    return {{{range.begin, range.end - range.begin}}};
  }
  const Matrices m = MatricesOf(t, max);
  return {{{t.offset, m.row_bytes * m.rows * m.count}}};
}

bool HasKnownDims(const trine_tensor& t) {
  return std::all_of(t.dims, t.dims + t.rank, [](int64_t dim) { return dim >= 0; });
}

class Windows {
 public:
  Windows(const sdk::Graph& graph, const std::vector<ConstantPlace>& places, uint64_t window_bytes)
      : graph_(graph), places_(places), window_bytes_(window_bytes), max_(graph.MaxParams()) {
    out_.graph = graph;
    out_.graph.ops.clear();
    out_.staged.resize(graph.tensors.size());
  }

  WindowedGraph Take() {
    for (const sdk::Op& op : graph_.ops) Add(op);
    return std::move(out_);
  }

 private:
  bool IsStaged(const sdk::Op& op, size_t input) const {
    if (!op.HasInput(input)) return false;
    const trine_tensor& t = graph_.tensors[op.in[input]];
    if (graph_.slots[t.slot].role != TRINE_ROLE_CONSTANT) return false;
    const ConstantPlace place = places_[t.slot];
    if (place == ConstantPlace::kDevice) return false;
    const uint64_t bytes = WholeOf(t, max_).Bytes();
    if (bytes == 0) return false;
    return place == ConstantPlace::kPageable ||
           (backends::IsProduct(op.kind) && input == 0 && bytes > kReadInPlace);
  }

  uint32_t NewTensor(const trine_tensor& t, std::optional<StagedTensor> staged) {
    out_.graph.tensors.push_back(t);
    out_.staged.push_back(std::move(staged));
    return static_cast<uint32_t>(out_.graph.tensors.size() - 1);
  }

  void Add(const sdk::Op& op) {
    if (backends::IsProduct(op.kind) && IsStaged(op, 0) && AddInWindows(op)) return;
    sdk::Op whole = op;
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (!IsStaged(op, i)) continue;
      const trine_tensor& t = graph_.tensors[op.in[i]];
      whole.in[i] = NewTensor(t, WholeOf(t, max_));
    }
    out_.graph.ops.push_back(std::move(whole));
  }

  // Returns how many rows of the weights a window has; 0: all of them.
  uint64_t WindowRows(const sdk::Op& op) const {
    const trine_tensor& w = graph_.tensors[op.in[0]];
    const trine_tensor& y = graph_.tensors[op.out[0]];
    const Matrices m = MatricesOf(w, max_);
    // A part of y can't keep strides that depend on a parameter.
    const bool known = HasKnownDims(w) && y.dims[0] >= 0 && (y.rank < 3 || y.dims[1] >= 0);
    // Tensors with overlapping rows or matrices are no weights.
    const bool apart = m.stride >= m.row_bytes && m.matrix_stride >= m.stride * m.rows;
    if (!known || !apart || m.stride * m.rows * m.count <= window_bytes_) return 0;
    uint64_t most = std::max<uint64_t>(1, window_bytes_ / (m.stride * m.count));
    if (most > kWholeRows) most = most / kWholeRows * kWholeRows;
    const uint64_t count = (m.rows + most - 1) / most;
    const uint64_t even = (m.rows + count - 1) / count;
    return std::min(most, RoundUp(even, std::min(most, kWholeRows)));
  }

  // Returns values [first, first + count) of each row of a vector or of a product's output.
  trine_tensor PartOf(const trine_tensor& t, uint64_t first, uint64_t count) const {
    const sdk::Dims strides = sdk::ResolveStrides(t, sdk::ResolveDims(t, max_.data()));
    trine_tensor part = t;
    part.dims[0] = static_cast<int64_t>(count);
    part.offset += first * sizeof(float);
    for (uint32_t i = 1; i < t.rank; ++i) part.strides[i] = strides[i];
    return part;
  }

  bool AddInWindows(const sdk::Op& op) {
    const uint64_t rows = WindowRows(op);
    if (rows == 0) return false;
    const trine_tensor& w = graph_.tensors[op.in[0]];
    const Matrices m = MatricesOf(w, max_);
    const size_t bias = op.kind == TRINE_OP_MOE_MATMUL ? 3 : 2;
    for (uint64_t first = 0; first < m.rows; first += rows) {
      const uint64_t count = std::min(rows, m.rows - first);
      sdk::Op window = op;
      StagedTensor staged;
      for (uint64_t i = 0; i < m.count; ++i) {
        // Each matrix but the last includes the gap after its last row: the next one begins there.
        const uint64_t bytes =
            i + 1 < m.count ? count * m.stride : (count - 1) * m.stride + m.row_bytes;
        staged.pieces.push_back({w.offset + i * m.matrix_stride + first * m.stride, bytes});
      }
      trine_tensor part = w;
      part.dims[1] = static_cast<int64_t>(count);
      part.strides[2] = part.strides[3] = 0;
      window.in[0] = NewTensor(part, std::move(staged));
      if (op.HasInput(bias)) {
        const trine_tensor t = PartOf(graph_.tensors[op.in[bias]], first, count);
        window.in[bias] = NewTensor(
            t, IsStaged(op, bias) ? std::optional<StagedTensor>(WholeOf(t, max_)) : std::nullopt);
      }
      window.out[0] = NewTensor(PartOf(graph_.tensors[op.out[0]], first, count), std::nullopt);
      out_.graph.ops.push_back(std::move(window));
    }
    return true;
  }

  const sdk::Graph& graph_;
  const std::vector<ConstantPlace>& places_;
  const uint64_t window_bytes_;
  const std::vector<int64_t> max_;
  WindowedGraph out_;
};

}  // namespace

uint64_t StagedTensor::Bytes() const {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

uint64_t StagedTensor::RoomBytes() const { return RoundUp(Bytes(), kStageAlignment); }

bool WindowedGraph::any() const {
  return std::any_of(staged.begin(), staged.end(),
                     [](const std::optional<StagedTensor>& s) { return s.has_value(); });
}

std::vector<uint32_t> WindowedGraph::StagedIn(const backends::OpGroup& group) const {
  std::vector<uint32_t> tensors;
  for (uint32_t op = group.first; op < group.first + group.count; ++op) {
    for (const uint32_t tensor : graph.ops[op].in) {
      if (tensor != TRINE_NONE && staged[tensor].has_value()) tensors.push_back(tensor);
    }
  }
  return tensors;
}

uint64_t WindowedGraph::StageBytes(const std::vector<backends::OpGroup>& groups) const {
  uint64_t most = 0;
  for (const backends::OpGroup& group : groups) {
    uint64_t bytes = 0;
    for (const uint32_t tensor : StagedIn(group)) bytes += staged[tensor]->RoomBytes();
    most = std::max(most, bytes);
  }
  return most;
}

WindowedGraph WindowWeights(const sdk::Graph& graph, const std::vector<ConstantPlace>& places,
                            uint64_t window_bytes) {
  return Windows(graph, places, window_bytes).Take();
}

}  // namespace trine::hip
