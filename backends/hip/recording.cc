#include "backends/hip/recording.h"

#include <utility>

namespace trine::hip {

absl::StatusOr<std::unique_ptr<Recording>> Recording::Create(GpuDevice* gpu, Work work,
                                                             bool graphs) {
  std::unique_ptr<Recording> recording(new Recording(gpu, std::move(work)));
  if (graphs && !recording->work_.launches.empty()) {
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

absl::Status Recording::StartAll() {
  absl::Status status = StartCopies(work_.in, gpuMemcpyHostToDevice);
  const bool early =
      work_.early && !work_.launches.empty() && gpuCanStartEarly(work_.launches.front().kernel);
  // The first one waits for all that was before, and the one behind the inputs for these: whatever
  // begins later finds them.
  bool may_begin = false;
  for (size_t i = 0; i < work_.launches.size(); ++i) {
    const Launch& launch = work_.launches[i];
    if (!status.ok()) return status;
    if (launch.empty()) continue;
    status = gpu_->Check(gpuStart(launch, gpu_->stream(), early && may_begin), launch.label);
    may_begin = i >= work_.inputs;
  }
  return status.ok() ? StartCopies(work_.out, gpuMemcpyDeviceToHost) : status;
}

absl::Status Recording::Capture() {
  absl::Status status =
      gpu_->Check(gpuStreamBeginCapture(gpu_->stream()), "a graph could not be begun");
  if (!status.ok()) return status;
  status = StartAll();
  gpuGraph graph = nullptr;
  // A capture is ended even when a start in it failed.
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

absl::Status Recording::StartGraph() {
  if (graph_ == nullptr) return StartAll();
  return gpu_->Check(gpuGraphLaunch(graph_, gpu_->stream()), "a run failed");
}

absl::Status Recording::Start() {
  const InUse in_use(*gpu_);
  return StartGraph();
}

absl::Status Recording::Run() {
  const InUse in_use(*gpu_);
  const absl::Status status = StartGraph();
  return status.ok() ? gpu_->Synchronize() : status;
}

absl::Status Recording::RunTimed(const std::function<void(const char* label, uint64_t ns)>& done) {
  const InUse in_use(*gpu_);
  const std::vector<Launch>& launches = work_.launches;
  std::vector<gpuEvent> events(launches.size() + 1, nullptr);
  absl::Status status = StartCopies(work_.in, gpuMemcpyHostToDevice);
  for (size_t i = 0; i < events.size() && status.ok(); ++i) {
    status = gpu_->Check(gpuEventCreate(&events[i]), "an event could not be made");
    if (status.ok() && i > 0 && !launches[i - 1].empty()) {
      status = gpu_->Check(gpuStart(launches[i - 1], gpu_->stream()), launches[i - 1].label);
    }
    if (status.ok()) {
      status = gpu_->Check(gpuEventRecord(events[i], gpu_->stream()), "a time was not taken");
    }
  }
  if (status.ok()) status = StartCopies(work_.out, gpuMemcpyDeviceToHost);
  if (status.ok()) status = gpu_->Synchronize();
  for (size_t i = 0; i < launches.size() && status.ok(); ++i) {
    float ms = 0.0f;
    status = gpu_->Check(gpuEventElapsedTime(&ms, events[i], events[i + 1]), "no time was taken");
    if (status.ok()) done(launches[i].label, static_cast<uint64_t>(ms * 1e6));
  }
  for (const gpuEvent event : events) {
    if (event != nullptr) (void)gpuEventDestroy(event);
  }
  return status;
}

}  // namespace trine::hip
