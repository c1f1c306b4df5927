// Keeps a model on devices that work: loads it, and when one of them fails, while it is loaded or
// later, loads it anew on those that are left. Not thread-safe.
#ifndef TRINE_RUNTIME_MODEL_KEEPER_H_
#define TRINE_RUNTIME_MODEL_KEEPER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device_set.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model.h"
#include "runtime/model_places.h"

namespace trine {

// A device that is not used any more, and what it did.
struct LostDevice {
  std::string name;  // of its tier
  std::string reason;
};

class ModelKeeper {
 public:
  // `devices` outlives it.
  ModelKeeper(std::shared_ptr<const gguf::File> file, const ModelConfig& config,
              const SegmentLimits& limits, DeviceSet* devices, LoadOptions load, LogSink log);

  // UNAVAILABLE, with what became of each, when no device is left. Other errors are not a device's.
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelPlaces places);
  // After a device has failed. Whoever holds the model that was on it has let go of it.
  absl::StatusOr<std::shared_ptr<Model>> Replace(const std::string& device,
                                                 const absl::Status& why);

  const std::vector<LostDevice>& lost() const { return lost_; }

 private:
  absl::StatusOr<std::shared_ptr<Model>> LoadOnce();
  // UNAVAILABLE when it was the last one.
  absl::Status Lose(const std::string& device, const absl::Status& why);
  std::string Consequence(const std::string& device, const std::string& successor) const;
  std::string Successor(const std::string& device) const;

  std::shared_ptr<const gguf::File> file_;
  const ModelConfig config_;
  const SegmentLimits limits_;
  DeviceSet* const devices_;
  LoadOptions load_;
  const LogSink log_;
  ModelPlaces places_;
  std::vector<LostDevice> lost_;
  bool tried_ = false;  // to load it: the file's memory may have been given back
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_KEEPER_H_
