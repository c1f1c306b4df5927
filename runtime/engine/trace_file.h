// The trace of an engine, and the file that the trace is written to, if any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/trace.h"

namespace trine {

// Thread-safe.
class TraceFile {
 public:
  // `path` "": the trace stays in memory. Returns INVALID_ARGUMENT or UNAVAILABLE if `path` can't
  // be written.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(const std::string& path,
                                                           size_t events = Trace::kDefaultCapacity);

  const std::shared_ptr<Trace>& trace() const { return trace_; }
  Trace::Track engine_track() const { return engine_; }
  Trace::Track lane_track() const { return lane_; }

  // Writes everything that has been recorded so far, unless the file has it already. The file
  // appears under its name when it is complete.
  absl::Status Write();

 private:
  TraceFile(std::string path, size_t events);

  const std::string path_;
  const std::shared_ptr<Trace> trace_;
  const Trace::Track engine_, lane_;
  std::mutex mutex_;
  bool written_ = false;  // guarded by mutex_
  uint64_t events_ = 0;   // guarded by mutex_: the number of events written
};

}  // namespace trine
