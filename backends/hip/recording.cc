#include "backends/hip/recording.h"

#include <utility>

namespace trine::hip {
namespace {

// The name that time reports give to waiting for weights.
constexpr const char* kFeedName = "weights";

absl::Status NoMark(const char*) { return absl::OkStatus(); }

}  // namespace

absl::StatusOr<std::unique_ptr<Recording>> Recording::Create(GpuDevice* gpu, Work work,
                                                             bool graphs) {
  std::unique_ptr<Recording> recording(new Recording(gpu, std::move(work)));
  if (graphs && !recording->work_.launches.empty() && recording->work_.feeds.empty()) {
    const InUse in_use(*gpu);
    if (absl::Status status = recording->Capture(); !status.ok()) return status;
  }
  return recording;
}

Recording::~Recording() {
  if (graph_ == nullptr) return;
  const InUse in_use(*gpu_);
  (void)gpuGraphExecDestroy(graph_);
}

absl::Status Recording::StartCopies(const std::vector<Work::Copy>& copies, gpuMemcpyKind kind) {
  for (const Work::Copy& copy : copies) {
    const absl::Status status = gpu_->Check(
        gpuMemcpyAsync(copy.to, copy.from, copy.bytes, kind, gpu_->stream()), "a copy failed");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool Recording::CanStartEarly() const {
  return work_.early && !work_.launches.empty() && gpuCanStartEarly(work_.launches.front().kernel);
}

absl::Status Recording::StartLaunches(bool early, const HostCopy& copy, const Mark& done) {
  const std::vector<Launch>& launches = work_.launches;
  absl::Status status;
  size_t turn = 0;
  // The first launch waits for all earlier work, and the first one after the inputs waits for the
  // inputs, so that any launch that begins early finds them.
  bool may_begin = false;
  for (size_t i = 0; i < launches.size() && status.ok(); ++i) {
    const Work::Feed* feed = turn < work_.feeds.size() ? &work_.feeds[turn] : nullptr;
    if (feed != nullptr && feed->first == i) {
      status = work_.stages->Fill(turn, feed->copies, copy);
      if (status.ok()) status = done(kFeedName);
      may_begin = false;
    }
    if (status.ok() && !launches[i].empty()) {
      status =
          gpu_->Check(gpuStart(launches[i], gpu_->stream(), early && may_begin), launches[i].label);
      may_begin = i >= work_.inputs;
    }
    if (status.ok()) status = done(launches[i].label);
    if (status.ok() && feed != nullptr && feed->end == i + 1) {
      status = work_.stages->Release(turn++);
      may_begin = false;
    }
  }
  return status;
}

absl::Status Recording::StartAll(bool early, const HostCopy& copy, const Mark& done) {
  absl::Status status = work_.feeds.empty() ? absl::OkStatus() : work_.stages->Begin();
  if (status.ok()) status = StartCopies(work_.in, gpuMemcpyHostToDevice);
  if (status.ok()) status = done(nullptr);
  if (status.ok()) status = StartLaunches(early, copy, done);
  if (status.ok()) status = StartCopies(work_.out, gpuMemcpyDeviceToHost);
  // The caller may free memory that copies still read.
  if (!status.ok() && !work_.feeds.empty()) work_.stages->Abandon();
  return status;
}

absl::Status Recording::Capture() {
  absl::Status status =
      gpu_->Check(gpuStreamBeginCapture(gpu_->stream()), "a graph could not be begun");
  if (!status.ok()) return status;
  status = StartAll(CanStartEarly(), nullptr, NoMark);
  gpuGraph graph = nullptr;
  // A capture must be ended even if a start in it failed.
  status.Update(gpu_->Check(gpuStreamEndCapture(gpu_->stream(), &graph), "a graph was not made"));
  if (status.ok() && (graph_ == nullptr || !gpuGraphExecTryUpdate(graph_, graph))) {
    if (graph_ != nullptr) (void)gpuGraphExecDestroy(graph_);
    graph_ = nullptr;
    status = gpu_->Check(gpuGraphInstantiate(&graph_, graph), "a graph could not be prepared");
  }
  if (graph != nullptr) (void)gpuGraphDestroy(graph);
  return status;
}

absl::Status Recording::Replace(Work work) {
  work_ = std::move(work);
  if (graph_ == nullptr) return absl::OkStatus();
  const InUse in_use(*gpu_);
  return Capture();
}

absl::Status Recording::StartGraph(const HostCopy& copy) {
  if (graph_ == nullptr) return StartAll(CanStartEarly(), copy, NoMark);
  return gpu_->Check(gpuGraphLaunch(graph_, gpu_->stream()), "a run failed");
}

absl::Status Recording::Start() {
  const InUse in_use(*gpu_);
  return StartGraph(nullptr);
}

absl::Status Recording::Run(const HostCopy& copy) {
  const InUse in_use(*gpu_);
  const absl::Status status = StartGraph(copy);
  return status.ok() ? gpu_->Synchronize() : status;
}

absl::Status Recording::RunTimed(const HostCopy& copy,
                                 const std::function<void(const char* label, uint64_t ns)>& done) {
  const InUse in_use(*gpu_);
  std::vector<std::pair<const char*, gpuEvent>> marks;  // the first mark is before all parts
  const auto mark = [&](const char* label) {
    marks.emplace_back(label, nullptr);
    gpuEvent& event = marks.back().second;
    const absl::Status status = gpu_->Check(gpuEventCreate(&event), "an event could not be made");
    if (!status.ok()) return status;
    return gpu_->Check(gpuEventRecord(event, gpu_->stream()), "a time was not taken");
  };
  absl::Status status = StartAll(/*early=*/false, copy, mark);
  if (status.ok()) status = gpu_->Synchronize();
  for (size_t i = 1; i < marks.size() && status.ok(); ++i) {
    float ms = 0.0f;
    status = gpu_->Check(gpuEventElapsedTime(&ms, marks[i - 1].second, marks[i].second),
                         "no time was taken");
    if (status.ok()) done(marks[i].first, static_cast<uint64_t>(ms * 1e6));
  }
  for (const auto& [label, event] : marks) {
    if (event != nullptr) (void)gpuEventDestroy(event);
  }
  return status;
}

absl::StatusOr<std::shared_ptr<WeightStages>> WeightStages::Create(GpuDevice* gpu, uint64_t bytes) {
  std::shared_ptr<WeightStages> stages(new WeightStages(gpu));
  if (absl::Status status = stages->Prepare(bytes); !status.ok()) return status;
  return stages;
}

absl::Status WeightStages::Prepare(uint64_t bytes) {
  for (GpuMemory& memory : memory_) {
    auto allocated = gpu_->Allocate(bytes, /*of_host=*/false);
    if (!allocated.ok()) return allocated.status();
    memory = *std::move(allocated);
  }
  const InUse in_use(*gpu_);
  absl::Status status = gpu_->Check(gpuStreamCreate(&copies_), "a stream could not be made");
  for (gpuEvent* event : {&begun_, &filled_[0], &filled_[1], &released_[0], &released_[1]}) {
    if (!status.ok()) return status;
    status = gpu_->Check(gpuEventCreateUntimed(event), "an event could not be made");
  }
  return status;
}

WeightStages::~WeightStages() {
  const InUse in_use(*gpu_);
  if (copies_ != nullptr) (void)gpuStreamSynchronize(copies_);
  for (const gpuEvent event : {begun_, filled_[0], filled_[1], released_[0], released_[1]}) {
    if (event != nullptr) (void)gpuEventDestroy(event);
  }
  if (copies_ != nullptr) (void)gpuStreamDestroy(copies_);
}

absl::Status WeightStages::Begin() {
  const absl::Status status =
      gpu_->Check(gpuEventRecord(begun_, gpu_->stream()), "an event was not recorded");
  if (!status.ok()) return status;
  return gpu_->Check(gpuStreamWait(copies_, begun_), "a stream does not wait");
}

absl::Status WeightStages::Fill(size_t turn, const std::vector<Copy>& copies,
                                const HostCopy& copy_host) {
  absl::Status status;
  if (turn >= 2) {
    status = gpu_->Check(gpuStreamWait(copies_, released_[turn % 2]), "a stream does not wait");
  }
  for (const Copy& copy : copies) {
    if (!status.ok()) return status;
    const HostPieces& from = copy.from;
    if (!copy.pinned) {
      status = gpu_->StartWrite(copy.to, from, copies_, copy_host);
      continue;
    }
    status = gpu_->Check(
        from.count == 1
            ? gpuMemcpyAsync(copy.to, from.from, from.bytes, gpuMemcpyHostToDevice, copies_)
            : gpuMemcpyRowsAsync(copy.to, from.from, from.bytes, from.count, from.pitch,
                                 gpuMemcpyHostToDevice, copies_),
        "weights could not be brought in");
  }
  const gpuEvent filled = filled_[turn % 2];
  if (status.ok()) status = gpu_->Check(gpuEventRecord(filled, copies_), "weights did not come");
  if (!status.ok()) return status;
  return gpu_->Check(gpuStreamWait(gpu_->stream(), filled), "a stream does not wait");
}

absl::Status WeightStages::Release(size_t turn) {
  return gpu_->Check(gpuEventRecord(released_[turn % 2], gpu_->stream()),
                     "an event was not recorded");
}

void WeightStages::Abandon() {
  // Remembers a loss that shows only here. The caller already has an error to report.
  (void)gpu_->Check(gpuStreamSynchronize(copies_), "copies of weights failed");
  (void)gpu_->Synchronize();
}

}  // namespace trine::hip
