// Tensors that stand for the first experts of weights: the slots of divided layers. Their addresses
// stay.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "runtime/gguf/gguf_file.h"

namespace trine {

class SlotTensors {
 public:
  SlotTensors() = default;
  SlotTensors(const SlotTensors&) = delete;
  SlotTensors& operator=(const SlotTensors&) = delete;

  // Returns the tensor for the first `count` experts of a weight, the same one each time.
  const gguf::TensorInfo* First(const gguf::TensorInfo& all, int64_t count);
  // Return whether a tensor is one of these, for some experts of a weight or for all of them.
  bool HasSome(const gguf::TensorInfo* tensor) const;
  bool HasAll(const gguf::TensorInfo* tensor) const;

 private:
  struct Item {
    std::string name;
    gguf::TensorInfo info;
    bool all = false;
  };
  const Item* Find(const gguf::TensorInfo* tensor) const;

  std::deque<Item> items_;
  std::map<std::pair<const gguf::TensorInfo*, int64_t>, const gguf::TensorInfo*> known_;
};

}  // namespace trine
