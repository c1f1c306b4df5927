#include "plugins/conformance/cases/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/scalar.h"
#include "kernels/reference/ops.h"
#include "trine/sdk/graph.h"

namespace trine::conformance {
namespace {

using quant::Canon;
using reference::AllRows;
using reference::View;

// The operands of one op as views of the images.
class Operands {
 public:
  Operands(const GraphSpec& graph, const OpSpec& op, const std::vector<int64_t>& params,
           Images* images)
      : graph_(graph), op_(op), params_(params), images_(images) {}

  View In(size_t i) const { return Of(op_.in[i]); }
  View Out(size_t i) const { return Of(op_.out[i]); }
  std::optional<View> Optional(size_t i) const {
    if (i >= op_.in.size() || op_.in[i] == TRINE_NONE) return std::nullopt;
    return In(i);
  }
  template <class A>
  A Attr() const {
    A attr{};
    std::memcpy(&attr, op_.attr.data(), std::min(op_.attr.size(), sizeof(A)));
    return attr;
  }

 private:
  View Of(uint32_t index) const {
    const trine_tensor& t = graph_.tensors[index];
    const sdk::Dims dims = sdk::ResolveDims(t, params_.data());
    const sdk::Dims strides = sdk::ResolveStrides(t, dims);
    View view;
    view.data = (*images_)[t.slot].data() + t.offset;
    std::copy(dims.begin(), dims.end(), view.dims);
    std::copy(strides.begin(), strides.end(), view.strides);
    view.type = static_cast<quant::Type>(t.dtype);
    return view;
  }

  const GraphSpec& graph_;
  const OpSpec& op_;
  const std::vector<int64_t>& params_;
  Images* images_;
};

const View* Pointer(const std::optional<View>& view) { return view ? &*view : nullptr; }

void RunNorm(const Operands& o, bool layer) {
  const auto attr = o.Attr<trine_norm_attr>();
  const std::optional<View> weight = o.Optional(1), bias = o.Optional(2);
  const View y = o.Out(0);
  if (layer) {
    reference::LayerNorm(o.In(0), Pointer(weight), Pointer(bias), attr.eps, y, AllRows(y));
  } else {
    reference::RmsNorm(o.In(0), Pointer(weight), attr.eps, y, AllRows(y));
  }
}

void RunAttention(const Operands& o) {
  const auto attr = o.Attr<trine_attention_attr>();
  const std::optional<View> sinks = o.Optional(6);
  reference::AttentionInputs inputs;
  inputs.q = o.In(0);
  inputs.k = o.In(1);
  inputs.v = o.In(2);
  inputs.block_table = o.In(3);
  inputs.q_offsets = o.In(4);
  inputs.kv_lengths = o.In(5);
  inputs.sinks = Pointer(sinks);
  reference::AttentionParams params;
  params.scale = attr.scale;
  params.softcap = attr.softcap;
  params.window = attr.window;
  params.causal = (attr.flags & TRINE_ATTENTION_CAUSAL) != 0;
  const View y = o.Out(0);
  reference::Attention(inputs, params, y, AllRows(y));
}

void RunGlu(const Operands& o) {
  const auto attr = o.Attr<trine_glu_attr>();
  reference::GluParams params;
  params.kind = attr.activation == TRINE_ACT_SILU   ? reference::GluKind::kSilu
                : attr.activation == TRINE_ACT_GELU ? reference::GluKind::kGelu
                                                    : reference::GluKind::kClampedSwiglu;
  params.alpha = attr.alpha;
  params.limit = attr.limit;
  const View y = o.Out(0);
  reference::Glu(o.In(0), o.In(1), params, y, AllRows(y));
}

reference::ActivationKind KindOf(uint32_t activation) {
  switch (activation) {
    case TRINE_ACT_SILU:
      return reference::ActivationKind::kSilu;
    case TRINE_ACT_GELU:
      return reference::ActivationKind::kGelu;
    case TRINE_ACT_RELU:
      return reference::ActivationKind::kRelu;
    default:
      return reference::ActivationKind::kTanh;
  }
}

void RunRoute(const Operands& o) {
  const auto attr = o.Attr<trine_moe_route_attr>();
  reference::MoeRouteParams params;
  params.scoring = attr.scoring == TRINE_MOE_SOFTMAX   ? reference::MoeScoring::kSoftmax
                   : attr.scoring == TRINE_MOE_SIGMOID ? reference::MoeScoring::kSigmoid
                                                       : reference::MoeScoring::kSelectedSoftmax;
  params.normalize = (attr.flags & TRINE_MOE_NORMALIZE) != 0;
  params.scale = attr.scale;
  const std::optional<View> bias = o.Optional(1);
  reference::MoeRoute(o.In(0), Pointer(bias), params, o.Out(0), o.Out(1), AllRows(o.In(0)));
}

// Sets y[r] to the dot product of x and row r of the matrix at `rows`, which has the shape of `w`,
// plus bias[r]. Rounds only the sums.
void MultiplyRows(const View& w, const std::byte* rows, const float* x, const float* bias,
                  float* y) {
  std::vector<float> row(static_cast<size_t>(w.dims[0]));
  for (int64_t r = 0; r < w.dims[1]; ++r) {
    quant::DequantizeRow(w.type, rows + r * w.strides[1], w.dims[0], row.data());
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) sum += static_cast<double>(row[i]) * x[i];
    const float dot = Canon(static_cast<float>(sum));
    y[r] = bias != nullptr ? Canon(dot + bias[r]) : dot;
  }
}

void RunUnroundedMatmul(const Operands& o) {
  const View w = o.In(0), x = o.In(1), y = o.Out(0);
  const std::optional<View> bias = o.Optional(2);
  for (int64_t column = 0; column < reference::Rows(x); ++column) {
    MultiplyRows(w, w.data, reference::F32Row(x, column),
                 bias ? reference::F32Row(*bias, 0) : nullptr, reference::F32Row(y, column));
  }
}

void RunUnroundedMoeMatmul(const Operands& o) {
  const View w = o.In(0), x = o.In(1), ids = o.In(2), y = o.Out(0);
  const std::optional<View> bias = o.Optional(3);
  for (int64_t row = 0; row < reference::Rows(y); ++row) {
    const int64_t slot = row % y.dims[1], token = row / y.dims[1];
    const int32_t expert = reference::I32Row(ids, token)[slot];
    float* to = reference::F32Row(y, row);
    if (expert < 0 || expert >= w.dims[2]) {
      std::fill_n(to, y.dims[0], 0.0f);
      continue;
    }
    MultiplyRows(w, reference::RowAt(w, 0, expert, 0),
                 reference::F32Row(x, x.dims[1] == 1 ? 0 : slot, token, 0),
                 bias ? reference::F32Row(*bias, expert) : nullptr, to);
  }
}

bool IsProduct(const OpSpec& op) {
  return op.kind == TRINE_OP_MATMUL || op.kind == TRINE_OP_MOE_MATMUL;
}

void RunOp(const Operands& o, uint32_t kind) {
  const View y = o.Out(0);
  switch (kind) {
    case TRINE_OP_COPY:
      return reference::Copy(o.In(0), y, AllRows(y));
    case TRINE_OP_GATHER_ROWS:
      return reference::GatherRows(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_RMS_NORM:
    case TRINE_OP_LAYER_NORM:
      return RunNorm(o, kind == TRINE_OP_LAYER_NORM);
    case TRINE_OP_MATMUL: {
      const std::optional<View> bias = o.Optional(2);
      return reference::Matmul(o.In(0), o.In(1), Pointer(bias), y, {0, y.dims[0]});
    }
    case TRINE_OP_ROPE: {
      const bool halves = o.Attr<trine_rope_attr>().mode == TRINE_ROPE_HALVES;
      const auto mode = halves ? reference::RopeMode::kHalves : reference::RopeMode::kInterleaved;
      return reference::Rope(o.In(0), o.In(1), mode, y, AllRows(y));
    }
    case TRINE_OP_KV_STORE:
      return reference::KvStore(o.In(0), o.In(1), y, AllRows(o.In(0)));
    case TRINE_OP_ATTENTION:
      return RunAttention(o);
    case TRINE_OP_GLU:
      return RunGlu(o);
    case TRINE_OP_ACTIVATION:
      return reference::Activation(o.In(0), KindOf(o.Attr<trine_activation_attr>().activation), y,
                                   AllRows(y));
    case TRINE_OP_ADD:
      return reference::Add(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_MUL:
      return reference::Mul(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_SCALE:
      return reference::Scale(o.In(0), o.Attr<trine_scale_attr>().scale, y, AllRows(y));
    case TRINE_OP_SOFTCAP:
      return reference::Softcap(o.In(0), o.Attr<trine_scale_attr>().scale, y, AllRows(y));
    case TRINE_OP_MOE_ROUTE:
      return RunRoute(o);
    case TRINE_OP_MOE_MATMUL: {
      const std::optional<View> bias = o.Optional(3);
      return reference::MoeMatmul(o.In(0), o.In(1), o.In(2), Pointer(bias), y, {0, y.dims[0]});
    }
    case TRINE_OP_MOE_COMBINE:
      return reference::MoeCombine(o.In(0), o.In(1), y, AllRows(y));
    case TRINE_OP_TOP_K:
      return reference::TopK(o.In(0), y, o.Out(1), AllRows(o.In(0)));
    default:
      return;
  }
}

std::string Hex(const std::byte* data, size_t bytes) {
  std::string text = "0x";
  for (size_t i = bytes; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", std::to_integer<unsigned>(data[i]));
    text += digits;
  }
  return text;
}

std::string ValueText(uint32_t dtype, const std::byte* data, size_t bytes) {
  char decimal[40] = "";
  if (dtype == TRINE_DTYPE_I32) {
    int32_t value;
    std::memcpy(&value, data, sizeof(value));
    std::snprintf(decimal, sizeof(decimal), " (%d)", value);
  } else if (sdk::FindDtype(dtype)->block == 1) {
    float value;
    quant::DequantizeRow(static_cast<quant::Type>(dtype), data, 1, &value);
    std::snprintf(decimal, sizeof(decimal), " (%.9g)", static_cast<double>(value));
  }
  return Hex(data, bytes) + decimal;
}

enum class Judgement {
  kBits,       // equal bits
  kNear,       // near the expected values, and canonical
  kCanonical,  // canonical
};

// Judges one output tensor, row by row. Marks its bytes in `covered`.
class OutputJudge {
 public:
  OutputJudge(const trine_tensor& t, const std::vector<int64_t>& params)
      : t_(t),
        dims_(sdk::ResolveDims(t, params.data())),
        strides_(sdk::ResolveStrides(t, dims_)),
        row_bytes_(static_cast<size_t>(sdk::ValueBytes(t.dtype, dims_[0]))) {}

  // `unrounded` is for kNear; it may be null. `ids`: for ids, how many values there are to choose
  // from; else -1.
  std::string Run(Judgement judgement, const Bytes& expected, const Bytes* unrounded,
                  const Bytes& got, int64_t ids, std::vector<bool>* covered) const {
    return ForRows([&](size_t at, const std::string& where) -> std::string {
      std::fill_n(covered->begin() + static_cast<ptrdiff_t>(at), row_bytes_, true);
      if (judgement == Judgement::kBits) {
        const int64_t block = DifferentBits(&expected[at], &got[at]);
        return block < 0 ? "" : Difference(at, block, where, expected, got);
      }
      const int64_t odd = ids >= 0 ? NoId(&got[at], ids) : NotCanonical(&got[at]);
      if (odd >= 0) return OddText(at, odd, where, got);
      if (judgement == Judgement::kCanonical) return "";
      int64_t block = TooFar(&expected[at], &got[at]);
      const Bytes* nearest = &expected;
      if (block >= 0 && unrounded != nullptr) {
        block = TooFar(&(*unrounded)[at], &got[at]);
        nearest = unrounded;
      }
      if (block < 0) return "";
      return absl::StrCat(Difference(at, block, where, *nearest, got),
                          ", beyond the fast tolerance");
    });
  }

 private:
  // Calls check(offset, "i1,i2,i3") for each row until it returns a text, and returns that text.
  template <class Check>
  std::string ForRows(Check check) const {
    for (int64_t i3 = 0; i3 < dims_[3]; ++i3) {
      for (int64_t i2 = 0; i2 < dims_[2]; ++i2) {
        for (int64_t i1 = 0; i1 < dims_[1]; ++i1) {
          const size_t at = t_.offset + static_cast<size_t>(i1 * strides_[1] + i2 * strides_[2] +
                                                            i3 * strides_[3]);
          const std::string wrong = check(at, absl::StrCat(i1, ",", i2, ",", i3));
          if (!wrong.empty()) return wrong;
        }
      }
    }
    return "";
  }

  std::string ValueAt(size_t at, int64_t block, const Bytes& image) const {
    const size_t size = sdk::FindDtype(t_.dtype)->block_bytes;
    return ValueText(t_.dtype, &image[at + static_cast<size_t>(block) * size], size);
  }
  std::string Index(int64_t block, const std::string& where) const {
    return absl::StrCat("at [", block * sdk::FindDtype(t_.dtype)->block, ",", where, "]");
  }
  std::string Difference(size_t at, int64_t block, const std::string& where, const Bytes& expected,
                         const Bytes& got) const {
    return absl::StrCat(Index(block, where), " expected ", ValueAt(at, block, expected), ", got ",
                        ValueAt(at, block, got));
  }
  std::string OddText(size_t at, int64_t block, const std::string& where, const Bytes& got) const {
    return absl::StrCat(Index(block, where), " got ", ValueAt(at, block, got),
                        t_.dtype == TRINE_DTYPE_I32
                            ? ", which is no id"
                            : ", which is not canonical: results must be +0 or of magnitude 2^-50 "
                              "to 2^50, with FAST numerics too");
  }

  // Returns the first value of a row that is not one of `ids` ids, or -1.
  int64_t NoId(const std::byte* got, int64_t ids) const {
    for (int64_t i = 0; i < dims_[0]; ++i) {
      int32_t value;
      std::memcpy(&value, got + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
      if (value < 0 || value >= ids) return i;
    }
    return -1;
  }

  // Returns the first value of an f32 row that is not canonical, or -1.
  int64_t NotCanonical(const std::byte* got) const {
    if (t_.dtype != TRINE_DTYPE_F32) return -1;
    for (int64_t i = 0; i < dims_[0]; ++i) {
      float value;
      std::memcpy(&value, got + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
      if (!quant::IsCanonical(value)) return i;
    }
    return -1;
  }

  // Returns the first block of the row whose bits differ, or -1.
  int64_t DifferentBits(const std::byte* expected, const std::byte* got) const {
    if (std::memcmp(expected, got, row_bytes_) == 0) return -1;
    const auto diff = std::mismatch(expected, expected + row_bytes_, got);
    return (diff.first - expected) / sdk::FindDtype(t_.dtype)->block_bytes;
  }

  int64_t TooFar(const std::byte* expected, const std::byte* got) const {
    if (t_.dtype == TRINE_DTYPE_I32) return DifferentBits(expected, got);
    const auto type = static_cast<quant::Type>(t_.dtype);
    std::vector<float> want(static_cast<size_t>(dims_[0])), have(want.size());
    quant::DequantizeRow(type, expected, dims_[0], want.data());
    quant::DequantizeRow(type, got, dims_[0], have.data());
    double largest = 0;
    for (float v : want) largest = std::max<double>(largest, std::fabs(v));
    for (size_t i = 0; i < want.size(); ++i) {
      const double off = std::fabs(static_cast<double>(want[i]) - static_cast<double>(have[i]));
      if (!(off <= kFastTolerance * largest + 1e-6)) {
        return static_cast<int64_t>(i) / sdk::FindDtype(t_.dtype)->block;
      }
    }
    return -1;
  }

  const trine_tensor& t_;
  sdk::Dims dims_;
  sdk::Dims strides_;
  size_t row_bytes_;
};

Images RunOps(const GraphSpec& graph, const std::vector<int64_t>& params, Images images,
              bool unrounded) {
  images.resize(graph.slots.size());
  for (size_t s = 0; s < graph.slots.size(); ++s) {
    if (graph.slots[s].role == TRINE_ROLE_TEMP) images[s].resize(graph.slots[s].bytes);
  }
  for (const OpSpec& op : graph.ops) {
    const Operands operands(graph, op, params, &images);
    if (!unrounded || !IsProduct(op)) {
      RunOp(operands, op.kind);
    } else if (op.kind == TRINE_OP_MATMUL) {
      RunUnroundedMatmul(operands);
    } else {
      RunUnroundedMoeMatmul(operands);
    }
  }
  return images;
}

std::string Judge(Judgement judgement, const GraphSpec& graph, const std::vector<int64_t>& params,
                  const Images& expected, const Images* unrounded, const Images& got) {
  std::vector<std::vector<bool>> covered;
  for (const Bytes& image : expected) covered.emplace_back(image.size(), false);
  for (const OpSpec& op : graph.ops) {
    const bool chooses = op.kind == TRINE_OP_MOE_ROUTE || op.kind == TRINE_OP_TOP_K;
    const int64_t choices = sdk::ResolveDims(graph.tensors[op.in[0]], params.data())[0];
    for (size_t i = 0; i < op.out.size(); ++i) {
      const trine_tensor& t = graph.tensors[op.out[i]];
      const int64_t ids = chooses && t.dtype == TRINE_DTYPE_I32 ? choices : -1;
      if (graph.slots[t.slot].role == TRINE_ROLE_TEMP) continue;
      const std::string wrong = OutputJudge(t, params).Run(
          judgement, expected[t.slot], unrounded != nullptr ? &(*unrounded)[t.slot] : nullptr,
          got[t.slot], ids, &covered[t.slot]);
      if (!wrong.empty()) return absl::StrCat("output ", i, " ", wrong);
    }
  }
  for (uint32_t s = 0; s < graph.slots.size(); ++s) {
    if (graph.slots[s].role == TRINE_ROLE_TEMP) continue;
    for (size_t b = 0; b < covered[s].size(); ++b) {
      if (covered[s][b] || expected[s][b] == got[s][b]) continue;
      return absl::StrCat("byte ", b, " of slot ", s,
                          ", outside of every output, was changed from ", Hex(&expected[s][b], 1),
                          " to ", Hex(&got[s][b], 1));
    }
  }
  return "";
}

}  // namespace

Expected RunOracle(const GraphSpec& graph, const std::vector<int64_t>& params,
                   const Images& images) {
  Expected expected;
  expected.contract = RunOps(graph, params, images, /*unrounded=*/false);
  if (graph.numerics == TRINE_NUMERICS_FAST &&
      std::any_of(graph.ops.begin(), graph.ops.end(), IsProduct)) {
    expected.unrounded = RunOps(graph, params, images, /*unrounded=*/true);
  }
  return expected;
}

std::string CompareResults(const GraphSpec& graph, const std::vector<int64_t>& params,
                           const Expected& expected, const Images& got) {
  const bool exact = graph.numerics == TRINE_NUMERICS_EXACT;
  return Judge(exact ? Judgement::kBits : Judgement::kNear, graph, params, expected.contract,
               expected.unrounded.empty() ? nullptr : &expected.unrounded, got);
}

std::string CompareBits(const GraphSpec& graph, const std::vector<int64_t>& params,
                        const Images& expected, const Images& got) {
  return Judge(Judgement::kBits, graph, params, expected, nullptr, got);
}

std::string CheckCanonical(const GraphSpec& graph, const std::vector<int64_t>& params,
                           const Expected& expected, const Images& got) {
  return Judge(Judgement::kCanonical, graph, params, expected.contract, nullptr, got);
}

}  // namespace trine::conformance
