#include "runtime/head/model_identity.h"

#include <bit>
#include <string_view>
#include <variant>

#include "absl/strings/match.h"
#include "runtime/pack_cache/hash64.h"
#include "runtime/pack_cache/model_id.h"

namespace trine {
namespace {

// Everything behind everything, each with its length or type before it.
class Digest {
 public:
  void Add(uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<char>((word >> shift) & 0xff));
    }
  }
  void Add(double x) { Add(std::bit_cast<uint64_t>(x)); }
  void Add(std::string_view text) {
    Add(static_cast<uint64_t>(text.size()));
    bytes_.append(text);
  }
  void Add(const gguf::Array& array) {
    Add(uint64_t{array.element_type});
    Add(array.size);
    for (const gguf::Value& value : array.nested) Add(value);
    for (const int64_t x : array.integers) Add(static_cast<uint64_t>(x));
    for (const double x : array.floats) Add(x);
    for (const std::string_view text : array.strings) Add(text);
  }
  void Add(const gguf::Value& value) {
    Add(uint64_t{value.type});
    if (const auto* flag = std::get_if<bool>(&value.value)) Add(uint64_t{*flag});
    if (const auto* x = std::get_if<int64_t>(&value.value)) Add(static_cast<uint64_t>(*x));
    if (const auto* x = std::get_if<uint64_t>(&value.value)) Add(*x);
    if (const auto* x = std::get_if<double>(&value.value)) Add(*x);
    if (const auto* text = std::get_if<std::string_view>(&value.value)) Add(*text);
    if (const auto* array = std::get_if<gguf::Array>(&value.value)) Add(*array);
  }
  uint64_t Hash() const { return Hash64(bytes_.data(), bytes_.size(), 0); }

 private:
  std::string bytes_;
};

}  // namespace

uint64_t HashModel(const gguf::File& file) {
  Digest digest;
  for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
    if (absl::StartsWith({entry.key.data(), entry.key.size()}, "split.")) continue;
    digest.Add(entry.key);
    digest.Add(entry.value);
  }
  digest.Add(ModelId(file));
  return digest.Hash();
}

ModelIdentity IdentityOf(const gguf::File& file, const ModelConfig& config) {
  return {config.architecture, config.n_embd, config.n_vocab, HashModel(file)};
}

}  // namespace trine
