#include "runtime/model/experts/slot_tensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine {

const gguf::TensorInfo* SlotTensors::First(const gguf::TensorInfo& all, int64_t count) {
  const gguf::TensorInfo*& known = known_[{&all, count}];
  if (known != nullptr) return known;
  Item& item = items_.emplace_back();
  item.name = absl::StrCat(std::string(all.name), "[", count, " slots]");
  item.info = all;
  item.info.name = item.name;
  int64_t& experts = item.info.dims[item.info.rank - 1];
  item.info.bytes = all.bytes / static_cast<uint64_t>(experts) * static_cast<uint64_t>(count);
  experts = count;
  return known = &item.info;
}

bool SlotTensors::Has(const gguf::TensorInfo* tensor) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return &item.info == tensor; });
}

}  // namespace trine
