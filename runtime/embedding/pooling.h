// Turns the rows that a model gives for a text into the text's vector: pools the rows, then scales
// the result. Computes in binary64 and in an order that docs/numerics.md ("Embeddings") defines, so
// that the vector depends on the rows only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

// The way to pool rows. The numbers are those of GGUF's ARCH.pooling_type.
enum class Pooling {
  kNone = 0,  // every token keeps its vector
  kMean = 1,
  kCls = 2,   // the row of the first token
  kLast = 3,  // the row of the last token
};

// Parses none, mean, cls or last. Returns INVALID_ARGUMENT, which lists these names, for any other.
absl::StatusOr<Pooling> ParsePooling(const std::string& name);
const char* PoolingName(Pooling pooling);

// Values of `normalize`, which chooses the number that a vector is divided by. A value p from 1 to
// kLargestNorm chooses the p-norm.
inline constexpr int32_t kNormalizeNone = -1;
inline constexpr int32_t kNormalizeMax = 0;  // the largest magnitude becomes 32760
inline constexpr int32_t kNormalizeEuclidean = 2;
inline constexpr int32_t kLargestNorm = 32;

absl::Status CheckNormalize(int32_t normalize);

// Pools the rows of one text. Allocates only in the constructor.
class Pooler {
 public:
  // `rows` is the number of rows that the text has, with `width` values each.
  Pooler(Pooling pooling, int32_t normalize, int64_t width, int64_t rows);

  // Adds the next row. Rows come by increasing position; for kLast only the last one is needed.
  void Add(std::span<const float> row);

  // Call it after the last row. Returns the vector or, for kNone, all vectors one after another.
  std::vector<float> Finish();

 private:
  void AppendNormalized();

  Pooling pooling_;
  int32_t normalize_;
  int64_t rows_ = 0;
  std::vector<double> pooled_;
  std::vector<float> out_;
};

// Returns the cosine of the angle between two vectors of the same length. Returns 0 if one of them
// has only zeros.
double CosineSimilarity(std::span<const float> a, std::span<const float> b);

}  // namespace trine
