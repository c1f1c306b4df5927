#include "runtime/placement/layer_parts.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace trine {
namespace {

constexpr size_t kMostLayers = 100000;

// Splits "blk.7.ffn_up.weight" into 7 and "ffn_up"; returns false for other names.
bool ParseName(std::string_view name, size_t* layer, std::string_view* matrix) {
  absl::string_view rest(name.data(), name.size());
  if (!absl::ConsumePrefix(&rest, "blk.") || !absl::ConsumeSuffix(&rest, ".weight")) return false;
  const size_t dot = rest.find('.');
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, dot), layer)) return false;
  const absl::string_view last = rest.substr(dot + 1);
  *matrix = {last.data(), last.size()};
  return *layer < kMostLayers;
}

bool IsExperts(std::string_view matrix) {
  return matrix == "ffn_gate_exps" || matrix == "ffn_up_exps" || matrix == "ffn_down_exps" ||
         matrix == "ffn_gate_up_exps";
}

bool IsDense(std::string_view matrix) {
  return matrix == "ffn_gate" || matrix == "ffn_up" || matrix == "ffn_down";
}

}  // namespace

std::vector<LayerParts> FindLayerParts(const gguf::File& file) {
  std::vector<LayerParts> layers;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    size_t layer = 0;
    std::string_view matrix;
    if (tensor.rank < 2 || !ParseName(tensor.name, &layer, &matrix)) continue;
    const bool experts = IsExperts(matrix);
    if (!experts && !IsDense(matrix)) continue;
    if (layers.size() <= layer) layers.resize(layer + 1);
    LayerParts& parts = layers[layer];
    if (!experts && parts.experts) continue;
    if (experts && !parts.experts) parts = {true, {}};
    parts.weights.emplace_back(tensor.name);
  }
  return layers;
}

std::vector<PartsOnDevice> GroupMoved(const std::vector<LayerParts>& layers,
                                      const std::map<std::string, std::string>& moved,
                                      std::set<std::string>* other) {
  std::map<std::pair<std::string, bool>, std::set<size_t>> groups;
  std::map<std::string, std::string> rest = moved;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const std::vector<std::string>& weights = layers[layer].weights;
    if (weights.empty() || moved.count(weights[0]) == 0) continue;
    const std::string& device = moved.at(weights[0]);
    const bool all = std::all_of(weights.begin(), weights.end(), [&](const std::string& weight) {
      const auto found = moved.find(weight);
      return found != moved.end() && found->second == device;
    });
    if (!all) continue;
    groups[{device, layers[layer].experts}].insert(layer);
    for (const std::string& weight : weights) rest.erase(weight);
  }
  for (const auto& [weight, device] : rest) other->insert(device);
  std::vector<PartsOnDevice> parts;
  for (auto& [key, numbers] : groups) parts.push_back({key.first, key.second, std::move(numbers)});
  return parts;
}

}  // namespace trine
