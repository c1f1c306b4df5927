#include "runtime/model/weights/weight_pass.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "kernels/quant/scalar.h"
#include "kernels/quant/validate.h"
#include "runtime/base/invalid.h"
#include "runtime/model/weights/team_pieces.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

uint64_t RowBytes(const gguf::TensorInfo& t) { return t.bytes / static_cast<uint64_t>(t.Rows()); }

bool RowIsCanonical(quant::Type type, const std::byte* row, int64_t n) {
  bool same = true;
  if (type == quant::Type::kF32) {
    const auto* x = reinterpret_cast<const float*>(row);
    for (int64_t i = 0; i < n; ++i) same &= quant::Bits(quant::Canon(x[i])) == quant::Bits(x[i]);
  } else if (type == quant::Type::kBF16) {
    const auto* x = reinterpret_cast<const uint16_t*>(row);
    for (int64_t i = 0; i < n; ++i) {
      const float value = quant::Bf16ToF32(x[i]);
      same &= quant::Bits(quant::Canon(value)) == quant::Bits(value);
    }
  }
  return same;
}

absl::Status CheckRows(const gguf::TensorInfo& t, uint64_t begin, uint64_t end,
                       bool* out_of_range) {
  for (uint64_t r = begin; r < end; ++r) {
    const std::byte* row = t.data + r * RowBytes(t);
    if (!quant::RowIsFinite(t.type, row, t.dims[0])) {
      return Invalid("tensor ", std::string(t.name),
                     " holds a value or scale that is no finite number, in row ", r);
    }
    if (!RowIsCanonical(t.type, row, t.dims[0])) *out_of_range = true;
  }
  return absl::OkStatus();
}

// Returns the address at which a tensor would begin whose bytes from `offset` on are at `part`. The
// ABI takes such an address, of which only a range is mapped.
std::byte* WholeOf(const std::byte* part, uint64_t offset) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(part) - offset);
}

// The results of a task, which several threads add to.
struct State {
  std::atomic<bool> out_of_range{false};
  std::atomic<uint64_t> source_hash{0};
  std::atomic<uint64_t> checksum{0};
};

class WeightPass {
 public:
  WeightPass(const gguf::File& file, const std::vector<WeightTask>& tasks, bool hash)
      : file_(file), tasks_(tasks), hash_(hash), states_(tasks.size()) {}

  // Works on units of a task: groups if it packs, else rows.
  absl::Status Do(size_t task, uint64_t begin, uint64_t end) {
    const WeightTask& t = tasks_[task];
    uint64_t rows_begin = begin, rows_end = end;
    if (t.pack != nullptr) {
      rows_begin = t.pack->layout.RowBegin(begin);
      rows_end = t.pack->layout.RowEnd(end - 1);
    }
    bool out_of_range = false;
    if (t.check) {
      const absl::Status s = CheckRows(*t.tensor, rows_begin, rows_end, &out_of_range);
      if (!s.ok()) return s;
    } else if (t.pack != nullptr) {
      out_of_range = !RowsAreCanonical(*t.tensor, rows_begin, rows_end);
    }
    if (out_of_range) states_[task].out_of_range = true;
    if (t.pack != nullptr) {
      const absl::Status s = Pack(task, begin, end, rows_begin, rows_end, out_of_range);
      if (!s.ok()) return s;
    }
    const uint64_t row_bytes = RowBytes(*t.tensor);
    if (t.release) file_.Release(*t.tensor, rows_begin * row_bytes, rows_end * row_bytes);
    return absl::OkStatus();
  }

  const State& state(size_t task) const { return states_[task]; }

 private:
  static bool RowsAreCanonical(const gguf::TensorInfo& t, uint64_t begin, uint64_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      if (!RowIsCanonical(t.type, t.data + r * RowBytes(t), t.dims[0])) return false;
    }
    return true;
  }

  absl::Status Pack(size_t task, uint64_t begin, uint64_t end, uint64_t rows_begin,
                    uint64_t rows_end, bool canon) {
    const gguf::TensorInfo& tensor = *tasks_[task].tensor;
    const PackedWeight& to = *tasks_[task].pack;
    const uint64_t row_bytes = RowBytes(tensor), group_bytes = to.layout.group_bytes();
    const std::byte* plain = tensor.data + rows_begin * row_bytes;
    if (hash_) states_[task].source_hash += HashRows(plain, row_bytes, rows_begin, rows_end);
    std::vector<std::byte> in_range;
    if (canon) {
      in_range.assign(plain, plain + (rows_end - rows_begin) * row_bytes);
      quant::CanonRow(tensor.type, in_range.data(),
                      tensor.dims[0] * static_cast<int64_t>(rows_end - rows_begin));
      plain = in_range.data();
    }
    std::vector<std::byte> staging;
    std::byte* packed = to.writable();
    if (packed != nullptr) {
      packed += begin * group_bytes;
    } else {
      staging.resize((end - begin) * group_bytes);
      packed = staging.data();
    }
    absl::Status s = to.device->Pack(to.layout, begin, end, WholeOf(plain, rows_begin * row_bytes),
                                     WholeOf(packed, begin * group_bytes));
    if (hash_ && s.ok()) {
      states_[task].checksum += HashRows(packed, group_bytes, begin, end);
    }
    if (s.ok() && !staging.empty()) {
      s = to.Write(begin * group_bytes, staging.data(), staging.size());
    }
    if (s.ok() || absl::IsUnavailable(s)) return s;
    return absl::InternalError(
        absl::StrCat("tensor ", std::string(tensor.name), " could not be packed: ", s.message()));
  }

  const gguf::File& file_;
  const std::vector<WeightTask>& tasks_;
  const bool hash_;
  std::vector<State> states_;
};

TeamRange RangeOf(const WeightTask& t) {
  const auto rows = static_cast<uint64_t>(t.tensor->Rows());
  if (t.pack == nullptr) return {rows, RowBytes(*t.tensor)};
  const PackedLayout& layout = t.pack->layout;
  return {layout.groups(), std::min(rows, layout.group_rows()) * layout.row_bytes()};
}

// Returns a slice's name without the rows at its end.
std::string_view WholeName(std::string_view name) { return name.substr(0, name.find('[')); }

}  // namespace

uint64_t WorkOf(const std::vector<WeightTask>& tasks) {
  uint64_t bytes = 0;
  for (const WeightTask& t : tasks) {
    const TeamRange range = RangeOf(t);
    bytes += range.units * range.unit_bytes;
  }
  return bytes;
}

absl::Status RunWeightPass(const gguf::File& file, std::vector<WeightTask>* tasks, bool hash,
                           const HostServices& host, LoadMeter* meter) {
  WeightPass pass(file, *tasks, hash);
  std::vector<TeamRange> ranges;
  for (const WeightTask& t : *tasks) ranges.push_back(RangeOf(t));
  const absl::Status status = RunPieces(
      ranges, host,
      [&](size_t task, uint64_t begin, uint64_t end) { return pass.Do(task, begin, end); }, meter);
  if (!status.ok()) return status;
  for (size_t i = 0; i < tasks->size(); ++i) {
    WeightTask& t = (*tasks)[i];
    t.out_of_range = pass.state(i).out_of_range;
    // Releases the tensor as a whole too, for pages that lie in two slices and for pages that the
    // system mapped around a slice.
    if (t.release) file.Release(*t.tensor, 0, t.tensor->bytes);
    if (t.pack == nullptr) continue;
    t.pack->source_hash = pass.state(i).source_hash;
    t.pack->checksum = pass.state(i).checksum;
  }
  return absl::OkStatus();
}

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
    // Released pages of a mapped file can be read again. Released bytes of a file that was read
    // into memory are gone.
    const bool release = !all.plain && (file_.mapped() || all.packed.size() <= 1);
    bool check = true;
    for (PackedWeight* weight : uses.packed) {
      tasks.push_back({&t, check, weight, release});
      check = false;
    }
    if (uses.plain && check) tasks.push_back({&t});
    if (!all.plain && all.packed.empty()) file_.Release(t, 0, t.bytes);  // the cache has all of it
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
  // `order` is by offset, so the tensor that `t` is a slice of is not far before it.
  const std::string_view whole = WholeName(t.name);
  for (size_t i = index; i > 0 && WholeName(order[i - 1]->name) == whole; --i) add(*order[i - 1]);
  for (size_t i = index; i < order.size() && WholeName(order[i]->name) == whole; ++i) {
    add(*order[i]);
  }
  return all;
}

}  // namespace trine
