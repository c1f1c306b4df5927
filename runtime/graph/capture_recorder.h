// Records the passes of a session into a capture file, as they go through the model's stages. One
// sequence; passes of several stages may be under way at once. Thread-safe.
#ifndef TRINE_RUNTIME_GRAPH_CAPTURE_RECORDER_H_
#define TRINE_RUNTIME_GRAPH_CAPTURE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/graph/capture_file.h"
#include "runtime/model/model.h"

namespace trine {

struct CaptureOptions {
  std::string path;
  std::string program;  // that writes it
  std::string model;    // the file, as it was named
  uint64_t model_id = 0;
  bool values = false;  // in full, not as hashes
};

class CaptureRecorder {
 public:
  // The file appears under its name when it is finished.
  static absl::StatusOr<std::unique_ptr<CaptureRecorder>> Create(const CaptureOptions& options);

  // A StageObserver. Of passes that fail on their way nothing is recorded; they come again.
  absl::Status Ran(const Model& model, size_t stage, const Pass& pass);

  // When no pass is under way any more. FAILED_PRECONDITION when there was none.
  absl::Status Finish();
  uint64_t passes() const;

 private:
  // What is known of a pass that is under way.
  struct Recorded {
    std::vector<uint64_t> hashes;
    std::vector<std::vector<std::byte>> values;
  };

  explicit CaptureRecorder(const CaptureOptions& options) : options_(options) {}
  absl::Status Begin(const Model& model);
  absl::Status Put(const Pass& pass, Recorded recorded);

  const CaptureOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<CaptureWriter> writer_;
  bool begun_ = false;
  std::map<const Pass*, Recorded> under_way_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_CAPTURE_RECORDER_H_
