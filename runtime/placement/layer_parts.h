// Finds the weights of a layer that are worth having on another device than the rest of the layer:
// its experts or, in a layer without experts, the matrices of its feed-forward network. They are
// most of a layer's bytes, and little has to be moved for them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/gguf/gguf_file.h"

namespace trine {

struct LayerParts {
  bool experts = false;              // false: a dense feed-forward network
  std::vector<std::string> weights;  // the names of the matrices; empty: the layer has none
};

// Returns the parts of each layer. Layers are those that names such as "blk.7.ffn_up.weight" count.
std::vector<LayerParts> FindLayerParts(const gguf::File& file);

// The parts of layers that a device has without the layers.
struct PartsOnDevice {
  std::string device;
  bool experts = false;     // false: dense feed-forward networks
  std::set<size_t> layers;  // those of which the device has all parts
};

// Groups weights ([weight]: its device) by device and kind of part. Sets `other` to the devices of
// weights that are not all the parts of a layer.
std::vector<PartsOnDevice> GroupMoved(const std::vector<LayerParts>& layers,
                                      const std::map<std::string, std::string>& moved,
                                      std::set<std::string>* other);

}  // namespace trine
