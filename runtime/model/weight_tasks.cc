#include "runtime/model/weight_tasks.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace trine {
namespace {

// Without the rows that a slice's name ends with.
std::string_view WholeName(std::string_view name) { return name.substr(0, name.find('[')); }

}  // namespace

void WeightTasks::Add(const gguf::TensorInfo* tensor, PackedWeight* weight, bool placed) {
  Uses& uses = uses_[tensor];
  if (weight == nullptr) uses.plain = true;
  if (weight == nullptr || placed) return;
  if (std::find(uses.packed.begin(), uses.packed.end(), weight) == uses.packed.end()) {
    uses.packed.push_back(weight);
  }
}

std::vector<WeightTask> WeightTasks::Make() const {
  std::vector<const gguf::TensorInfo*> order;
  for (const auto& [tensor, uses] : uses_) order.push_back(tensor);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::tie(a->part, a->offset, a->bytes) < std::tie(b->part, b->offset, b->bytes);
  });
  std::vector<WeightTask> tasks;
  for (size_t i = 0; i < order.size(); ++i) {
    const gguf::TensorInfo& t = *order[i];
    const Uses& uses = uses_.at(&t);
    const Uses all = WithOverlapping(order, i);
    // Pages of a mapped file come back when they are touched; others must not be missed.
    const bool release = !all.plain && (file_.mapped() || all.packed.size() <= 1);
    bool check = true;
    for (PackedWeight* weight : uses.packed) {
      tasks.push_back({&t, check, weight, release});
      check = false;
    }
    if (uses.plain && check) tasks.push_back({&t});
    if (!all.plain && all.packed.empty()) file_.Release(t, 0, t.bytes);  // all in the cache
  }
  return tasks;
}

WeightTasks::Uses WeightTasks::WithOverlapping(const std::vector<const gguf::TensorInfo*>& order,
                                               size_t index) const {
  const gguf::TensorInfo& t = *order[index];
  Uses all;
  const auto add = [&](const gguf::TensorInfo& other) {
    const bool overlaps = other.part == t.part && other.offset < t.offset + t.bytes &&
                          t.offset < other.offset + other.bytes;
    if (!overlaps) return;
    const Uses& uses = uses_.at(&other);
    all.plain = all.plain || uses.plain;
    all.packed.insert(all.packed.end(), uses.packed.begin(), uses.packed.end());
  };
  // In the order of their beginnings: the whole of what `t` is a slice of is not far before it.
  const std::string_view whole = WholeName(t.name);
  for (size_t i = index; i > 0 && WholeName(order[i - 1]->name) == whole; --i) add(*order[i - 1]);
  for (size_t i = index; i < order.size() && WholeName(order[i]->name) == whole; ++i) {
    add(*order[i]);
  }
  return all;
}

}  // namespace trine
