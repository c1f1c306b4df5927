#include "runtime/embedding/pooling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/invalid.h"

namespace trine {
namespace {

constexpr double kMaxScale = 32760.0;  // fits in 16 bits, as elsewhere

// Returns x * x * ... with n factors, from the left.
double Power(double x, int32_t n) {
  double y = x;
  for (int32_t i = 1; i < n; ++i) y = y * x;
  return y;
}

// Returns the n-th root of t >= 1 by Newton's iteration from above, until it stops falling. Uses no
// library's pow, because those differ.
double Root(double t, int32_t n) {
  const auto degree = static_cast<double>(n);
  double x = 1.0 + (t - 1.0) / degree;
  for (;;) {
    const double next = ((degree - 1.0) * x + t / Power(x, n - 1)) / degree;
    if (!(next < x)) return x;
    x = next;
  }
}

double LargestMagnitude(std::span<const double> v) {
  double largest = 0;
  for (const double x : v) largest = std::max(largest, std::abs(x));
  return largest;
}

// Returns what `v` is divided by; 0 for a vector of zeros.
double Norm(std::span<const double> v, int32_t normalize) {
  double sum = 0;
  if (normalize == kNormalizeNone) return 1;
  if (normalize == kNormalizeMax) return LargestMagnitude(v) / kMaxScale;
  if (normalize == 1) {
    for (const double x : v) sum = sum + std::abs(x);
    return sum;
  }
  if (normalize == kNormalizeEuclidean) {
    for (const double x : v) sum = sum + x * x;
    return std::sqrt(sum);
  }
  // Relative to the largest magnitude, so that no power overflows.
  const double largest = LargestMagnitude(v);
  if (largest == 0) return 0;
  for (const double x : v) sum = sum + Power(std::abs(x) / largest, normalize);
  return largest * Root(sum, normalize);
}

}  // namespace

absl::StatusOr<Pooling> ParsePooling(const std::string& name) {
  for (const Pooling pooling : {Pooling::kNone, Pooling::kMean, Pooling::kCls, Pooling::kLast}) {
    if (name == PoolingName(pooling)) return pooling;
  }
  return Invalid("'", name, "' is no kind of pooling: none, mean, cls or last");
}

const char* PoolingName(Pooling pooling) {
  static constexpr const char* kNames[] = {"none", "mean", "cls", "last"};
  return kNames[static_cast<size_t>(pooling)];
}

absl::Status CheckNormalize(int32_t normalize) {
  if (normalize >= kNormalizeNone && normalize <= kLargestNorm) return absl::OkStatus();
  return Invalid("normalize is ", normalize, ": -1 for none, 0 for the largest magnitude, 1 to ",
                 kLargestNorm, " for that p-norm");
}

Pooler::Pooler(Pooling pooling, int32_t normalize, int64_t width, int64_t rows)
    : pooling_(pooling), normalize_(normalize), pooled_(static_cast<size_t>(width), 0.0) {
  out_.reserve(static_cast<size_t>(pooling == Pooling::kNone ? width * rows : width));
}

void Pooler::Add(std::span<const float> row) {
  const bool first = rows_++ == 0;
  if (pooling_ == Pooling::kCls && !first) return;
  const bool adds = pooling_ == Pooling::kMean && !first;
  for (size_t i = 0; i < pooled_.size(); ++i) {
    pooled_[i] = adds ? pooled_[i] + static_cast<double>(row[i]) : static_cast<double>(row[i]);
  }
  if (pooling_ == Pooling::kNone) AppendNormalized();
}

std::vector<float> Pooler::Finish() {
  if (pooling_ == Pooling::kNone) return std::move(out_);
  if (pooling_ == Pooling::kMean && rows_ > 1) {
    for (double& x : pooled_) x = x / static_cast<double>(rows_);
  }
  AppendNormalized();
  return std::move(out_);
}

void Pooler::AppendNormalized() {
  const double norm = Norm(pooled_, normalize_);
  for (const double x : pooled_) out_.push_back(norm > 0 ? static_cast<float>(x / norm) : 0.0f);
}

double CosineSimilarity(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    dot = dot + x * y;
    aa = aa + x * x;
    bb = bb + y * y;
  }
  const double length = std::sqrt(aa) * std::sqrt(bb);
  // Rounding may push it past 1, which is no cosine.
  return length > 0 ? std::clamp(dot / length, -1.0, 1.0) : 0;
}

}  // namespace trine
