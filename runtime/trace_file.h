// The trace of an engine, and the file it goes to, if any.
#ifndef TRINE_RUNTIME_TRACE_FILE_H_
#define TRINE_RUNTIME_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/trace.h"

namespace trine {

// Thread-safe.
class TraceFile {
 public:
  // INVALID_ARGUMENT or UNAVAILABLE when no file can be written there. "": it stays in memory.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(const std::string& path,
                                                           size_t events = Trace::kDefaultCapacity);

  const std::shared_ptr<Trace>& trace() const { return trace_; }
  Trace::Track engine_track() const { return engine_; }
  Trace::Track lane_track() const { return lane_; }

  // All that has been recorded so far, unless it has been written before. The file appears under
  // its name when it is complete.
  absl::Status Write();

 private:
  TraceFile(std::string path, size_t events);

  const std::string path_;
  const std::shared_ptr<Trace> trace_;
  const Trace::Track engine_, lane_;
  std::mutex mutex_;
  bool written_ = false;  // guarded by mutex_
  uint64_t events_ = 0;   // likewise: recorded when it was written
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TRACE_FILE_H_
