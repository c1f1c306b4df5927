// What can be read of a pass, and other graphs over a model's weights and caches.
#include <cstring>

#include "runtime/model/detour_loader.h"
#include "runtime/model/model.h"

namespace trine {

uint64_t Model::TapBytes(size_t stage, size_t tap, const Pass& pass) const {
  const trine_tensor& tensor = stages_[stage].tap_tensors[tap];
  return stages_[stage].taps[tap].is_cache ? CacheRows(tensor).Bytes(pass.kv_slots.size())
                                           : BytesAt(tensor, pass.params);
}

absl::Status Model::ReadTap(size_t index, size_t number, const Pass& pass, void* memory) const {
  const Stage& stage = stages_[index];
  const Tap& tap = stage.taps[number];
  if (tap.is_cache) {
    return ReadCache(index, stage.tap_caches.at(tap.tensor), CacheRows(stage.tap_tensors[number]),
                     pass.kv_slots, static_cast<std::byte*>(memory));
  }
  return stage.home->ReadTensor(tap.tensor, memory,
                                BytesAt(stage.tap_tensors[number], pass.params));
}

absl::Status Model::ReadCache(size_t stage, size_t number, const CacheRows& rows,
                              std::span<const int32_t> slots, std::byte* memory) const {
  const Buffer& cache = *stages_[stage].caches.Find(*places_[stage].device, number);
  const auto* host = static_cast<const std::byte*>(cache.host_ptr());
  for (const int32_t slot : slots) {
    for (int64_t head = 0; head < rows.heads; ++head, memory += rows.row_bytes) {
      const uint64_t offset = rows.OffsetOf(slot, head);
      if (host != nullptr) {
        std::memcpy(memory, host + offset, rows.row_bytes);
      } else if (absl::Status s = cache.Read(offset, memory, rows.row_bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Model::WriteCache(size_t stage, size_t number, const CacheRows& rows,
                               std::span<const int32_t> slots, const std::byte* memory) const {
  const Buffer& cache = *stages_[stage].caches.Find(*places_[stage].device, number);
  auto* host = static_cast<std::byte*>(cache.host_ptr());
  for (const int32_t slot : slots) {
    for (int64_t head = 0; head < rows.heads; ++head, memory += rows.row_bytes) {
      const uint64_t offset = rows.OffsetOf(slot, head);
      if (host != nullptr) {
        std::memcpy(host + offset, memory, rows.row_bytes);
      } else if (absl::Status s = cache.Write(offset, memory, rows.row_bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SegmentGraph> Model::WholeGraph() const {
  return BuildSegmentGraph(*file_, config_, limits_, {0, config_.n_layers, true, true},
                           {.finish = false, .in_place = taps_ != TapLevel::kOps});
}

absl::StatusOr<std::vector<SlotMemory>> Model::Bind(size_t stage, SegmentGraph* graph) {
  return DetourLoader(packed_, out_of_range_, store_.get(), &stages_[stage].caches)
      .BindAtHome(places_[stage].device, graph);
}

}  // namespace trine
