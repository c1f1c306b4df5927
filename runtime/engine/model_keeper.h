// Keeps a model on devices that work. Loads the model and, when a device fails during loading or
// later, loads it again on the devices that are left. Not thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/readmission.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/run/model.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/layer_ranges.h"
#include "runtime/placement/placer.h"

namespace trine {

// A lost device and why it was lost.
struct LostDevice {
  std::string name;  // its tier name
  std::string reason;
  std::chrono::steady_clock::time_point since;
};

class ModelKeeper {
 public:
  // `devices` must outlive the keeper.
  ModelKeeper(std::shared_ptr<const gguf::File> file, const ModelConfig& config,
              const SegmentLimits& limits, DeviceSet* devices, LoadOptions load,
              const ReadmissionOptions& readmission, LogSink log);

  // Sets the placer that decides where the model goes when a device is lost. Without a placer, the
  // lost device's layers go to the CPU. The placer must outlive the keeper.
  void SetPlacer(Placer* placer) { placer_ = placer; }

  // Loads the model at these places, or elsewhere if devices fail. Returns UNAVAILABLE, with the
  // reason for each device, if no device is left. Other errors are not caused by a device.
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelPlaces places);
  // Loads the model without a device that has failed. REQUIRES: nothing holds the old model.
  absl::StatusOr<std::shared_ptr<Model>> Replace(const std::string& device,
                                                 const absl::Status& why);

  // Tries to open a lost device, for at most the time `most`. A failure changes nothing but the
  // time of the next try.
  absl::Status Probe(const std::string& device, std::chrono::milliseconds most);
  // Loads the model with devices that Probe has opened, in the placement that was asked for as far
  // as the working devices allow. A device that fails again is lost again. REQUIRES: nothing holds
  // the old model.
  absl::StatusOr<std::shared_ptr<Model>> Readmit(const std::vector<std::string>& devices);
  // Puts off the next try of a device.
  void PutOff(const std::string& device);

  const std::vector<LostDevice>& lost() const { return lost_; }
  const LostDevice* FindLost(const std::string& device) const;
  const Readmission& readmission() const { return readmission_; }

 private:
  absl::StatusOr<std::shared_ptr<Model>> LoadOnWhatWorks();
  absl::StatusOr<std::shared_ptr<Model>> LoadOnce();
  // Loads the model on a separate thread if a device may hang.
  absl::StatusOr<std::unique_ptr<Model>> LoadWatched(std::vector<SegmentPlace> places,
                                                     LoadOptions load);
  // Records devices that were lost while the placer chose places; the places leave them out
  // already. Returns whether there were any.
  bool NoteFailures();
  void Note(const std::string& device, const absl::Status& why);
  // Takes a device out of the placement. Returns UNAVAILABLE if it was the last device.
  absl::Status Lose(const std::string& device, const absl::Status& why);
  // Plans a placement on the devices that are left. Returns false if the planner does not decide or
  // finds no placement.
  bool PlanAnew();
  absl::Status CheckFile() const;
  bool HasLayers(const std::string& device) const;
  bool HasTensors(const std::string& device) const;
  std::string Consequence(const std::string& device, const std::string& successor) const;
  std::string Successor(const std::string& device) const;

  std::shared_ptr<const gguf::File> file_;
  const ModelConfig config_;
  const SegmentLimits limits_;
  DeviceSet* const devices_;
  LoadOptions load_;
  const LogSink log_;
  Placer* placer_ = nullptr;
  ModelPlaces asked_;             // the placement with all devices
  bool asked_for_fewer_ = false;  // true: some devices had failed before asked_ was chosen
  ModelPlaces places_;            // the current placement
  std::vector<LostDevice> lost_;
  Readmission readmission_;
  bool tried_ = false;  // true: loading was tried, so memory of the file may have been released
};

}  // namespace trine
