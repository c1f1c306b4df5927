#include "dispatch/timed_plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLeastRuns = 5;
constexpr size_t kMostRuns = 64;

// f16 between 0.06 and 0.12 wherever two of them are a scale, and small numbers elsewhere.
std::vector<std::byte> OrdinaryBytes(uint64_t bytes) {
  std::vector<std::byte> data(bytes);
  uint32_t state = 1;
  for (std::byte& b : data) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(0x2c + (state >> 30));
  }
  return data;
}

// The device's first choice that the weight's readers take. Leaves it plain.
std::optional<PackedLayout> ChooseLayout(const Device& device, TensorId weight, OpGraph* graph) {
  const auto layouts = device.ListLayouts(graph->View(TRINE_NUMERICS_EXACT), weight);
  if (!layouts.ok()) return std::nullopt;
  for (const PackedLayout& layout : *layouts) {
    graph->SetLayout(weight, layout.id(), layout.packed_bytes());
    const trine_graph view = graph->View(TRINE_NUMERICS_EXACT);
    const std::vector<uint32_t> readers = graph->Readers(weight);
    const bool taken = std::all_of(readers.begin(), readers.end(), [&](uint32_t op) {
      const auto support = device.QueryOp(view, op);
      return support.ok() && support->support >= TRINE_SUPPORT_EXACT;
    });
    graph->SetLayout(weight, TRINE_LAYOUT_PLAIN, graph->Bytes(weight));
    if (taken) return layout;
  }
  return std::nullopt;
}

// The bytes a weight has on the device. Weights of one type and shape have the same.
class WeightImages {
 public:
  explicit WeightImages(const Device& device) : device_(device) {}

  absl::StatusOr<const std::vector<std::byte>*> Of(const trine_tensor& tensor, uint64_t bytes,
                                                   const std::optional<PackedLayout>& layout) {
    const std::pair key(tensor.dtype, Shape(tensor.dims, tensor.dims + TRINE_MAX_RANK));
    const auto found = images_.find(key);
    if (found != images_.end()) return &found->second;
    std::vector<std::byte> image = OrdinaryBytes(bytes);
    if (layout) {
      std::vector<std::byte> packed(layout->packed_bytes());
      const absl::Status s =
          device_.Pack(*layout, 0, layout->groups(), image.data(), packed.data());
      if (!s.ok()) return s;
      image = std::move(packed);
    }
    return &images_.emplace(key, std::move(image)).first->second;
  }

 private:
  const Device& device_;
  std::map<std::pair<uint32_t, Shape>, std::vector<std::byte>> images_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TimedPlan>> TimedPlan::Create(std::shared_ptr<Device> device,
                                                             OpGraph graph,
                                                             const std::vector<TensorId>& weights,
                                                             TimedWeights how) {
  std::unique_ptr<TimedPlan> plan(new TimedPlan());
  std::vector<SlotMemory> memory;
  const auto add = [&](SlotId slot, uint64_t bytes, uint32_t kind,
                       const std::vector<std::byte>& image) {
    const bool streamed = how == TimedWeights::kStreamed && kind == TRINE_MEMORY_WEIGHTS;
    auto buffer = streamed ? plan->Import(device, image) : Buffer::Allocate(device, bytes, kind);
    if (!buffer.ok()) return buffer.status();
    const absl::Status s =
        streamed ? absl::OkStatus() : buffer->Write(0, image.data(), image.size());
    if (!s.ok()) return s;
    memory.push_back({slot, buffer->Span(0, bytes)});
    plan->memory_.push_back(*std::move(buffer));
    return absl::OkStatus();
  };
  WeightImages images(*device);
  std::map<std::pair<uint32_t, Shape>, std::optional<PackedLayout>> layouts;
  for (const TensorId weight : weights) {
    const trine_tensor& t = graph.tensor(weight);
    const auto [layout, is_new] =
        layouts.try_emplace({t.dtype, Shape(t.dims, t.dims + TRINE_MAX_RANK)});
    if (is_new && how == TimedWeights::kPacked) {
      layout->second = ChooseLayout(*device, weight, &graph);
    }
    const auto image = images.Of(t, graph.Bytes(weight), layout->second);
    if (!image.ok()) return image.status();
    const absl::Status s =
        add(graph.SlotOf(weight), (*image)->size(), TRINE_MEMORY_WEIGHTS, **image);
    if (!s.ok()) return s;
    if (layout->second) {
      graph.SetLayout(weight, layout->second->id(), layout->second->packed_bytes());
    }
  }
  for (SlotId slot = 0; slot < graph.slots().size(); ++slot) {
    if (graph.slots()[slot].role != TRINE_ROLE_STATE) continue;
    const uint64_t bytes = graph.slots()[slot].bytes;
    const absl::Status s = add(slot, bytes, TRINE_MEMORY_STATE, std::vector<std::byte>(bytes));
    if (!s.ok()) return s;
  }
  auto segment = Segment::Create(std::move(device), std::move(graph), TRINE_NUMERICS_EXACT, memory);
  if (!segment.ok()) return segment.status();
  plan->segment_ = *std::move(segment);
  return plan;
}

// As what a mapped file has is imported.
absl::StatusOr<Buffer> TimedPlan::Import(const std::shared_ptr<Device>& device,
                                         const std::vector<std::byte>& image) {
  const uint64_t grain = std::max<uint64_t>(device->info().import_alignment, 4096);
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.flags = TRINE_IMPORT_READ_ONLY;
  desc.bytes = (image.size() + grain - 1) / grain * grain;
  HostMemory memory(std::aligned_alloc(grain, desc.bytes));
  if (memory == nullptr) return absl::ResourceExhaustedError("there is no memory for weights");
  std::memcpy(memory.get(), image.data(), image.size());
  desc.host_ptr = memory.get();
  host_.push_back(std::move(memory));
  return Buffer::Import(device, desc);
}

absl::StatusOr<double> TimedPlan::Time(const std::vector<int64_t>& params, double seconds) {
  std::vector<double> times;
  const auto run = [&]() -> absl::StatusOr<double> {
    const Clock::time_point begin = Clock::now();
    if (absl::Status s = segment_->Run(params); !s.ok()) return s;
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  };
  const auto first = run();
  if (!first.ok()) return first;
  // One that takes that long is not made more certain by waiting for more of them.
  if (*first > 4e9 * seconds) return first;
  double sum = 0;
  while (times.size() < kLeastRuns || (sum < 1e9 * seconds && times.size() < kMostRuns)) {
    const auto ns = run();
    if (!ns.ok()) return ns;
    times.push_back(*ns);
    sum += *ns;
  }
  const size_t quarter = times.size() / 4;
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(quarter), times.end());
  return times[quarter];
}

}  // namespace trine
