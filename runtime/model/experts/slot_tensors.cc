#include "runtime/model/experts/slot_tensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine {

const gguf::TensorInfo* SlotTensors::First(const gguf::TensorInfo& all, int64_t count) {
  const gguf::TensorInfo*& known = known_[{&all, count}];
  if (known != nullptr) return known;
  Item& item = items_.emplace_back();
  item.all = count == all.dims[all.rank - 1];
  const std::string which = item.all ? "all" : absl::StrCat(count, " slots");
  item.name = absl::StrCat(std::string(all.name), "[", which, "]");
  item.info = all;
  item.info.name = item.name;
  int64_t& experts = item.info.dims[item.info.rank - 1];
  item.info.bytes = all.bytes / static_cast<uint64_t>(experts) * static_cast<uint64_t>(count);
  experts = count;
  return known = &item.info;
}

const SlotTensors::Item* SlotTensors::Find(const gguf::TensorInfo* tensor) const {
  const auto found = std::find_if(items_.begin(), items_.end(),
                                  [&](const Item& item) { return &item.info == tensor; });
  return found == items_.end() ? nullptr : &*found;
}

bool SlotTensors::HasSome(const gguf::TensorInfo* tensor) const {
  const Item* item = Find(tensor);
  return item != nullptr && !item->all;
}

bool SlotTensors::HasAll(const gguf::TensorInfo* tensor) const {
  const Item* item = Find(tensor);
  return item != nullptr && item->all;
}

}  // namespace trine
