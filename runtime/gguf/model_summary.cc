#include "runtime/gguf/model_summary.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// Limits far above any model's, so that sizes computed from them stay below 2^63.
constexpr int64_t kMaxLength = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 1 << 16;

TensorSum* PlaceOf(std::string_view name, ModelSummary* summary) {
  if (const std::optional<int64_t> layer = LayerOf(name)) return &summary->layers[*layer];
  for (const std::string_view prefix : {"token_embd", "token_types", "position_embd"}) {
    if (name.starts_with(prefix)) return &summary->embedding;
  }
  return name.starts_with("output") ? &summary->output : &summary->other;
}

// Reads keys of the form ARCH.name. Keeps the first error.
class ShapeReader {
 public:
  ShapeReader(const Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  int64_t Integer(const char* name, int64_t min, int64_t max) {
    return Take(metadata_.Integer(prefix_ + name, min, max));
  }
  int64_t IntegerOr(const char* name, int64_t fallback) {
    return Take(metadata_.IntegerOr(prefix_ + name, 1, kMaxLength, fallback));
  }

  // Reads one number for all layers, or an array with one for each.
  std::vector<int64_t> PerLayer(const char* name, int64_t min, int64_t layers) {
    const std::string key = prefix_ + name;
    const Value* value = metadata_.Find(key);
    if (value == nullptr || !std::holds_alternative<Array>(value->value)) {
      return std::vector<int64_t>(static_cast<size_t>(layers), Integer(name, min, kMaxLength));
    }
    const std::vector<int64_t>& numbers = std::get<Array>(value->value).integers;
    if (numbers.size() != static_cast<size_t>(layers)) {
      Fail(Invalid("the metadata key ", Quoted(key), " has ", numbers.size(),
                   " integers; expected one for ", "each of the ", layers, " layers"));
      return std::vector<int64_t>(static_cast<size_t>(layers), min);
    }
    for (const int64_t number : numbers) {
      if (number >= min && number <= kMaxLength) continue;
      Fail(Invalid("the metadata key ", Quoted(key), " has a ", number, "; expected ", min, " to ",
                   kMaxLength));
    }
    return numbers;
  }
  bool Has(const char* name) const { return metadata_.Has(prefix_ + name); }
  const absl::Status& status() const { return status_; }

 private:
  int64_t Take(const absl::StatusOr<int64_t>& value) {
    if (value.ok()) return *value;
    Fail(value.status());
    return 1;
  }
  void Fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const Metadata& metadata_;
  const std::string prefix_;
  absl::Status status_;
};

int64_t Largest(const std::vector<int64_t>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

}  // namespace

void TensorSum::Add(const TensorInfo& tensor) {
  ++tensors;
  parameters += static_cast<uint64_t>(tensor.dims[0] * tensor.Rows());
  bytes += tensor.bytes;
  bytes_by_type[tensor.type] += tensor.bytes;
}

double TensorSum::BitsPerWeight() const {
  return parameters == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters);
}

std::optional<int64_t> LayerOf(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  const size_t dot = name.find('.');
  int64_t layer = 0;
  if (dot == std::string_view::npos ||
      !absl::SimpleAtoi(absl::string_view(name.data(), dot), &layer) || layer < 0) {
    return std::nullopt;
  }
  return layer;
}

ModelSummary Summarize(const File& file) {
  ModelSummary summary;
  for (const TensorInfo& tensor : file.tensors()) {
    summary.all.Add(tensor);
    summary.by_type[tensor.type].Add(tensor);
    PlaceOf(tensor.name, &summary)->Add(tensor);
  }
  summary.output_is_embedding = file.FindTensor("output.weight") == nullptr &&
                                file.FindTensor("token_embd.weight") != nullptr;
  return summary;
}

absl::StatusOr<ModelShape> ReadModelShape(const File& file) {
  const absl::StatusOr<std::string_view> architecture =
      file.metadata().String("general.architecture");
  if (!architecture.ok()) return architecture.status();
  ShapeReader keys(file.metadata(), *architecture);
  ModelShape shape;
  shape.layers = keys.Integer("block_count", 1, kMaxLayers);
  shape.context = keys.Integer("context_length", 1, int64_t{1} << 30);
  shape.width = keys.Integer("embedding_length", 1, kMaxLength);
  shape.heads = keys.PerLayer("attention.head_count", 0, shape.layers);
  shape.kv_heads = keys.Has("attention.head_count_kv")
                       ? keys.PerLayer("attention.head_count_kv", 0, shape.layers)
                       : shape.heads;
  const int64_t most_heads = std::max<int64_t>(Largest(shape.heads), 1);
  const int64_t head_length = std::max<int64_t>(shape.width / most_heads, 1);
  shape.key_length = keys.IntegerOr("attention.key_length", head_length);
  shape.value_length = keys.IntegerOr("attention.value_length", head_length);
  shape.feed_forward = keys.Has("feed_forward_length")
                           ? Largest(keys.PerLayer("feed_forward_length", 0, shape.layers))
                           : 0;
  if (!keys.status().ok()) return keys.status();
  if (const TensorInfo* embedding = file.FindTensor("token_embd.weight")) {
    shape.vocabulary = embedding->dims[1];
  } else if (const auto tokens = file.metadata().ArrayOf("tokenizer.ggml.tokens"); tokens.ok()) {
    shape.vocabulary = static_cast<int64_t>((*tokens)->size);
  }
  return shape;
}

std::optional<uint64_t> KvBytes(const ModelShape& shape, quant::Type type, int64_t n_positions) {
  uint64_t key_bytes = 0, value_bytes = 0;
  if (!quant::RowBytes(type, shape.key_length, &key_bytes) ||
      !quant::RowBytes(type, shape.value_length, &value_bytes)) {
    return std::nullopt;
  }
  uint64_t heads = 0;
  for (const int64_t n : shape.kv_heads) heads += static_cast<uint64_t>(n);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(heads * (key_bytes + value_bytes), static_cast<uint64_t>(n_positions),
                             &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

uint64_t ScratchBytes(const ModelShape& shape, int64_t n_tokens) {
  const int64_t heads = Largest(shape.heads), kv_heads = Largest(shape.kv_heads);
  // At its widest, a layer holds its input, the normed input, and either the tensors of attention
  // (q before and after rope, k, v, the result) or the three of the feed-forward.
  const int64_t attention = 2 * heads * shape.key_length + 2 * kv_heads * shape.key_length +
                            kv_heads * shape.value_length + heads * shape.value_length;
  const int64_t widest = 2 * shape.width + std::max(attention, 3 * shape.feed_forward);
  return sizeof(float) * (static_cast<uint64_t>(n_tokens) * static_cast<uint64_t>(widest) +
                          static_cast<uint64_t>(shape.vocabulary));
}

}  // namespace trine::gguf
