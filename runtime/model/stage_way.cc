#include "runtime/model/stage_way.h"

#include <utility>

#include "runtime/model/canonical_check.h"

namespace trine {

StageWay::StageWay(std::string device, const SegmentIo& io, std::unique_ptr<Segment> segment,
                   BoundEnds bound)
    : device_(std::move(device)), io_(io), bound_(bound), segment_(std::move(segment)) {}

StageWay::StageWay(std::unique_ptr<SplitStage> split)
    : device_(split->devices()[0].name), split_(std::move(split)) {}

absl::Status StageWay::Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes,
                             uint64_t* moved) {
  if (segment_ != nullptr && io_.*which == TRINE_NONE) return absl::OkStatus();
  if (which == &SegmentIo::hidden_in && bound_.in) {
    *moved += Crossing(bytes);
    return absl::OkStatus();
  }
  *moved += bytes;
  return segment_ != nullptr ? segment_->Write(io_.*which, data, bytes)
                             : split_->Write(which, data, bytes);
}

absl::Status StageWay::Run(const std::vector<int64_t>& params, size_t place) {
  if (segment_ == nullptr) return split_->Run(params);
  return segment_->Run(params, bound_.in || bound_.out ? static_cast<uint32_t>(place) : 0);
}

uint64_t StageWay::Crossing(uint64_t bytes) const {
  const bool unified = (segment_->device().info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  return unified ? 0 : bytes;
}

absl::StatusOr<std::span<const float>> StageWay::Read(const std::vector<int64_t>& params,
                                                      size_t values, bool keep, float* memory,
                                                      uint64_t* moved) {
  if (segment_ != nullptr) return ReadSegment(values, keep, memory, moved);
  auto rows = split_->ReadOutput(params, keep, memory);
  if (rows.ok()) *moved += rows->size() * sizeof(float);
  return rows;
}

absl::StatusOr<std::span<const float>> StageWay::ReadSegment(size_t values, bool keep,
                                                             float* memory, uint64_t* moved) {
  const TensorId io = io_.hidden_out != TRINE_NONE ? io_.hidden_out
                      : io_.logits != TRINE_NONE   ? io_.logits
                                                   : io_.embeddings;
  std::span<const float> rows(memory, values);
  if (io == io_.hidden_out && bound_.out) {
    *moved += Crossing(values * sizeof(float));
  } else if (const void* seen = segment_->HostView(io); seen != nullptr && !keep) {
    rows = {static_cast<const float*>(seen), values};
  } else {
    *moved += values * sizeof(float);
    const absl::Status s = segment_->Read(io, 0, memory, values * sizeof(float));
    if (!s.ok()) return s;
  }
  if (absl::Status s = CheckCanonical(rows, device_); !s.ok()) return s;
  return rows;
}

absl::Status StageWay::ReadHidden(const std::vector<int64_t>& params, std::span<float> memory,
                                  uint64_t* moved) {
  *moved += memory.size_bytes();
  if (segment_ == nullptr) return split_->ReadHidden(params, memory.data()).status();
  if (absl::Status s = segment_->Read(io_.embeddings, 0, memory.data(), memory.size_bytes());
      !s.ok()) {
    return s;
  }
  return CheckCanonical(memory, device_);
}

std::vector<std::string> StageWay::Devices() const {
  if (split_ == nullptr) return {device_};
  std::vector<std::string> names;
  for (const NamedDevice& d : split_->devices()) names.push_back(d.name);
  return names;
}

BusyDevice StageWay::Busiest() const {
  BusyDevice busy = split_ == nullptr ? BusyDevice() : split_->Busiest();
  if (busy.name.empty()) busy.name = device_;
  return busy;
}

}  // namespace trine
