// What a pass does with KV blocks before and after it computes. Every stage does its part of it
// when the pass comes to it, so what passes before it wrote is there, and what passes behind it
// write is not.
#ifndef TRINE_RUNTIME_MODEL_KV_MOVES_H_
#define TRINE_RUNTIME_MODEL_KV_MOVES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace trine {

// What one block holds in the caches of all layers, K before V, in the canonical layout
// (docs/plugin-abi.md): the same bytes wherever the layers are.
using KvBlockBytes = std::vector<std::byte>;

struct KvMoves {
  struct Copy {
    int32_t from, to;
  };
  struct Load {
    int32_t to;
    std::shared_ptr<const KvBlockBytes> bytes;  // Model::kv_block_bytes() of them
  };
  struct Save {
    int32_t from;
    std::shared_ptr<KvBlockBytes> bytes;  // there when the pass has been through all stages
  };

  // Before it computes: one that was loaded may be copied.
  std::vector<Load> loads;
  std::vector<Copy> copies;
  // After it.
  std::vector<Save> saves;

  size_t before() const { return loads.size() + copies.size(); }
  void Clear() {
    loads.clear();
    copies.clear();
    saves.clear();
  }
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_KV_MOVES_H_
