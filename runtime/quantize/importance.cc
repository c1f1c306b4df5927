#include "runtime/quantize/importance.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/quant/validate.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"

namespace trine::quantize {
namespace {

constexpr char kDatasetsKey[] = "imatrix.datasets";
constexpr char kChunksKey[] = "imatrix.chunk_count";
constexpr absl::string_view kSums = ".in_sum2";
constexpr absl::string_view kCounts = ".counts";

// Reads a text of the format without a header, which has 32-bit lengths.
bool ReadText(gguf::Cursor* cursor, std::string_view* text) {
  return cursor->ReadString<uint32_t>(text, std::numeric_limits<int32_t>::max());
}

}  // namespace

absl::Span<const float> ImportanceMatrix::Find(std::string_view tensor) const {
  const auto found = weights_.find(absl::string_view(tensor.data(), tensor.size()));
  return found == weights_.end() ? absl::Span<const float>() : found->second;
}

absl::StatusOr<ImportanceMatrix> ImportanceMatrix::Read(const std::string& path) {
  auto memory = gguf::FileMemory::Map(path);
  if (!memory.ok()) return gguf::About(path, memory.status());
  ImportanceMatrix matrix;
  const bool is_gguf = memory->bytes() >= sizeof(gguf::kMagic) &&
                       std::memcmp(memory->data(), gguf::kMagic, sizeof(gguf::kMagic)) == 0;
  absl::Status status;
  if (is_gguf) {
    const auto file = gguf::File::Open(path);
    if (!file.ok()) return file.status();
    status = matrix.ReadGguf(**file);
  } else {
    status = matrix.ReadHeadless(absl::MakeConstSpan(memory->data(), memory->bytes()));
  }
  if (status.ok() && matrix.weights_.empty()) {
    status = absl::InvalidArgumentError("holds no importance of any tensor");
  }
  if (status.ok()) return matrix;
  return gguf::About(path, status);
}

absl::Status ImportanceMatrix::Add(std::string_view tensor, std::vector<float> weights) {
  const auto count = static_cast<int64_t>(weights.size());
  const bool negative =
      std::any_of(weights.begin(), weights.end(), [](float weight) { return weight < 0.0f; });
  if (negative || !quant::RowIsFinite(quant::Type::kF32, weights.data(), count)) {
    return Invalid("the importance of the tensor ", gguf::Quoted(tensor),
                   " is negative, infinite or no number");
  }
  if (!weights_.try_emplace(std::string(tensor), std::move(weights)).second) {
    return Invalid("the tensor ", gguf::Quoted(tensor), " stands there twice");
  }
  return absl::OkStatus();
}

// The file has sums of squares, and for each expert the number of summands.
absl::Status ImportanceMatrix::ReadGguf(const gguf::File& file) {
  for (const gguf::TensorInfo& sums : file.tensors()) {
    absl::string_view tensor(sums.name.data(), sums.name.size());
    if (!absl::ConsumeSuffix(&tensor, kSums)) continue;
    const gguf::TensorInfo* counts = file.FindTensor(absl::StrCat(tensor, kCounts));
    if (counts == nullptr || sums.type != quant::Type::kF32 || counts->type != quant::Type::kF32 ||
        counts->Rows() != sums.Rows() || counts->dims[0] != 1) {
      return Invalid("the sums and counts of the tensor ",
                     gguf::Quoted({tensor.data(), tensor.size()}), " do not fit each other");
    }
    const auto columns = static_cast<size_t>(sums.dims[0]);
    const auto* sum = reinterpret_cast<const float*>(sums.data);
    const auto* count = reinterpret_cast<const float*>(counts->data);
    std::vector<float> weights(columns * static_cast<size_t>(sums.Rows()));
    for (size_t i = 0; i < weights.size(); ++i) {
      // An expert that was never used: nothing is known about its columns.
      weights[i] = count[i / columns] > 0.0f ? sum[i] / count[i / columns] : 1.0f;
    }
    if (absl::Status s = Add({tensor.data(), tensor.size()}, std::move(weights)); !s.ok()) return s;
  }
  chunks_ =
      file.metadata().IntegerOr(kChunksKey, 0, std::numeric_limits<int32_t>::max(), 0).value_or(0);
  const auto datasets = file.metadata().ArrayOf(kDatasetsKey);
  if (datasets.ok() && !(*datasets)->strings.empty()) {
    dataset_ = std::string((*datasets)->strings.front());
  }
  return absl::OkStatus();
}

// The file has the number of tensors, and for each its name, the number of measurements, and the
// sum of that many means. The number of chunks and the name of the text may follow.
absl::Status ImportanceMatrix::ReadHeadless(absl::Span<const std::byte> bytes) {
  gguf::Cursor cursor(bytes.data(), bytes.size());
  int32_t tensors = 0;
  if (!cursor.Read(&tensors) || tensors < 1) {
    return absl::InvalidArgumentError("is no importance matrix");
  }
  for (int32_t i = 0; i < tensors; ++i) {
    int32_t calls = 0, values = 0;
    std::string_view tensor;
    const bool head = ReadText(&cursor, &tensor) && cursor.Read(&calls) && cursor.Read(&values);
    if (!head || values < 1 || calls < 0 ||
        static_cast<uint64_t>(values) > cursor.remaining() / sizeof(float)) {
      return Invalid("is no importance matrix, or cut off: entry ", i + 1, " of ", tensors,
                     " does not fit in its ", bytes.size(), " bytes");
    }
    std::vector<float> weights(static_cast<size_t>(values));
    for (float& weight : weights) cursor.Read(&weight);
    if (const absl::Status s = Add(tensor, std::move(weights)); !s.ok()) return s;
  }
  int32_t chunks = 0;
  std::string_view dataset;
  if (cursor.Read(&chunks)) chunks_ = std::max(chunks, 0);
  if (ReadText(&cursor, &dataset)) dataset_ = dataset;
  return absl::OkStatus();
}

}  // namespace trine::quantize
