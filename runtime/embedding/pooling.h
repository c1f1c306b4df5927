// From the rows a model gives for a text to the text's vector: pooling, then scaling to a length.
// Binary64 in a written order (docs/numerics.md, "Embeddings"), so that the vector is a function of
// the rows alone.
#ifndef TRINE_RUNTIME_EMBEDDING_POOLING_H_
#define TRINE_RUNTIME_EMBEDDING_POOLING_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

// Numbered as GGUF's ARCH.pooling_type.
enum class Pooling {
  kNone = 0,  // every token keeps its vector
  kMean = 1,
  kCls = 2,   // the first token's
  kLast = 3,  // the last token's
};

// none, mean, cls, last. INVALID_ARGUMENT lists them.
absl::StatusOr<Pooling> ParsePooling(const std::string& name);
const char* PoolingName(Pooling pooling);

// What a vector is divided by; any p from 1 on is its p-norm.
inline constexpr int32_t kNormalizeNone = -1;
inline constexpr int32_t kNormalizeMax = 0;  // the largest magnitude becomes 32760
inline constexpr int32_t kNormalizeEuclidean = 2;
inline constexpr int32_t kLargestNorm = 32;

absl::Status CheckNormalize(int32_t normalize);

// One text's. Allocates only when it is made.
class Pooler {
 public:
  // `rows` is how many there will be, of `width` values each.
  Pooler(Pooling pooling, int32_t normalize, int64_t width, int64_t rows);

  // The rows by increasing position: all of them, or for kLast the last one at least.
  void Add(std::span<const float> row);

  // After the last row: the vector, or for kNone the vectors behind one another.
  std::vector<float> Finish();

 private:
  void AppendNormalized();

  Pooling pooling_;
  int32_t normalize_;
  int64_t rows_ = 0;
  std::vector<double> pooled_;
  std::vector<float> out_;
};

// Of the angle between two vectors of one length; 0 where one of them is 0.
double CosineSimilarity(std::span<const float> a, std::span<const float> b);

}  // namespace trine

#endif  // TRINE_RUNTIME_EMBEDDING_POOLING_H_
