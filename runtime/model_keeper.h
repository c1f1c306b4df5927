// Keeps a model on devices that work: loads it, and when one of them fails, while it is loaded or
// later, loads it anew on those that are left. Not thread-safe.
#ifndef TRINE_RUNTIME_MODEL_KEEPER_H_
#define TRINE_RUNTIME_MODEL_KEEPER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device_set.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model.h"
#include "runtime/model_places.h"
#include "runtime/placement/placer.h"
#include "runtime/readmission.h"

namespace trine {

// A device that is not used any more, and what it did.
struct LostDevice {
  std::string name;  // of its tier
  std::string reason;
  std::chrono::steady_clock::time_point since;
};

class ModelKeeper {
 public:
  // `devices` outlives it.
  ModelKeeper(std::shared_ptr<const gguf::File> file, const ModelConfig& config,
              const SegmentLimits& limits, DeviceSet* devices, LoadOptions load,
              const ReadmissionOptions& readmission, LogSink log);

  // Who says where the model goes when a device is lost; without one, to the CPU. Outlives it.
  void SetPlacer(Placer* placer) { placer_ = placer; }

  // UNAVAILABLE, with what became of each, when no device is left. Other errors are not a device's.
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelPlaces places);
  // After a device has failed. Whoever holds the model that was on it has let go of it.
  absl::StatusOr<std::shared_ptr<Model>> Replace(const std::string& device,
                                                 const absl::Status& why);

  // Opens a device that was lost, for which it has so long. Where that fails, nothing has changed
  // but the time at which it is due again.
  absl::Status Probe(const std::string& device, std::chrono::milliseconds most);
  // With devices that Probe has opened, the model as it was asked for, as far as devices are there.
  // One that fails again meanwhile is lost again. Whoever holds the model has let go of it.
  absl::StatusOr<std::shared_ptr<Model>> Readmit(const std::vector<std::string>& devices);
  // A device can't be tried yet.
  void PutOff(const std::string& device);

  const std::vector<LostDevice>& lost() const { return lost_; }
  const LostDevice* FindLost(const std::string& device) const;
  const Readmission& readmission() const { return readmission_; }

 private:
  absl::StatusOr<std::shared_ptr<Model>> LoadOnWhatWorks();
  absl::StatusOr<std::shared_ptr<Model>> LoadOnce();
  // Where devices are that may not come back, on a thread of its own.
  absl::StatusOr<std::unique_ptr<Model>> LoadWatched(std::vector<SegmentPlace> places,
                                                     LoadOptions load);
  // Takes note of devices that were lost while places were chosen, which those are without already.
  // Whether there were any.
  bool NoteFailures();
  void Note(const std::string& device, const absl::Status& why);
  // UNAVAILABLE when it was the last one.
  absl::Status Lose(const std::string& device, const absl::Status& why);
  // Where it is the planner that decides: over the devices that are left. False: it is not, or it
  // has no answer.
  bool PlanAnew();
  absl::Status CheckFile() const;
  bool HasLayers(const std::string& device) const;
  std::string Consequence(const std::string& device, const std::string& successor) const;
  std::string Successor(const std::string& device) const;

  std::shared_ptr<const gguf::File> file_;
  const ModelConfig config_;
  const SegmentLimits limits_;
  DeviceSet* const devices_;
  LoadOptions load_;
  const LogSink log_;
  Placer* placer_ = nullptr;
  ModelPlaces asked_;             // for, when all devices work
  bool asked_for_fewer_ = false;  // some did not when that was chosen
  ModelPlaces places_;            // as it is
  std::vector<LostDevice> lost_;
  Readmission readmission_;
  bool tried_ = false;  // to load it: the file's memory may have been given back
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_KEEPER_H_
