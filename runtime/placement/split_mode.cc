#include "runtime/placement/split_mode.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/invalid.h"
#include "runtime/placement/layer_parts.h"
#include "runtime/quantize/tensor_pattern.h"

namespace trine {
namespace {

using quantize::TensorPattern;

absl::Status Wrong(const std::string& part, absl::string_view why) {
  return Invalid("--override-tensor: '", part, "' ", why);
}

void Warn(const LogSink& log, const std::string& text) {
  if (log) log(TRINE_LOG_WARNING, text);
}

// Returns whether a tensor is a matrix that an op multiplies by, and not a vector such as a bias.
bool CanBePlaced(const gguf::TensorInfo& tensor) {
  return tensor.rank >= 2 && absl::EndsWith(std::string(tensor.name), ".weight");
}

// Returns the devices that a split names, in its order; bare proportions stand for the GPUs.
absl::StatusOr<std::vector<SplitShare>> NamedShares(const PlacementRequest& request,
                                                    const DeviceSet& devices, const LogSink& log) {
  std::vector<SplitShare> shares = request.split;
  const std::vector<std::string> gpus = devices.GpuNames();
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].unit == SplitShare::Unit::kProportion) {
      if (i >= gpus.size()) {
        return Invalid("tensor split: ", shares.size(), " proportions for ", gpus.size(),
                       " GPUs; name tiers instead, such as cpu:1");
      }
      shares[i].device = gpus[i];
      continue;
    }
    absl::Status s = ResolveShare(request, "the CPU stands in for it", devices, log, &shares[i]);
    if (!s.ok()) return s;
  }
  return shares;
}

// Returns equal shares of all usable devices, for requests without a split.
absl::StatusOr<std::vector<DeviceShare>> EqualShares(const PlacementRequest& request,
                                                     const DeviceSet& devices) {
  std::vector<DeviceShare> shares;
  for (const std::string& name : request.devices) {
    auto known = devices.Resolve(name);
    if (!known.ok()) return known.status();
    shares.push_back({*std::move(known), 1});
  }
  if (!shares.empty()) return shares;
  for (const std::string& gpu : devices.GpuNames()) shares.push_back({gpu, 1});
  shares.push_back({"cpu", 1});
  return shares;
}

absl::StatusOr<std::vector<DeviceShare>> RowShares(const PlacementRequest& request,
                                                   const DeviceSet& devices, const LogSink& log) {
  if (request.split.empty()) return EqualShares(request, devices);
  const auto named = NamedShares(request, devices, log);
  if (!named.ok()) return named.status();
  std::vector<DeviceShare> shares;
  for (const SplitShare& s : *named) {
    if (s.unit != named->front().unit) {
      return absl::InvalidArgumentError(
          "tensor split: shares of rows are all of one kind: layers, bytes or %");
    }
    const auto same = std::find_if(shares.begin(), shares.end(),
                                   [&](const DeviceShare& d) { return d.device == s.device; });
    if (same != shares.end()) {
      same->share += s.amount;
    } else if (s.amount > 0) {
      shares.push_back({s.device, s.amount});
    } else {
      Warn(log, absl::StrCat("tensor split: ", s.device, " gets no rows"));
    }
  }
  if (shares.empty()) return absl::InvalidArgumentError("tensor split: the shares are all 0");
  return shares;
}

// Places all layers on the device with the largest share. A single device needs no rows.
void PlaceRows(int n_layers, ModelPlaces* places) {
  const auto main = std::max_element(
      places->rows.begin(), places->rows.end(),
      [](const DeviceShare& a, const DeviceShare& b) { return a.share < b.share; });
  places->ranges = {{{0, n_layers, true, true}, main->device}};
  if (places->rows.size() == 1) places->rows.clear();
}

absl::StatusOr<std::string> OneDevice(const PlacementRequest& request, const DeviceSet& devices,
                                      const LogSink& log) {
  if (!request.split.empty()) {
    const auto shares = NamedShares(request, devices, log);
    if (!shares.ok()) return shares.status();
    const std::string& first = shares->front().device;
    if (shares->size() > 1) {
      Warn(log, absl::StrCat("tensor split: with the split mode none all of the model is on ",
                             first, ", which is named first"));
    }
    return first;
  }
  if (!request.devices.empty()) return devices.Resolve(request.devices.front());
  const std::vector<std::string> gpus = devices.GpuNames();
  return gpus.empty() ? "cpu" : gpus.front();
}

// Places the matrices that match and are not placed yet: the first override that matches wins.
absl::Status Override(const TensorOverride& one, bool allow_degraded, const gguf::File& file,
                      const DeviceSet& devices, const LogSink& log,
                      std::map<std::string, std::string>* tensors) {
  const auto pattern = TensorPattern::Create(one.expression);
  if (!pattern.ok()) return pattern.status();
  const auto device = devices.Resolve(one.device);
  if (!device.ok() && allow_degraded) {
    Warn(log, absl::StrCat(device.status().message(), ": tensors stay with their layers"));
    return absl::OkStatus();
  }
  if (!device.ok()) return device.status();
  bool found = false;
  std::string unplaceable;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const auto matches = pattern->Matches(tensor.name);
    if (!matches.ok()) return matches.status();
    if (!*matches) continue;
    if (!CanBePlaced(tensor)) {
      unplaceable = std::string(tensor.name);
      continue;
    }
    found = true;
    tensors->emplace(std::string(tensor.name), *device);
  }
  if (found) return absl::OkStatus();
  if (!unplaceable.empty()) {
    return Wrong(one.expression, absl::StrCat("finds only tensors that stay with their layer, "
                                              "such as ",
                                              unplaceable));
  }
  return Wrong(one.expression, "finds no tensor of the model");
}

// Places the experts of the first layers on the CPU, unless an override has placed them.
absl::Status PlaceExperts(const PlacementRequest& request, const gguf::File& file,
                          const DeviceSet& devices, std::map<std::string, std::string>* tensors) {
  const bool all = request.cpu_experts == PlacementRequest::kAllLayers || request.cpu_experts == 0;
  const char* const option = request.cpu_experts == 0 ? "--hot-experts"
                             : all                    ? "--cpu-moe"
                                                      : "--n-cpu-moe";
  const std::vector<LayerParts> layers = FindLayerParts(file);
  if (std::none_of(layers.begin(), layers.end(), [](const LayerParts& l) { return l.experts; })) {
    return Invalid(option, ": the model has no experts");
  }
  const auto count = all ? layers.size() : static_cast<size_t>(request.cpu_experts);
  if (count > layers.size()) {
    return Invalid(option, " ", count, ": the model has ", layers.size(), " layers");
  }
  const auto cpu = devices.Resolve("cpu");
  if (!cpu.ok()) return cpu.status();
  for (size_t layer = 0; layer < count; ++layer) {
    if (!layers[layer].experts) continue;
    for (const std::string& weight : layers[layer].weights) tensors->emplace(weight, *cpu);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ResolveOverrides(const PlacementRequest& request,
                                                                    const LogSink& log,
                                                                    const gguf::File& file,
                                                                    const DeviceSet& devices) {
  std::map<std::string, std::string> tensors;
  for (const TensorOverride& one : request.overrides) {
    absl::Status s = Override(one, request.allow_degraded, file, devices, log, &tensors);
    if (!s.ok()) return s;
  }
  if (request.places_experts()) {
    absl::Status s = PlaceExperts(request, file, devices, &tensors);
    if (!s.ok()) return s;
  }
  return tensors;
}

absl::StatusOr<std::map<int64_t, int64_t>> SlotsFor(
    const PlacementRequest& request, const gguf::File& file, const ModelConfig& config,
    const std::map<std::string, std::string>& tensors) {
  std::map<int64_t, int64_t> slots;
  const int64_t wanted = request.hot_experts.value_or(0);
  if (wanted <= 0) return slots;
  if (wanted >= config.experts.count) {
    return Invalid("--hot-experts ", wanted, ": a layer has ", config.experts.count,
                   " experts, so that it may be at most ", config.experts.count - 1);
  }
  const std::vector<LayerParts> layers = FindLayerParts(file);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerParts& parts = layers[layer];
    const bool on_cpu =
        std::all_of(parts.weights.begin(), parts.weights.end(), [&](const std::string& weight) {
          const auto placed = tensors.find(weight);
          return placed != tensors.end() && placed->second == "cpu";
        });
    const bool runs = static_cast<int64_t>(layer) < config.n_layers;
    if (runs && parts.experts && on_cpu) slots[static_cast<int64_t>(layer)] = wanted;
  }
  return slots;
}

namespace {

// Divides the layers that get slots and are on another device than the CPU themselves.
absl::Status DivideExperts(const PlacementRequest& request, const gguf::File& file,
                           const ModelConfig& config, ModelPlaces* places) {
  const auto slots = SlotsFor(request, file, config, places->tensors);
  if (!slots.ok()) return slots.status();
  for (const auto& [layer, count] : *slots) {
    for (const LayerRange& range : places->ranges) {
      if (layer >= range.begin && layer < range.end && range.device != "cpu") {
        places->slots[layer] = count;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelPlaces> ChoosePlaces(
    const PlacementRequest& request, const LogSink& log, const gguf::File& file,
    const ModelConfig& config, const DeviceSet& devices,
    const std::function<absl::StatusOr<ModelPlaces>()>& layers) {
  ModelPlaces places;
  const int n_layers = static_cast<int>(config.n_layers);
  if (request.mode != SplitMode::kLayer && request.gpu_layers >= 0) {
    return absl::InvalidArgumentError(
        "a number of GPU layers goes with the split mode layer; others do not go by layers");
  }
  if (request.mode != SplitMode::kLayer && !request.memory_limits.empty()) {
    return absl::InvalidArgumentError("limits of device memory go with the split mode layer");
  }
  if (request.mode == SplitMode::kLayer) {
    auto found = layers();
    if (!found.ok()) return found.status();
    places = *std::move(found);
  } else if (request.mode == SplitMode::kRow) {
    auto shares = RowShares(request, devices, log);
    if (!shares.ok()) return shares.status();
    places.rows = *std::move(shares);
    PlaceRows(n_layers, &places);
  } else {
    auto device = OneDevice(request, devices, log);
    if (!device.ok()) return device.status();
    places.ranges = {{{0, n_layers, true, true}, *std::move(device)}};
  }
  auto moved = ResolveOverrides(request, log, file, devices);
  if (!moved.ok()) return moved.status();
  for (auto& [tensor, device] : *moved) places.tensors.insert_or_assign(tensor, device);
  if (absl::Status s = DivideExperts(request, file, config, &places); !s.ok()) return s;
  return places;
}

ModelPlaces WithoutDevice(const ModelPlaces& places, const std::string& device,
                          const std::string& instead) {
  ModelPlaces left = places;
  std::erase_if(left.tensors, [&](const auto& tensor) { return tensor.second == device; });
  std::erase_if(left.rows, [&](const DeviceShare& d) { return d.device == device; });
  if (left.rows.empty()) {
    left.ranges = WithoutDevice(places.ranges, device, instead);
  } else {
    PlaceRows(places.ranges.back().end, &left);
  }
  return left;
}

absl::StatusOr<std::vector<TensorOverride>> ParseOverrides(const std::string& text) {
  std::vector<TensorOverride> overrides;
  std::string part;
  for (absl::string_view next : absl::StrSplit(text, ',')) {
    part = part.empty() ? std::string(next) : absl::StrCat(part, ",", next);
    const size_t equals = part.rfind('=');
    if (equals == std::string::npos) continue;
    TensorOverride one{part.substr(0, equals), part.substr(equals + 1)};
    if (one.expression.empty()) return Wrong(part, "has no expression before the '='");
    if (one.device.empty()) return Wrong(part, "names no device after the '='");
    const auto pattern = TensorPattern::Create(one.expression);
    if (!pattern.ok()) return Invalid("--override-tensor: ", pattern.status().message());
    overrides.push_back(std::move(one));
    part.clear();
  }
  if (overrides.empty() || !part.empty())
    return Wrong(part, "is not REGEX=DEVICE, such as _exps=cpu");
  return overrides;
}

}  // namespace trine
