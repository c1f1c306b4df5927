#include "runtime/graph/replay.h"

#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/quant/float_bits.h"
#include "runtime/base/invalid.h"
#include "runtime/pack_cache/hash64.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

// Maps a float's bits to a number that grows with its value: neighbours differ by one.
int64_t Ordered(uint32_t bits, int width) {
  const int64_t sign = int64_t{1} << (width - 1);
  const int64_t magnitude = static_cast<int64_t>(bits) & (sign - 1);
  return (static_cast<int64_t>(bits) & sign) != 0 ? -magnitude : magnitude;
}

struct Element {
  double value = 0;
  std::optional<int64_t> order;
};

Element ElementAt(uint32_t dtype, const std::byte* at) {
  if (dtype == TRINE_DTYPE_F32) {
    uint32_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return {std::bit_cast<float>(bits), Ordered(bits, 32)};
  }
  if (dtype == TRINE_DTYPE_I32) {
    int32_t value = 0;
    std::memcpy(&value, at, sizeof(value));
    return {static_cast<double>(value), std::nullopt};
  }
  if (dtype == TRINE_DTYPE_F16 || dtype == TRINE_DTYPE_BF16) {
    uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    const float value = dtype == TRINE_DTYPE_F16
                            ? quant::F16ToF32(bits)
                            : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    return {value, Ordered(bits, 16)};
  }
  return {static_cast<double>(static_cast<uint8_t>(*at)), std::nullopt};  // a byte of a block
}

uint64_t ElementBytes(uint32_t dtype) {
  if (dtype == TRINE_DTYPE_F32 || dtype == TRINE_DTYPE_I32) return 4;
  return dtype == TRINE_DTYPE_F16 || dtype == TRINE_DTYPE_BF16 ? 2 : 1;
}

void CompareValues(std::span<const std::byte> captured, std::span<const std::byte> found,
                   ReplayDifference* difference) {
  const uint32_t dtype = difference->tap.dtype;
  const uint64_t step = ElementBytes(dtype);
  difference->elements = captured.size() / step;
  for (uint64_t i = 0; i < difference->elements; ++i) {
    const std::byte *a = captured.data() + i * step, *b = found.data() + i * step;
    if (std::memcmp(a, b, step) == 0) continue;
    if (difference->differing++ > 0) continue;
    const Element was = ElementAt(dtype, a), is = ElementAt(dtype, b);
    difference->element = i;
    difference->captured = was.value;
    difference->found = is.value;
    if (was.order && is.order) {
      difference->ulps = static_cast<uint64_t>(std::llabs(*was.order - *is.order));
    }
  }
}

class Replayer {
 public:
  Replayer(const CaptureFile& capture, const ReplayOptions& options, ExecutionGraph* graph)
      : capture_(capture), options_(options), graph_(*graph) {}

  absl::StatusOr<ReplayResult> Run() {
    if (absl::Status s = MatchTaps(); !s.ok()) return s;
    const auto& passes = capture_.passes();
    for (size_t i = 0; i < passes.size() && !result_.difference; ++i) {
      if (options_.progress) options_.progress(i, passes.size());
      if (absl::Status s = RunPass(i, passes[i]); !s.ok()) return s;
      ++result_.passes;
    }
    return result_;
  }

 private:
  // Finds the graph's value for each tap of the capture.
  absl::Status MatchTaps() {
    const PassGraph& shape = graph_.shape();
    const std::vector<CapturedTap> own = DescribeTaps(shape);
    std::map<std::pair<uint32_t, uint32_t>, size_t> by_op;
    for (size_t i = 0; i < own.size(); ++i) by_op[{own[i].op, own[i].output}] = i;
    const auto& taps = capture_.head().taps;
    by_node_.resize(shape.nodes().size());
    for (size_t i = 0; i < taps.size(); ++i) {
      const auto found = by_op.find({taps[i].op, taps[i].output});
      if (found == by_op.end() || own[found->second] != taps[i]) {
        return Invalid("the capture is of another model: it has ", taps[i].name, " as op ",
                       taps[i].op, ", and the model has not");
      }
      const size_t value = shape.taps()[found->second];
      by_node_[shape.values()[value].node].push_back({i, value});
    }
    return absl::OkStatus();
  }

  absl::Status RunPass(size_t index, const CapturedPass& pass) {
    if (pass.position > graph_.positions()) {
      return Invalid("the capture has a pass at position ", pass.position, " behind ",
                     graph_.positions());
    }
    if (absl::Status s = graph_.RegressTo(pass.position); !s.ok()) return s;
    if (absl::Status s = graph_.Append(pass.tokens, pass.rows); !s.ok()) return s;
    const PassGraph& shape = graph_.shape();
    const size_t t = graph_.passes() - 1, n = shape.nodes().size();
    for (size_t begin = 0; begin < n && !result_.difference;) {
      size_t end = begin + 1;
      while (!options_.ops && end < n && shape.nodes()[end].layer == shape.nodes()[begin].layer) {
        ++end;
      }
      absl::Status s = graph_.ExecuteWindow(graph_.NodeAt(t, begin), graph_.NodeAt(t, end));
      if (!s.ok()) return s;
      result_.ops += shape.nodes()[end - 1].end - shape.nodes()[begin].begin;
      for (size_t node = begin; node < end && !result_.difference; ++node) {
        if (s = Compare(index, pass, node); !s.ok()) return s;
      }
      begin = end;
    }
    return absl::OkStatus();
  }

  absl::Status Compare(size_t index, const CapturedPass& pass, size_t node) {
    for (const auto& [tap, value] : by_node_[node]) {
      const auto bytes = graph_.ReadBack(graph_.passes() - 1, value);
      if (!bytes.ok()) return bytes.status();
      ++result_.values;
      if (Hash64(bytes->data(), bytes->size(), 0) == pass.hashes[tap]) continue;
      ReplayDifference difference;
      difference.pass = index;
      difference.position = pass.position;
      difference.tap = capture_.head().taps[tap];
      const int64_t layer = difference.tap.layer;
      difference.part = layer < 0 ? "the embedding"
                        : layer == static_cast<int64_t>(capture_.head().n_layers)
                            ? "the head"
                            : absl::StrCat("layer ", layer);
      difference.device = graph_.model().places()[graph_.shape().nodes()[node].stage].device_name;
      if (capture_.head().values) CompareValues(pass.values[tap], *bytes, &difference);
      result_.difference = std::move(difference);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const CaptureFile& capture_;
  const ReplayOptions& options_;
  ExecutionGraph& graph_;
  std::vector<std::vector<std::pair<size_t, size_t>>> by_node_;  // taps of the capture, values
  ReplayResult result_;
};

}  // namespace

absl::StatusOr<ReplayResult> Replay(const CaptureFile& capture, const ReplayOptions& options,
                                    ExecutionGraph* graph) {
  return Replayer(capture, options, graph).Run();
}

std::string Describe(const ReplayDifference& d) {
  const CapturedTap& tap = d.tap;
  std::string text =
      absl::StrCat("pass ", d.pass, " (from position ", d.position, "), ", d.part, ", op ", tap.op,
                   ": ", tap.name, ", output ", tap.output, ", on ", d.device);
  if (d.element == ReplayDifference::kUnknown) return text;
  absl::StrAppend(&text, "\n", d.differing, " of ", d.elements, " elements differ, first element ",
                  d.element, ": ", absl::StrFormat("%.9g", d.captured), " captured, ",
                  absl::StrFormat("%.9g", d.found), " found");
  if (d.ulps != 0) absl::StrAppend(&text, ", ", d.ulps, d.ulps == 1 ? " ulp" : " ulps", " apart");
  return text;
}

}  // namespace trine
