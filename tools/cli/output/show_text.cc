#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/model_summary.h"
#include "runtime/gguf/quoted.h"
#include "tools/cli/output/show_report.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

using gguf::TensorSum;

constexpr size_t kMaxText = 100;
constexpr size_t kMaxElements = 5;

// Formats a number as in "27.3 M".
std::string FormatCount(uint64_t count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  auto value = static_cast<double>(count);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  if (unit == 0) return absl::StrCat(count);
  return absl::StrFormat("%.*f%s", value >= 100 ? 0 : 1, value, kUnits[unit]);
}

// Cuts a long text, and then adds its length.
std::string TextOf(std::string_view text) {
  if (text.size() <= kMaxText) return gguf::Printable(text);
  return absl::StrCat(gguf::Printable(gguf::Cut(text, kMaxText)), "... (", text.size(), " bytes)");
}

std::string TextOf(const gguf::Value& value);

template <class T, class Format>
std::string FirstOf(const std::vector<T>& elements, const Format& format) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(elements.size(), kMaxElements); ++i) {
    texts.push_back(format(elements[i]));
  }
  return absl::StrCat("[", absl::StrJoin(texts, ", "),
                      elements.size() > kMaxElements ? ", ...]" : "]");
}

std::string TextOf(const gguf::Array& array) {
  if (!array.strings.empty()) return FirstOf(array.strings, gguf::Quoted);
  if (!array.nested.empty()) {
    return FirstOf(array.nested, [](const gguf::Value& value) { return TextOf(value); });
  }
  if (!array.floats.empty()) {
    return FirstOf(array.floats, [](double x) { return absl::StrFormat("%.7g", x); });
  }
  return FirstOf(array.integers, [&](int64_t x) {
    if (array.element_type == static_cast<uint32_t>(gguf::ValueType::kUint64)) {
      return absl::StrCat(static_cast<uint64_t>(x));
    }
    return absl::StrCat(x);
  });
}

std::string TextOf(const gguf::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value.value)) return absl::StrCat(*number);
  if (const auto* number = std::get_if<uint64_t>(&value.value)) return absl::StrCat(*number);
  if (const auto* number = std::get_if<double>(&value.value)) {
    return absl::StrFormat("%.7g", *number);
  }
  if (const auto* text = std::get_if<std::string_view>(&value.value)) return TextOf(*text);
  if (const auto* array = std::get_if<gguf::Array>(&value.value)) return TextOf(*array);
  return "";
}

std::string TypeOf(const gguf::Value& value) {
  const auto* array = std::get_if<gguf::Array>(&value.value);
  if (array == nullptr) return gguf::ValueTypeName(value.type);
  return absl::StrCat(array->size, " x ", gguf::ValueTypeName(array->element_type));
}

std::string HeadText(const gguf::File& file, const gguf::ModelSummary& summary) {
  uint64_t file_bytes = 0;
  for (const gguf::Part& part : file.parts()) file_bytes += part.file_bytes;
  std::string text = absl::StrCat("File    ", gguf::Printable(file.parts()[0].path), "\n        ");
  absl::StrAppend(&text, "GGUF version ", file.version(), ", ", FormatBytes(file_bytes));
  if (file.parts().size() > 1) absl::StrAppend(&text, " in ", file.parts().size(), " parts");
  const auto field = [&](const char* key) {
    const auto value = file.metadata().StringOr(key, "");
    return value.ok() && !value->empty() ? TextOf(*value) : std::string("unknown");
  };
  absl::StrAppend(&text, "\nModel   ", field("general.name"), ", architecture ",
                  field("general.architecture"), "\n        ");
  if (summary.all.tensors == 0) return text + "no tensors: a vocabulary, not a model\n";
  const std::string type = gguf::FileTypeOf(file.metadata());
  absl::StrAppend(&text, type.empty() ? "" : type + ", ");
  return absl::StrCat(text, FormatCount(summary.all.parameters), " parameters, ",
                      FormatBytes(summary.all.bytes),
                      absl::StrFormat(", %.2f bits per weight\n", summary.all.BitsPerWeight()));
}

std::string MetadataTable(const gguf::Metadata& metadata) {
  TextTable table({"key", "type", "value"});
  for (const gguf::Metadata::Entry& entry : metadata.entries()) {
    table.Add({TextOf(entry.key), TypeOf(entry.value), TextOf(entry.value)});
  }
  return table.empty() ? "  none\n" : table.Format();
}

std::string TensorTable(const gguf::File& file) {
  TextTable table({"name", "type", "shape", "bytes"});
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    table.Add({TextOf(tensor.name), gguf::TensorTypeName(tensor.type),
               absl::StrJoin(tensor.dims, tensor.dims + tensor.rank, " x "),
               absl::StrCat(tensor.bytes)});
  }
  return table.empty() ? "  none\n" : table.Format();
}

std::string TypeTable(const gguf::ModelSummary& summary) {
  TextTable table({"type", "tensors", "parameters", "bytes", "share"});
  for (const auto& [type, sum] : summary.by_type) {
    const double share = static_cast<double>(sum.bytes) / static_cast<double>(summary.all.bytes);
    table.Add({gguf::TensorTypeName(type), absl::StrCat(sum.tensors), FormatCount(sum.parameters),
               FormatBytes(sum.bytes), absl::StrFormat("%.1f%%", 100 * share)});
  }
  return table.empty() ? "  none\n" : table.Format();
}

std::string TypesOf(const TensorSum& sum) {
  std::vector<std::string> names;
  for (const auto& [type, bytes] : sum.bytes_by_type) names.push_back(gguf::TensorTypeName(type));
  return absl::StrJoin(names, ", ");
}

// Formats sorted numbers as "0-3, 6, 9-31".
std::string RangesOf(const std::vector<int64_t>& numbers) {
  std::vector<std::string> ranges;
  for (size_t first = 0, next; first < numbers.size(); first = next) {
    next = first + 1;
    while (next < numbers.size() && numbers[next] == numbers[next - 1] + 1) ++next;
    ranges.push_back(next == first + 1 ? absl::StrCat(numbers[first])
                                       : absl::StrCat(numbers[first], "-", numbers[next - 1]));
  }
  return absl::StrJoin(ranges, ", ");
}

// Layers that have the same number of tensors and the same bytes of each type. Groups are in the
// order of their first layers.
struct LayerKind {
  const TensorSum* sum;
  std::vector<int64_t> layers;
};
std::vector<LayerKind> LayerKinds(const gguf::ModelSummary& summary) {
  std::vector<LayerKind> kinds;
  std::map<std::pair<uint64_t, std::map<quant::Type, uint64_t>>, size_t> index;
  for (const auto& [layer, sum] : summary.layers) {
    const auto [place, is_new] = index.try_emplace({sum.tensors, sum.bytes_by_type}, kinds.size());
    if (is_new) kinds.push_back({&sum, {}});
    kinds[place->second].layers.push_back(layer);
  }
  return kinds;
}

// Formats the weights by the place that needs them.
std::string WeightTable(const gguf::ModelSummary& summary) {
  TextTable table({"weights", "tensors", "bytes", "together", "types", "which"});
  const auto add = [&](const std::string& place, const TensorSum& sum, uint64_t times,
                       const std::string& which) {
    if (sum.tensors == 0) return;
    table.Add({place, absl::StrCat(sum.tensors), FormatBytes(sum.bytes),
               FormatBytes(sum.bytes * times), TypesOf(sum), which});
  };
  add("embedding", summary.embedding, 1, "with the first layer");
  for (const LayerKind& kind : LayerKinds(summary)) {
    const size_t count = kind.layers.size();
    add(count == 1 ? "1 layer" : absl::StrCat(count, " layers, each"), *kind.sum, count,
        RangesOf(kind.layers));
  }
  add("output", summary.output, 1, "with the last layer");
  add("other", summary.other, 1, "");
  std::string text = table.empty() ? "  none\n" : table.Format();
  if (summary.output_is_embedding) {
    absl::StrAppend(&text, "  The output is the embedding: the tiers of the first and of the last ",
                    "layer both need it.\n");
  }
  return text;
}

std::string KvTable(const gguf::ModelShape& shape) {
  TextTable table({"KV cache", "per token and layer", "per token",
                   absl::StrCat("for ", shape.context, " tokens")});
  for (const CacheType& cache : kCacheTypes) {
    const auto token = gguf::KvBytes(shape, cache.type, 1);
    const auto full = gguf::KvBytes(shape, cache.type, shape.context);
    if (!token || !full) {
      table.Add({cache.name, "-", "-", "heads are no whole blocks, or too large"});
      continue;
    }
    table.Add({cache.name, FormatBytes(*token / static_cast<uint64_t>(shape.layers)),
               FormatBytes(*token), FormatBytes(*full)});
  }
  return table.Format();
}

// Formats the memory that a tier needs: weights and KV cache of its layers, and scratch once.
std::string NeedsText(const gguf::File& file, const gguf::ModelSummary& summary) {
  std::string text = absl::StrCat("\nWhat a tier needs\n", WeightTable(summary));
  const absl::StatusOr<gguf::ModelShape> shape = gguf::ReadModelShape(file);
  if (!shape.ok()) {
    return absl::StrCat(text, "  KV cache and scratch are not known: ",
                        std::string(shape.status().message()), "\n");
  }
  const uint64_t scratch = gguf::ScratchBytes(*shape, kScratchTokens);
  absl::StrAppend(&text, "\n", KvTable(*shape), "\n  Scratch: about ", FormatBytes(scratch),
                  " on each tier, for ", kScratchTokens, " tokens in a pass\n");
  const auto kv = gguf::KvBytes(*shape, quant::Type::kF16, shape->context);
  if (kv && summary.all.tensors > 0) {
    absl::StrAppend(&text, "  All on one tier, f16 cache, ", shape->context, " tokens: about ",
                    FormatBytes(summary.all.bytes + *kv + scratch), "\n");
  }
  return text;
}

}  // namespace

std::string FormatModel(const gguf::File& file, bool all_tensors) {
  const gguf::ModelSummary summary = gguf::Summarize(file);
  std::string text = HeadText(file, summary);
  absl::StrAppend(&text, "\nMetadata\n", MetadataTable(file.metadata()), "\nTensors\n");
  absl::StrAppend(&text, all_tensors ? TensorTable(file) + "\n" : "", TypeTable(summary));
  return text + NeedsText(file, summary);
}

}  // namespace trine
