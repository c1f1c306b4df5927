// Where a model goes, by the names of devices.
#ifndef TRINE_RUNTIME_MODEL_PLACES_H_
#define TRINE_RUNTIME_MODEL_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "dispatch/split_spec.h"

namespace trine {

struct DeviceShare {
  std::string device;
  double share = 0;  // in proportion to the others'
};

struct ModelPlaces {
  std::vector<LayerRange> ranges;
  // Who shares the rows of every matrix. Then there is one range, on the one with the largest
  // share.
  std::vector<DeviceShare> rows;
  std::map<std::string, std::string> tensors;  // those that are placed by name: their devices
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_PLACES_H_
