#include "runtime/model/split/split_stage.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "runtime/model/weights/canonical_check.h"

namespace trine {
namespace {

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

bool IsCpu(const NamedDevice& device) { return device.device->info().tier == TRINE_TIER_CPU; }

void CopyColumns(const float* from, int64_t from_stride, int64_t columns, int64_t rows, float* to,
                 int64_t to_stride) {
  if (from_stride == columns && to_stride == columns) {
    std::memcpy(to, from, static_cast<size_t>(rows * columns) * sizeof(float));
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(to + r * to_stride, from + r * from_stride,
                static_cast<size_t>(columns) * sizeof(float));
  }
}

}  // namespace

// Marks a call into a device, so that Busiest can tell which device does not return.
class SplitStage::Busy {
 public:
  Busy(SplitStage* stage, size_t device)
      : began_(stage->began_[device]), spent_(stage->spent_[device]) {
    began_ = Now();
  }
  ~Busy() { spent_ += static_cast<uint64_t>(Now() - began_.exchange(0)); }

 private:
  std::atomic<int64_t>& began_;
  std::atomic<uint64_t>& spent_;
};

SplitStage::SplitStage(std::vector<NamedDevice> devices, GraphSplit split)
    : devices_(std::move(devices)),
      split_(std::move(split)),
      began_(devices_.size()),
      spent_(devices_.size()) {}

void SplitStage::TakeTimes(DeviceTimes* times) {
  for (size_t d = 0; d < devices_.size(); ++d) {
    times->Add(devices_[d].name.c_str(), spent_[d].exchange(0));
  }
}

uint64_t SplitStage::IoBytes(size_t device) const {
  uint64_t bytes = 0;
  for (const uint64_t size : split_.buffers[device]) bytes += size;
  return bytes;
}

absl::Status SplitStage::Allocate(const std::vector<uint64_t>& scratch_bytes,
                                  std::optional<size_t> streaming) {
  asked_.resize(devices_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    const std::shared_ptr<Device>& device = devices_[d].device;
    buffers_.emplace_back();
    for (const uint64_t bytes : split_.buffers[d]) {
      auto buffer = Buffer::Allocate(device, (bytes + 63) / 64 * 64, TRINE_MEMORY_IO);
      if (!buffer.ok()) return buffer.status();
      buffers_[d].push_back(*std::move(buffer));
    }
    scratch_.emplace_back();
    if (scratch_bytes[d] > 0) {
      auto scratch = Buffer::Allocate(device, scratch_bytes[d], TRINE_MEMORY_STATE);
      if (!scratch.ok()) return scratch.status();
      scratch_[d] = *std::move(scratch);
    }
  }
  threads_.resize(devices_.size());
  lines_.resize(devices_.size());
  for (const size_t d : DevicesBeside()) {
    // A device that fetches weights has the host's team copy them within the call, so that the call
    // can't return earlier.
    const std::shared_ptr<Device>& device = devices_[d].device;
    if ((device->info().flags & TRINE_DEVICE_ASYNC) != 0 && streaming != d) {
      lines_[d].emplace();
      continue;
    }
    // The CPU's team takes all processors, so that no other thread should spin beside it.
    const bool spins = std::none_of(devices_.begin(), devices_.end(), IsCpu);
    auto thread = DeviceThread::Create([this, d] { return RunPiece(asked_[d]); }, spins);
    if (!thread.ok()) return thread.status();
    threads_[d] = *std::move(thread);
  }
  return absl::OkStatus();
}

absl::Status SplitStage::AddPiece(OpGraph graph, std::vector<SlotMemory> memory) {
  const GraphPiece& piece = split_.pieces[segments_.size()];
  for (const auto& [tensor, place] : piece.io) {
    const SlotId slot = graph.SlotOf(tensor);
    memory.push_back({slot, BufferOf(place).Span(0, graph.slots()[slot].bytes)});
  }
  auto segment = Segment::Create(devices_[piece.device].device, std::move(graph), memory,
                                 &scratch_[piece.device]);
  if (!segment.ok()) return segment.status();
  segments_.push_back(*std::move(segment));
  return absl::OkStatus();
}

bool SplitStage::exact() const {
  return std::all_of(segments_.begin(), segments_.end(),
                     [](const std::unique_ptr<Segment>& s) { return s->exact(); });
}

const Buffer& SplitStage::BufferOf(size_t place) const {
  const SplitPlace& p = split_.places[place];
  return buffers_[p.device][p.buffer];
}

absl::Status SplitStage::WritePlace(size_t place, const void* data, uint64_t bytes) {
  if (void* host = HostPtr(place)) {
    std::memcpy(host, data, bytes);
    return absl::OkStatus();
  }
  const Busy busy(this, split_.places[place].device);
  return BufferOf(place).Write(0, data, bytes);
}

absl::Status SplitStage::Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes) {
  for (const SplitInput& input : split_.inputs) {
    if (input.which != which) continue;
    for (const size_t place : input.places) {
      if (absl::Status s = WritePlace(place, data, bytes); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

int64_t SplitStage::RowsOf(const ValueMove& value) const {
  int64_t rows = 1;
  for (const int64_t dim : value.outer) {
    rows *= dim >= 0 ? dim : (*params_)[static_cast<size_t>(-1 - dim)];
  }
  return rows;
}

absl::Status SplitStage::RunPiece(size_t piece) {
  const Busy busy(this, split_.pieces[piece].device);
  return segments_[piece]->Run(*params_);
}

// Returns the index of the piece that the calling thread runs. The CPU's piece comes first: the
// calling thread is one of the CPU's team, and with another thread in its place there would be more
// threads than processors.
size_t SplitStage::OwnPiece(const SplitStep& step) const {
  for (size_t i = 0; i < step.pieces.size(); ++i) {
    const size_t device = split_.pieces[step.pieces[i]].device;
    if (IsCpu(devices_[device])) return i;
  }
  return 0;
}

// Returns the devices that some step runs beside the calling thread's piece.
std::set<size_t> SplitStage::DevicesBeside() const {
  std::set<size_t> beside;
  for (const SplitStep& step : split_.steps) {
    const size_t own = OwnPiece(step);
    for (size_t i = 0; i < step.pieces.size(); ++i) {
      if (i != own) beside.insert(split_.pieces[step.pieces[i]].device);
    }
  }
  return beside;
}

absl::Status SplitStage::BeginPiece(size_t piece) {
  const size_t device = split_.pieces[piece].device;
  std::optional<Line>& line = lines_[device];
  if (!line) {
    asked_[device] = piece;
    threads_[device]->Start();
    return absl::OkStatus();
  }
  // Marks the device as busy during this call only. Afterwards this thread computes its own piece,
  // and a piece that hangs must not be blamed on the device.
  const Busy busy(this, device);
  if (!line->timeline) {
    const std::shared_ptr<Device>& handle = devices_[device].device;
    const std::lock_guard lock(handle->run_mutex());
    auto timeline = TimelineHandle::Create(handle, 0);
    if (!timeline.ok()) return timeline.status();
    line->timeline = *std::move(timeline);
    line->value = 0;
  }
  absl::Status status =
      segments_[piece]->Submit(*params_, {line->timeline.handle(), line->value + 1});
  if (status.ok()) ++line->value;
  line->begin = Now();
  return status;
}

absl::Status SplitStage::FinishPiece(size_t piece) {
  const size_t device = split_.pieces[piece].device;
  std::optional<Line>& line = lines_[device];
  if (!line) return threads_[device]->Finish();
  const int64_t from = Now();
  absl::Status status;
  {
    const Busy busy(this, device);
    status = line->timeline.Wait(line->value, UINT64_MAX);
  }
  // Nobody looked when the work ended, unless it ended after the calling thread's piece. So all the
  // time since the submission counts.
  spent_[device] += static_cast<uint64_t>(from - line->begin);
  if (!status.ok()) {  // the timeline has failed for ever
    const std::lock_guard lock(devices_[device].device->run_mutex());
    line->timeline = {};
  }
  return status;
}

absl::Status SplitStage::RunStep(const SplitStep& step) {
  const size_t own = OwnPiece(step);
  absl::Status status;
  // Prefers a status that names a device: the model can be loaded again without that device.
  const auto update = [&](const absl::Status& s) {
    if (!s.ok() && (status.ok() || (FaultyDevice(status).empty() && !FaultyDevice(s).empty()))) {
      status = s;
    }
  };
  begun_.clear();
  for (size_t i = 0; i < step.pieces.size() && status.ok(); ++i) {
    if (i == own) continue;
    update(BeginPiece(step.pieces[i]));
    if (status.ok()) begun_.push_back(step.pieces[i]);
  }
  if (status.ok()) {
    try {
      update(RunPiece(step.pieces[own]));
    } catch (const std::exception& e) {  // the other devices are still at work
      update(absl::InternalError(e.what()));
    }
  }
  for (const size_t piece : begun_) update(FinishPiece(piece));
  return status;
}

absl::Status SplitStage::Run(const std::vector<int64_t>& params, PassChoices* choices) {
  params_ = &params;
  choices_ = choices;
  for (const SplitStep& step : split_.steps) {
    if (absl::Status s = RunStep(step); !s.ok()) return s;
    for (const ValueMove& move : step.moves) {
      if (absl::Status s = Move(move); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SplitStage::Columns> SplitStage::See(const ValueMove& value, const ValuePart& part,
                                                    size_t staging) {
  Columns columns;
  columns.stride = part.in_whole ? value.width : part.end - part.begin;
  columns.data = HostPtr(part.place);
  if (columns.data == nullptr) {
    if (staging_.size() <= staging) staging_.resize(staging + 1);
    std::vector<float>& memory = staging_[staging];
    memory.resize(static_cast<size_t>(RowsOf(value) * columns.stride));
    const Busy busy(this, split_.places[part.place].device);
    const absl::Status s =
        BufferOf(part.place).Read(0, memory.data(), memory.size() * sizeof(float));
    if (!s.ok()) return s;
    columns.data = memory.data();
  }
  if (part.in_whole) columns.data += part.begin;
  return columns;
}

absl::Status SplitStage::Check(const ValueMove& value, const ValuePart& part,
                               const Columns& columns) const {
  const std::string& device = devices_[split_.places[part.place].device].name;
  const int64_t width = part.end - part.begin, rows = RowsOf(value);
  const int64_t pieces = width == columns.stride ? 1 : rows;
  const auto values = static_cast<size_t>(width * rows / std::max<int64_t>(pieces, 1));
  for (int64_t i = 0; i < pieces; ++i) {
    const float* data = columns.data + i * columns.stride;
    if (value.dtype != TRINE_DTYPE_F32 && value.id_limit == 0) break;
    const absl::Status s =
        value.dtype == TRINE_DTYPE_F32
            ? CheckCanonical({data, values}, device)
            : CheckIds({reinterpret_cast<const int32_t*>(data), values}, value.id_limit, device);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status SplitStage::Move(const ValueMove& move) {
  const int64_t rows = RowsOf(move);
  std::vector<Columns> parts(move.from.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValuePart& part = move.from[i];
    const bool leaves =
        std::any_of(move.to.begin(), move.to.end(), [&](size_t to) { return to != part.place; }) ||
        move.from.size() > 1;
    // A value that stays in its place is checked only if the host sees it: it is not worth a copy.
    const bool counted = counts_ && move.counted && move.counted->always;
    if (!leaves && !counted && HostPtr(part.place) == nullptr) continue;
    const auto seen = See(move, part, i + 1);
    if (!seen.ok()) return seen.status();
    parts[i] = *seen;
    if (absl::Status s = Check(move, part, parts[i]); !s.ok()) return s;
    if (move.counted) Count(move, parts[i]);
    if (move.divided) parts[i] = Divide(move, parts[i]);
  }
  const uint64_t bytes = static_cast<uint64_t>(rows * move.width) * sizeof(float);
  for (const size_t to : move.to) {
    float* const host = HostPtr(to);
    if (host == nullptr && parts.size() == 1) {
      if (absl::Status s = WritePlace(to, parts[0].data, bytes); !s.ok()) return s;
      continue;
    }
    float* whole = host;
    if (whole == nullptr) {
      if (staging_.empty()) staging_.resize(1);
      staging_[0].resize(static_cast<size_t>(rows * move.width));
      whole = staging_[0].data();
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const ValuePart& part = move.from[i];
      if (part.place == to && host != nullptr) continue;
      CopyColumns(parts[i].data, parts[i].stride, part.end - part.begin, rows, whole + part.begin,
                  move.width);
    }
    if (host != nullptr) continue;
    if (absl::Status s = WritePlace(to, whole, bytes); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void SplitStage::Count(const ValueMove& move, const Columns& ids) {
  if (!counts_) return;
  const auto count = static_cast<size_t>(RowsOf(move) * move.width);
  choices_->Add(move.counted->layer, {reinterpret_cast<const int32_t*>(ids.data), count});
}

SplitStage::Columns SplitStage::Divide(const ValueMove& move, const Columns& ids) {
  const auto count = static_cast<size_t>(RowsOf(move) * move.width);
  divided_.resize(count);
  experts_->Divide(move.divided->layer, {reinterpret_cast<const int32_t*>(ids.data), count},
                   (*params_)[kParamTokens], move.divided->home, choices_, divided_.data());
  return {reinterpret_cast<const float*>(divided_.data()), move.width};
}

absl::StatusOr<std::span<const float>> SplitStage::ReadOutput(const std::vector<int64_t>& params,
                                                              bool keep, float* memory) {
  params_ = &params;
  return ReadValue(split_.output, keep, memory);
}

absl::StatusOr<std::span<const float>> SplitStage::ReadHidden(const std::vector<int64_t>& params,
                                                              float* memory) {
  params_ = &params;
  return ReadValue(*split_.hidden, /*keep=*/true, memory);
}

absl::StatusOr<std::span<const float>> SplitStage::ReadValue(const ValueMove& output, bool keep,
                                                             float* memory) {
  const int64_t rows = RowsOf(output);
  const auto values = static_cast<size_t>(rows * output.width);
  const bool seen_whole = output.from.size() == 1 && HostPtr(output.from[0].place) != nullptr;
  for (const ValuePart& part : output.from) {
    const auto columns = See(output, part, 1);
    if (!columns.ok()) return columns.status();
    if (absl::Status s = Check(output, part, *columns); !s.ok()) return s;
    if (seen_whole && !keep) return std::span<const float>(columns->data, values);
    CopyColumns(columns->data, columns->stride, part.end - part.begin, rows, memory + part.begin,
                output.width);
  }
  return std::span<const float>(memory, values);
}

BusyDevice SplitStage::Busiest() const {
  size_t longest = devices_.size();
  int64_t since = 0;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const int64_t began = began_[d];
    if (began == 0 || (longest != devices_.size() && began >= since)) continue;
    longest = d;
    since = began;
  }
  if (longest == devices_.size()) return {};
  using Clock = std::chrono::steady_clock;
  return {devices_[longest].name, Clock::time_point(Clock::duration(since))};
}

}  // namespace trine
