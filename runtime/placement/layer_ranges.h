// Decides which layers go on which device, as the user asked, and where they go when a device
// fails.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/devices/split_spec.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/placement_request.h"

namespace trine {

struct DeviceShare {
  std::string device;
  double share = 0;  // relative to the shares of the others
};

// Says where the parts of a model go, by the names of devices.
struct ModelPlaces {
  std::vector<LayerRange> ranges;
  // The devices that share the rows of every matrix. If not empty, there is one range, on the
  // device with the largest share.
  std::vector<DeviceShare> rows;
  std::map<std::string, std::string> tensors;  // [tensor placed by name]: its device
  // [layer]: how many of its experts its own device has too, if `tensors` has all elsewhere.
  std::map<int64_t, int64_t> slots;
};

// Returns the layers of each device by --tensor-split or --gpu-layers; without either, all layers
// are on the CPU.
absl::StatusOr<std::vector<LayerRange>> ChooseRanges(const PlacementRequest& request,
                                                     const LogSink& log, const gguf::File& file,
                                                     const ModelConfig& config,
                                                     const DeviceSet& devices);

// Replaces the name of the share's device by its tier name. Replaces an absent device by the CPU if
// the user allows that, with a warning that ends with `consequence`; fails otherwise.
absl::Status ResolveShare(const PlacementRequest& request, const char* consequence,
                          const DeviceSet& devices, const LogSink& log, SplitShare* share);

// Returns the ranges with `instead` in place of `device`; neighbours on the same device are joined.
std::vector<LayerRange> WithoutDevice(const std::vector<LayerRange>& ranges,
                                      const std::string& device, const std::string& instead);

}  // namespace trine
