#include "runtime/model/weights/packed_weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"

namespace trine {
namespace {

// Smaller buffers are not put in large pages (sdk::HostMemory).
constexpr uint64_t kSmall = uint64_t{4} << 20;
constexpr uint64_t kSharedBytes = uint64_t{64} << 20;

uint64_t BytesOf(const PackedWeight& weight) { return weight.layout.packed_bytes(); }

bool IsSmall(const PackedWeight& weight) { return BytesOf(weight) < kSmall; }

// Returns where the weight begins in a buffer that is used up to `end`.
uint64_t Aligned(const PackedWeight& weight, uint64_t end) {
  const uint64_t alignment = std::max<uint64_t>(weight.device->info().buffer_alignment, 64);
  return (end + alignment - 1) / alignment * alignment;
}

// Returns how many of the weights, from the first on, share one buffer.
size_t ShareABuffer(absl::Span<PackedWeight* const> weights) {
  const PackedWeight& first = *weights[0];
  if (!IsSmall(first)) return 1;
  const uint64_t largest = first.device->info().max_allocation_bytes;
  const uint64_t most = largest == 0 ? kSharedBytes : std::min(largest, kSharedBytes);
  uint64_t end = BytesOf(first);
  size_t n = 1;
  for (; n < weights.size(); ++n) {
    const PackedWeight& next = *weights[n];
    if (next.device != first.device) break;
    end = Aligned(next, end) + BytesOf(next);
    if (end > most) break;
  }
  return n;
}

using Uses = std::vector<WeightUse*>;  // all uses of one weight of the file

void SetLayout(OpGraph* graph, WeightUse* use, const std::optional<PackedLayout>& layout) {
  use->packed = layout;
  graph->SetLayout(use->tensor, layout ? layout->id() : uint64_t{TRINE_LAYOUT_PLAIN},
                   layout ? layout->packed_bytes() : graph->Bytes(use->tensor));
}

class Chooser {
 public:
  Chooser(const Device& device, OpGraph* graph, const std::function<void(const std::string&)>& warn)
      : device_(device), graph_(*graph), warn_(warn) {}

  void Choose(const Uses& uses) {
    Uses multiplied;
    for (WeightUse* use : uses) {
      if (!graph_.AloneInSlot(use->tensor)) return;  // required by the ABI
      if (!OnlyPicked(*use)) multiplied.push_back(use);
    }
    if (multiplied.empty()) return;
    // Layers repeat: the answer for one holds for the others.
    const auto [found, is_new] = answers_.try_emplace(Signature(uses));
    if (is_new) found->second = Ask(uses, multiplied);
    const Answer& answer = found->second;
    if (!answer.layout) return;
    for (WeightUse* use : answer.all ? uses : multiplied) SetLayout(&graph_, use, answer.layout);
  }

 private:
  struct Answer {
    std::optional<PackedLayout> layout;
    bool all = false;  // for all tensors of the weight; false: only for the multiplied tensors
  };

  bool OnlyPicked(const WeightUse& use) const {
    const std::vector<uint32_t> readers = graph_.Readers(use.tensor);
    return std::all_of(readers.begin(), readers.end(),
                       [&](uint32_t op) { return graph_.op(op).kind == TRINE_OP_GATHER_ROWS; });
  }

  // Returns a key of everything that the answer depends on.
  std::string Signature(const Uses& uses) const {
    std::string text;
    const auto add_tensor = [&](TensorId id) {
      if (id == TRINE_NONE) return absl::StrAppend(&text, "none;");
      const trine_tensor& t = graph_.tensor(id);
      absl::StrAppend(&text, t.dtype, "[", t.dims[0], ",", t.dims[1], ",", t.dims[2], ",",
                      t.dims[3], "]", t.rank, ";");
    };
    for (const WeightUse* use : uses) {
      add_tensor(use->tensor);
      for (const uint32_t reader : graph_.Readers(use->tensor)) {
        const trine_op& op = graph_.op(reader);
        absl::StrAppend(&text, op.kind, "(");
        for (uint32_t i = 0; i < op.n_in; ++i) {
          absl::StrAppend(&text, op.in[i] == use->tensor ? "*" : "");
          add_tensor(op.in[i]);
        }
        absl::StrAppend(&text, ")");
      }
      absl::StrAppend(&text, "|");
    }
    return text;
  }

  Answer Ask(const Uses& uses, const Uses& multiplied) {
    const auto layouts = device_.ListLayouts(graph_.View(), multiplied.front()->tensor);
    if (!layouts.ok()) {
      if (absl::IsInternal(layouts.status())) {
        warn_(absl::StrCat(layouts.status().message(), "; the weight stays as in the file"));
      }
      return {};
    }
    for (const bool all : {true, false}) {
      if (!all && uses.size() == multiplied.size()) break;
      for (const PackedLayout& layout : *layouts) {
        if (Takes(all ? uses : multiplied, layout)) return {layout, all};
      }
    }
    return {};
  }

  // Returns whether the device runs all ops that read any of these uses with the layout. Leaves the
  // uses plain.
  bool Takes(const Uses& uses, const PackedLayout& layout) {
    for (WeightUse* use : uses) SetLayout(&graph_, use, layout);
    const bool taken = std::all_of(uses.begin(), uses.end(), [&](const WeightUse* use) {
      return RunsReaders(device_, graph_, use->tensor);
    });
    for (WeightUse* use : uses) SetLayout(&graph_, use, std::nullopt);
    return taken;
  }

  const Device& device_;
  OpGraph& graph_;
  const std::function<void(const std::string&)>& warn_;
  std::map<std::string, Answer> answers_;
};

}  // namespace

PackedWeight* PackedWeights::Add(const std::shared_ptr<Device>& device,
                                 const gguf::TensorInfo* tensor, const PackedLayout& layout) {
  for (PackedWeight& item : items_) {
    if (item.device == device && item.tensor == tensor && item.layout.id() == layout.id()) {
      return &item;
    }
  }
  items_.push_back({device, tensor, layout});
  return &items_.back();
}

const PackedWeight* PackedWeights::Find(const Device* device, const gguf::TensorInfo* tensor,
                                        uint64_t layout) const {
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const PackedWeight& item) {
    return item.device.get() == device && item.tensor == tensor && item.layout.id() == layout;
  });
  return found == items_.end() ? nullptr : &*found;
}

bool PackedWeights::Holds(const gguf::TensorInfo* tensor) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const PackedWeight& item) { return item.tensor == tensor; });
}

std::vector<absl::Span<const std::byte>> PackedWeights::Visible() const {
  std::vector<absl::Span<const std::byte>> ranges;
  for (const PackedWeight& item : items_) {
    if (item.visible != nullptr) ranges.emplace_back(item.visible, item.layout.packed_bytes());
  }
  return ranges;
}

uint64_t PackedWeights::bytes() const {
  uint64_t bytes = 0;
  for (const PackedWeight& item : items_) bytes += item.layout.packed_bytes();
  return bytes;
}

std::byte* PackedWeight::writable() const {
  auto* const data = static_cast<std::byte*>(buffer->host_ptr());
  return data == nullptr ? nullptr : data + span.offset;
}

void PackedWeights::Clear() {
  items_.clear();
  buffers_.clear();
}

absl::Status PackedWeights::Allocate() {
  std::vector<PackedWeight*> left;
  for (PackedWeight& item : items_) {
    if (item.span.buffer == nullptr) left.push_back(&item);
  }
  // Puts a device's small weights next to each other, in the order in which they are read.
  std::stable_sort(left.begin(), left.end(), [](const PackedWeight* a, const PackedWeight* b) {
    return std::pair(a->device.get(), IsSmall(*a)) < std::pair(b->device.get(), IsSmall(*b));
  });
  for (size_t i = 0; i < left.size();) {
    const size_t n = ShareABuffer(absl::MakeConstSpan(left).subspan(i));
    if (absl::Status s = AllocateTogether(absl::MakeConstSpan(left).subspan(i, n)); !s.ok()) {
      return s;
    }
    i += n;
  }
  return absl::OkStatus();
}

absl::Status PackedWeights::AllocateTogether(absl::Span<PackedWeight* const> weights) {
  uint64_t bytes = 0;
  for (const PackedWeight* weight : weights) bytes = Aligned(*weight, bytes) + BytesOf(*weight);
  auto allocated = Buffer::Allocate(weights[0]->device, bytes, TRINE_MEMORY_WEIGHTS);
  if (!allocated.ok()) return allocated.status();
  const Buffer& buffer = buffers_.emplace_back(*std::move(allocated));
  uint64_t end = 0;
  for (PackedWeight* weight : weights) {
    const uint64_t begin = Aligned(*weight, end);
    end = begin + BytesOf(*weight);
    weight->buffer = &buffer;
    weight->span = buffer.Span(begin, BytesOf(*weight));
    weight->visible = weight->writable();
  }
  return absl::OkStatus();
}

void PackedWeights::Keep(gguf::FileMemory memory, std::deque<Buffer> imports) {
  cache_ = std::make_unique<gguf::FileMemory>(std::move(memory));
  imports_ = std::move(imports);
}

void ChooseLayouts(const Device& device, SegmentGraph* segment,
                   const std::function<void(const std::string&)>& warn) {
  if (device.table().layout_list == nullptr || device.table().layout_convert == nullptr) return;
  std::map<const gguf::TensorInfo*, Uses> weights;
  for (WeightUse& use : segment->weights) {
    if (!use.as_f32) weights[use.info].push_back(&use);
  }
  Chooser chooser(device, &segment->graph, warn);
  for (const auto& [info, uses] : weights) chooser.Choose(uses);
}

void ClearLayouts(SegmentGraph* segment, const std::function<bool(const WeightUse&)>& which) {
  for (WeightUse& use : segment->weights) {
    if (use.packed && (which == nullptr || which(use))) {
      SetLayout(&segment->graph, &use, std::nullopt);
    }
  }
}

}  // namespace trine
