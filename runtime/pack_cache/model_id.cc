#include "runtime/pack_cache/model_id.h"

#include <algorithm>
#include <string>

#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

constexpr uint64_t kSample = 4096;  // bytes, at either end of a tensor

void Append(uint64_t word, std::string* bytes) {
  for (int shift = 0; shift < 64; shift += 8) {
    bytes->push_back(static_cast<char>((word >> shift) & 0xff));
  }
}

}  // namespace

uint64_t ModelId(const gguf::File& file) {
  std::string bytes;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    Append(tensor.name.size(), &bytes);
    bytes.append(tensor.name);
    Append(static_cast<uint64_t>(tensor.type), &bytes);
    Append(tensor.rank, &bytes);
    for (uint32_t i = 0; i < tensor.rank; ++i) {
      Append(static_cast<uint64_t>(tensor.dims[i]), &bytes);
    }
    const uint64_t n = std::min(kSample, tensor.bytes);
    Append(Hash64(tensor.data, n, 0), &bytes);
    Append(Hash64(tensor.data + (tensor.bytes - n), n, 1), &bytes);
  }
  return Hash64(bytes.data(), bytes.size(), 0);
}

}  // namespace trine
