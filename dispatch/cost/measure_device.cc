#include "dispatch/cost/measure_device.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "dispatch/cost/cost_model.h"
#include "dispatch/cost/measuring.h"
#include "kernels/quant/block_types.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

// Returns the types to measure. The first also serves to measure costs that do not depend on the
// type; Q8_0 is usual.
std::vector<uint32_t> TypesToMeasure(const MeasureOptions& options) {
  std::vector<uint32_t> types = options.types;
  for (const quant::Type type : quant::kAllTypes) {
    const bool weights = type != quant::Type::kI32 && type != quant::Type::kQ8_KV;
    if (options.types.empty() && weights) types.push_back(static_cast<uint32_t>(type));
  }
  const auto usual = std::find(types.begin(), types.end(), uint32_t{TRINE_DTYPE_Q8_0});
  if (usual != types.end()) std::rotate(types.begin(), usual, usual + 1);
  return types;
}

// Measures what does not depend on the type of weights.
absl::Status MeasureOps(Measuring* m, const std::vector<uint32_t>& types) {
  absl::Status s = MeasureRunWithCopy(m);
  const bool copies = s.ok();
  // A device that does not copy may still have products.
  if (absl::IsUnimplemented(s)) s = MeasureRunWithProducts(m, types);
  if (s.ok()) s = MeasureSmallOps(m, copies);
  if (s.ok()) s = m->StepDone();
  if (s.ok()) s = MeasureAttention(m);
  if (s.ok()) s = m->StepDone();
  if (s.ok()) s = MeasureMoves(m);
  return s.ok() ? m->StepDone() : s;
}

// Measures products with each type. Leaves out types that the device refuses, with one note.
absl::Status MeasureTypes(Measuring* m, const std::vector<uint32_t>& types) {
  std::vector<std::string> refused;
  std::string why;
  for (const uint32_t type : types) {
    absl::Status s = MeasureProducts(m, type);
    if (absl::IsUnimplemented(s)) {
      if (refused.empty()) why = std::string(s.message());
      refused.push_back(sdk::DtypeName(type));
      s = absl::OkStatus();
    }
    if (s.ok()) s = m->StepDone();
    if (!s.ok()) return s;
  }
  if (m->costs().matmul.empty()) return NoProducts(why);
  if (!refused.empty()) {
    m->Note(
        absl::StrCat("it does not multiply with ", absl::StrJoin(refused, ", "), " (", why, ")"));
  }
  return DoubtFastTypes(m);
}

// Measures what is compared with products, with the first type that the device multiplies with.
absl::Status MeasureRest(Measuring* m, const std::vector<uint32_t>& types) {
  const auto type = std::find_if(types.begin(), types.end(),
                                 [&](uint32_t t) { return m->costs().matmul.count(t) != 0; });
  absl::Status s;
  if (type != types.end()) s = MeasureUnpacked(m, *type);
  if (type != types.end() && s.ok()) s = MeasureStreamed(m, *type);
  if (type != types.end() && s.ok()) s = MeasureLayers(m, *type);
  return s.ok() ? m->StepDone() : s;
}

absl::StatusOr<DeviceMeasurement> MeasureAll(Measuring* m, const std::vector<uint32_t>& types) {
  absl::Status s = MeasureOps(m, types);
  if (s.ok()) s = MeasureTypes(m, types);
  if (s.ok()) s = MeasureRest(m, types);
  if (!s.ok()) return s;
  return m->Take();
}

}  // namespace

absl::Status MeasureLayers(Measuring* m, uint32_t type) {
  if (!MissingCosts(m->costs()).empty()) return absl::OkStatus();
  const CostCurve& curve = m->costs().matmul.at(type);
  const auto weights = static_cast<double>(kMeasuredWidth * kMeasuredWidth);
  const bool slow = curve.At(1) * weights > kTooLongNs;
  const auto matrix_bytes =
      static_cast<double>(sdk::ValueBytes(type, kMeasuredWidth) * kMeasuredWidth);
  // A layer has fourteen and a half square matrices. Take more layers than caches hold.
  const auto stream = static_cast<double>(m->options().stream_bytes);
  const int layers = static_cast<int>(std::clamp(stream / (14.5 * matrix_bytes), 2.0, 16.0));
  std::vector<CostCurve::Point> points;
  for (const int64_t tokens : {1, 256}) {
    const auto at = static_cast<double>(tokens);
    if (tokens > 1 && curve.At(at) * weights > 10 * kTooLongNs) break;
    const int count = slow ? 1 : tokens > 1 ? 2 : layers;
    LayerStack stack(type, slow ? kMeasuredNarrow : kMeasuredWidth, count, tokens);
    const double predicted = PredictGraph(m->costs(), stack.graph(), stack.Pass(), at).ns;
    const absl::Status recorded = stack.Record(m->device());
    if (absl::IsUnimplemented(recorded)) return absl::OkStatus();
    if (!recorded.ok()) return recorded;
    const auto rounds = m->InRounds({[&]() -> absl::StatusOr<double> {
      if (absl::Status s = m->GoOn(); !s.ok()) return s;
      return stack.Round(m->budget_ns());
    }});
    if (!rounds.ok()) return rounds.status();
    const double factor = SummariseRounds(*rounds, [&](const std::vector<double>& ns) {
                            return (ns[0] - m->costs().run_ns) / predicted;
                          }).median;
    points.push_back({at, std::clamp(factor, 0.2, 5.0)});
  }
  m->costs().correction = CostCurve(std::move(points));
  return absl::OkStatus();
}

absl::StatusOr<DeviceMeasurement> MeasureDevice(std::shared_ptr<Device> device,
                                                const MeasureOptions& options) {
  const std::vector<uint32_t> types = TypesToMeasure(options);
  Measuring measuring(std::move(device), options, types.size() + 4);
  const std::optional<CpuTimes> before =
      options.cpu_times ? std::optional<CpuTimes>(options.cpu_times()) : std::nullopt;
  auto all = MeasureAll(&measuring, types);
  if (all.ok() && before) all->measured.trust.busy = DescribeLoad(*before, options.cpu_times());
  return all;
}

}  // namespace trine
