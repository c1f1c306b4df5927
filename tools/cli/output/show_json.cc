#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "runtime/gguf/format.h"
#include "runtime/gguf/model_summary.h"
#include "tools/cli/output/show_report.h"

namespace trine {
namespace {

using gguf::TensorSum;
using Json = nlohmann::ordered_json;

Json JsonOf(const gguf::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&value.value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value.value)) return *number;
  if (const auto* number = std::get_if<double>(&value.value)) return *number;
  if (const auto* text = std::get_if<std::string_view>(&value.value)) return std::string(*text);
  Json json = Json::array();
  const auto* array = std::get_if<gguf::Array>(&value.value);
  if (array == nullptr) return json;
  const auto type = static_cast<gguf::ValueType>(array->element_type);
  for (const int64_t x : array->integers) {
    if (type == gguf::ValueType::kBool) {
      json.push_back(x != 0);
    } else if (type == gguf::ValueType::kUint64) {
      json.push_back(static_cast<uint64_t>(x));
    } else {
      json.push_back(x);
    }
  }
  for (const double x : array->floats) json.push_back(x);
  for (const std::string_view text : array->strings) json.push_back(std::string(text));
  for (const gguf::Value& nested : array->nested) json.push_back(JsonOf(nested));
  return json;
}

Json JsonOf(const TensorSum& sum) {
  return {{"tensor_count", sum.tensors}, {"parameters", sum.parameters}, {"bytes", sum.bytes}};
}

Json MetadataJson(const gguf::Metadata& metadata) {
  Json json = Json::object();
  // Append without searching for an equal key: the reader has made sure that there is none.
  auto& object = json.get_ref<Json::object_t&>();
  for (const gguf::Metadata::Entry& entry : metadata.entries()) {
    object.emplace_back(std::string(entry.key), JsonOf(entry.value));
  }
  return json;
}

Json TensorsJson(const gguf::File& file) {
  Json json = Json::array();
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    Json shape = Json::array();
    for (uint32_t i = 0; i < tensor.rank; ++i) shape.push_back(tensor.dims[i]);
    json.push_back({{"name", std::string(tensor.name)},
                    {"type", gguf::TensorTypeName(tensor.type)},
                    {"shape", std::move(shape)},
                    {"bytes", tensor.bytes},
                    {"part", tensor.part},
                    {"offset", tensor.offset}});
  }
  return json;
}

Json KvJson(const gguf::ModelShape& shape) {
  Json json = Json::object();
  for (const CacheType& cache : kCacheTypes) {
    const auto token = gguf::KvBytes(shape, cache.type, 1);
    const auto full = gguf::KvBytes(shape, cache.type, shape.context);
    if (!token || !full) continue;
    json[cache.name] = {{"bytes_per_token", *token}, {"bytes_for_context", *full}};
  }
  return json;
}

Json NeedsJson(const gguf::File& file, const gguf::ModelSummary& summary) {
  Json layers = Json::array();
  for (const auto& [layer, sum] : summary.layers) {
    Json entry = JsonOf(sum);
    entry["layer"] = layer;
    layers.push_back(std::move(entry));
  }
  Json json = {{"embedding", JsonOf(summary.embedding)},
               {"layers", std::move(layers)},
               {"output", JsonOf(summary.output)},
               {"other", JsonOf(summary.other)},
               {"output_is_embedding", summary.output_is_embedding}};
  const absl::StatusOr<gguf::ModelShape> shape = gguf::ReadModelShape(file);
  if (!shape.ok()) {
    json["unknown"] = std::string(shape.status().message());
    return json;
  }
  json["context"] = shape->context;
  json["kv_cache"] = KvJson(*shape);
  json["scratch"] = {{"tokens", kScratchTokens},
                     {"bytes", gguf::ScratchBytes(*shape, kScratchTokens)}};
  return json;
}

}  // namespace

std::string FormatModelJson(const gguf::File& file) {
  const gguf::ModelSummary summary = gguf::Summarize(file);
  Json parts = Json::array();
  for (const gguf::Part& part : file.parts()) {
    parts.push_back({{"path", part.path}, {"bytes", part.file_bytes}});
  }
  Json types = Json::object();
  for (const auto& [type, sum] : summary.by_type) types[gguf::TensorTypeName(type)] = JsonOf(sum);
  Json json = {{"parts", std::move(parts)}, {"gguf_version", file.version()}};
  json.update(JsonOf(summary.all));
  const std::string file_type = gguf::FileTypeOf(file.metadata());
  json["file_type"] = file_type.empty() ? Json() : Json(file_type);
  json["bits_per_weight"] = summary.all.BitsPerWeight();
  json["types"] = std::move(types);
  json["needs"] = NeedsJson(file, summary);
  json["metadata"] = MetadataJson(file.metadata());
  json["tensors"] = TensorsJson(file);
  // Tokens of a byte vocabulary may not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trine
