#include "runtime/model/rope_config.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/model/exact_double.h"

namespace trine {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 22;
constexpr int64_t kMaxContext = int64_t{1} << 30;
constexpr char kFrequencyFactors[] = "rope_freqs.weight";
constexpr char kShortFactors[] = "rope_factors_short.weight";
constexpr char kLongFactors[] = "rope_factors_long.weight";

// What YaRN multiplies q and k by, so that attention is as sharp over the longer context.
double YarnMagnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 1.0 + (0.1 * multiplier) * exact_double::Log(factor);
}

// Empty where the file has no such tensor.
absl::StatusOr<std::vector<float>> ReadFactors(const gguf::File& file, const char* name,
                                               int64_t pairs) {
  const gguf::TensorInfo* t = file.FindTensor(name);
  if (t == nullptr) return std::vector<float>();
  if (t->type != quant::Type::kF32 || t->dims[0] != pairs || t->Rows() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be ", pairs, " values of f32"));
  }
  const auto* values = reinterpret_cast<const float*>(t->data);
  std::vector<float> factors(values, values + pairs);
  for (float f : factors) {
    if (!(f >= 1e-6f && f <= 1e6f)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " holds ", f, ": factors lie between 1e-6 and 1e6"));
    }
  }
  return factors;
}

RopeScalingType ParseScaling(ConfigKeys& keys, bool has_factor) {
  const std::string type = keys.StringOr("rope.scaling.type", has_factor ? "linear" : "none");
  if (type == "none") return RopeScalingType::kNone;
  if (type == "linear") return RopeScalingType::kLinear;
  if (type == "yarn") return RopeScalingType::kYarn;
  if (type == "longrope") return RopeScalingType::kLongRope;
  keys.Fail(absl::UnimplementedError(absl::StrCat(
      keys.Name("rope.scaling.type"), " is \"", type,
      "\"; known here: none, linear, yarn, longrope, and the factors of rope_freqs.weight")));
  return RopeScalingType::kNone;
}

}  // namespace

RopeConfig ReadRopeConfig(ConfigKeys& keys, int64_t head_dim, int64_t context) {
  RopeConfig c;
  c.dims = keys.IntegerOr("rope.dimension_count", 2, kMaxWidth, head_dim);
  c.base = keys.FloatOr("rope.freq_base", 1.0001, 1e12, 10000.0);
  keys.Require(c.dims % 2 == 0 && c.dims <= head_dim,
               absl::StrCat(keys.Name("rope.dimension_count"), " is ", c.dims,
                            ": it must be even and at most the head's ", head_dim));
  c.magnitude = keys.FloatOr("rope.scaling.attn_factor", 1e-3, 1e3, 1.0);
  c.original_context =
      keys.IntegerOr("rope.scaling.original_context_length", 1, kMaxContext, context);
  const char* factor_key = "rope.scaling.factor";
  if (!keys.Has(factor_key)) factor_key = "rope.scale_linear";  // how old files say it
  c.scaling = ParseScaling(keys, keys.Has(factor_key));
  if (c.scaling == RopeScalingType::kNone) return c;

  // 0 is how some files say that there is none.
  double factor = keys.FloatOr(factor_key, 0, 1e6, 1.0);
  if (factor == 0) factor = 1;
  keys.Require(factor >= 1e-3, absl::StrCat(keys.Name(factor_key), " is ", factor,
                                            ": it must lie between 0.001 and 1000000"));
  c.position_scale = 1.0 / factor;
  if (c.scaling == RopeScalingType::kYarn) {
    c.yarn.beta_fast = keys.FloatOr("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0);
    c.yarn.beta_slow = keys.FloatOr("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0);
    const double multiplier = keys.FloatOr("rope.scaling.yarn_log_multiplier", 0, 1e3, 0.0);
    c.magnitude = c.magnitude * YarnMagnitude(factor, 1.0);
    if (multiplier != 0) c.magnitude = c.magnitude / YarnMagnitude(factor, multiplier);
  }
  return c;
}

absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file, const RopeConfig& config,
                                                   int64_t context) {
  const int64_t pairs = config.dims / 2;
  auto frequency = ReadFactors(file, kFrequencyFactors, pairs);
  auto near = ReadFactors(file, kShortFactors, pairs);
  auto far = ReadFactors(file, kLongFactors, pairs);
  for (const auto* factors : {&frequency, &near, &far}) {
    if (!factors->ok()) return factors->status();
  }
  // Files with long rope need not say so but for having its factors.
  const bool has_factors = !near->empty() || !far->empty();
  if (!has_factors && config.scaling != RopeScalingType::kLongRope) return frequency;
  const bool beyond = context > config.original_context;
  auto& chosen = beyond ? far : near;
  if (chosen->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the file lacks the tensor ",
                                                   beyond ? kLongFactors : kShortFactors,
                                                   ", which long rope needs"));
  }
  return chosen;
}

bool IsRopeFactors(std::string_view tensor_name) {
  return tensor_name == kFrequencyFactors || tensor_name == kShortFactors ||
         tensor_name == kLongFactors;
}

}  // namespace trine
