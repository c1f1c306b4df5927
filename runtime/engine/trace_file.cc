#include "runtime/engine/trace_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/output_file.h"

namespace trine {
namespace {

absl::Status AboutTrace(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("the trace ", status.message()));
}

}  // namespace

TraceFile::TraceFile(std::string path, size_t events)
    : path_(std::move(path)),
      trace_(std::make_shared<Trace>(events)),
      engine_(trace_->AddTrack("engine")),
      lane_(trace_->AddTrack("lane", Trace::Overlap::kRows)) {}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path,
                                                             size_t events) {
  if (!path.empty()) {
    const auto tried = gguf::OutputFile::Create(path);  // only a check: removed again
    if (!tried.ok()) return AboutTrace(tried.status());
  }
  return std::unique_ptr<TraceFile>(new TraceFile(path, events));
}

absl::Status TraceFile::Write() {
  if (path_.empty()) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  const uint64_t events = trace_->recorded();
  if (written_ && events == events_) return absl::OkStatus();
  const absl::Status status = gguf::OutputFile::Write(path_, trace_->Json());
  if (!status.ok()) return AboutTrace(status);
  written_ = true;
  events_ = events;
  return absl::OkStatus();
}

}  // namespace trine
