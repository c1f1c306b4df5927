#include "runtime/placement/layer_ranges.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/devices/inventory.h"

namespace trine {
namespace {

// Returns the weight bytes of each layer. The first layer includes the embedding, the last one the
// head.
std::vector<uint64_t> LayerBytes(const gguf::File& file, const ModelConfig& config) {
  std::vector<uint64_t> bytes(static_cast<size_t>(config.n_layers), 0);
  for (const gguf::TensorInfo& t : file.tensors()) {
    const std::string name(t.name);
    int64_t layer = name.rfind("token_embd", 0) == 0 ? 0 : config.n_layers - 1;
    if (name.rfind("blk.", 0) == 0) layer = std::strtol(name.c_str() + 4, nullptr, 10);
    layer = std::clamp<int64_t>(layer, 0, config.n_layers - 1);
    bytes[static_cast<size_t>(layer)] += t.bytes;
  }
  return bytes;
}

// Removes devices of a split that get no layers, and logs which they are.
std::vector<LayerRange> WithLayers(const std::vector<LayerRange>& ranges,
                                   const std::vector<uint64_t>& layer_bytes,
                                   const std::vector<SplitShare>& shares, const LogSink& log) {
  std::vector<LayerRange> with;
  for (const LayerRange& range : ranges) {
    if (range.layers() > 0) with.push_back(range);
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LayerRange& range = ranges[i];
    const bool idle = std::none_of(with.begin(), with.end(), [&](const LayerRange& other) {
      return other.device == range.device;
    });
    if (!idle || !log) continue;
    std::string text = absl::StrCat("tensor split: ", range.device, " gets no layer");
    const auto at = static_cast<size_t>(range.begin);
    if (shares[i].unit == SplitShare::Unit::kBytes && at < layer_bytes.size()) {
      absl::StrAppend(&text, ": layer ", at, " has ", (layer_bytes[at] + 1023) / 1024,
                      " KiB of weights");
    }
    log(TRINE_LOG_WARNING, text);
  }
  return with;
}

absl::StatusOr<std::vector<LayerRange>> SplitRanges(const PlacementRequest& request,
                                                    const std::vector<uint64_t>& layer_bytes,
                                                    const DeviceSet& devices, const LogSink& log) {
  std::vector<SplitShare> shares = request.split;
  // Checked first: an absent tier is more useful to report than a wrong sum.
  for (SplitShare& share : shares) {
    if (share.device.empty()) continue;
    absl::Status s = ResolveShare(request, "its layers go to the CPU", devices, log, &share);
    if (!s.ok()) return s;
  }
  const auto ranges = ResolveSplit(shares, layer_bytes, devices.GpuNames());
  if (!ranges.ok()) {
    return absl::Status(ranges.status().code(),
                        absl::StrCat(ranges.status().message(),
                                     "; there are: ", UsableDevices(devices.inventory())));
  }
  return WithLayers(*ranges, layer_bytes, shares, log);
}

}  // namespace

absl::Status ResolveShare(const PlacementRequest& request, const char* consequence,
                          const DeviceSet& devices, const LogSink& log, SplitShare* share) {
  auto known = devices.Resolve(share->device);
  if (!known.ok() && request.allow_degraded && share->device != "cpu") {
    if (log) log(TRINE_LOG_WARNING, absl::StrCat(known.status().message(), ": ", consequence));
    known = std::string("cpu");
  }
  if (known.ok()) share->device = *std::move(known);
  return known.status();
}

absl::StatusOr<std::vector<LayerRange>> ChooseRanges(const PlacementRequest& request,
                                                     const LogSink& log, const gguf::File& file,
                                                     const ModelConfig& config,
                                                     const DeviceSet& devices) {
  std::vector<LayerRange> ranges = {{{0, config.n_layers}, "cpu"}};
  if (!request.split.empty() && request.gpu_layers >= 0) {
    return absl::InvalidArgumentError("a tensor split already says how many layers a GPU gets");
  }
  if (!request.memory_limits.empty()) {
    return absl::InvalidArgumentError(
        "limits of device memory are the planner's; a split or a number of GPU layers leaves it "
        "nothing to decide");
  }
  if (!request.split.empty()) {
    auto split = SplitRanges(request, LayerBytes(file, config), devices, log);
    if (!split.ok()) return split.status();
    ranges = *std::move(split);
  } else if (request.gpu_layers > 0) {
    const std::vector<std::string> gpus = devices.GpuNames();
    if (!gpus.empty()) {
      const int64_t on_cpu = std::max<int64_t>(config.n_layers - request.gpu_layers, 0);
      ranges = {{{on_cpu, config.n_layers}, gpus.front()}};
      if (on_cpu > 0) ranges.insert(ranges.begin(), {{0, on_cpu}, "cpu"});
    } else if (log) {
      log(TRINE_LOG_WARNING,
          absl::StrCat("there is no usable GPU: all layers stay on the CPU",
                       OnRequestOnly(devices.inventory()), IdlePlugins(devices.inventory())));
    }
  }
  SetEnds(&ranges);
  return ranges;
}

std::vector<LayerRange> WithoutDevice(const std::vector<LayerRange>& ranges,
                                      const std::string& device, const std::string& instead) {
  std::vector<LayerRange> left;
  for (LayerRange range : ranges) {
    if (range.device == device) range.device = instead;
    if (!left.empty() && left.back().device == range.device) {
      left.back().end = range.end;
      left.back().head = range.head;
    } else {
      left.push_back(range);
    }
  }
  return left;
}

}  // namespace trine
