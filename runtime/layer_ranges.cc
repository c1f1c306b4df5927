#include "runtime/layer_ranges.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/find_device.h"

namespace trine {
namespace {

// Weights of each layer; the embedding counts with the first, the output with the last.
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

// Says which devices of a split get nothing, and leaves them out.
std::vector<LayerRange> WithLayers(const std::vector<LayerRange>& ranges,
                                   const std::vector<uint64_t>& layer_bytes,
                                   const std::vector<SplitShare>& shares, const LogSink& log) {
  std::vector<LayerRange> with;
  for (const LayerRange& range : ranges) {
    if (range.end > range.begin) with.push_back(range);
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

absl::StatusOr<std::vector<LayerRange>> SplitRanges(const EngineOptions& options,
                                                    const std::vector<uint64_t>& layer_bytes,
                                                    const DeviceSet& devices) {
  auto shares = ParseSplit(options.tensor_split);
  if (!shares.ok()) return shares.status();
  // An absent tier is the more useful thing to hear about than a sum.
  for (SplitShare& share : *shares) {
    if (share.device.empty()) continue;
    auto known = devices.Resolve(share.device);
    if (!known.ok() && options.allow_degraded && share.device != "cpu") {
      if (options.log) {
        options.log(TRINE_LOG_WARNING,
                    absl::StrCat(known.status().message(), ": its layers go to the CPU"));
      }
      known = std::string("cpu");
    }
    if (!known.ok()) return known.status();
    share.device = *std::move(known);
  }
  const auto ranges = ResolveSplit(*shares, layer_bytes, devices.GpuNames());
  if (!ranges.ok()) {
    return absl::Status(ranges.status().code(),
                        absl::StrCat(ranges.status().message(),
                                     "; there are: ", UsableDevices(devices.inventory())));
  }
  return WithLayers(*ranges, layer_bytes, *shares, options.log);
}

}  // namespace

absl::StatusOr<std::vector<LayerRange>> ChooseRanges(const EngineOptions& options,
                                                     const gguf::File& file,
                                                     const ModelConfig& config,
                                                     const DeviceSet& devices) {
  std::vector<LayerRange> ranges = {{"cpu", 0, static_cast<int>(config.n_layers)}};
  if (!options.tensor_split.empty() && options.gpu_layers >= 0) {
    return absl::InvalidArgumentError("a tensor split already says how many layers a GPU gets");
  }
  if (!options.device_memory.empty()) {
    return absl::InvalidArgumentError(
        "limits of device memory are the planner's; a split or a number of GPU layers leaves it "
        "nothing to decide");
  }
  if (!options.tensor_split.empty()) {
    auto split = SplitRanges(options, LayerBytes(file, config), devices);
    if (!split.ok()) return split.status();
    ranges = *std::move(split);
  } else if (options.gpu_layers > 0) {
    const std::vector<std::string> gpus = devices.GpuNames();
    if (!gpus.empty()) {
      const int n = static_cast<int>(config.n_layers);
      const int on_cpu = n - static_cast<int>(std::min<int64_t>(options.gpu_layers, n));
      ranges = {{gpus.front(), on_cpu, n}};
      if (on_cpu > 0) ranges.insert(ranges.begin(), {"cpu", 0, on_cpu});
    } else if (options.log) {
      options.log(
          TRINE_LOG_WARNING,
          absl::StrCat("there is no usable GPU: all layers stay on the CPU",
                       OnRequestOnly(devices.inventory()), IdlePlugins(devices.inventory())));
    }
  }
  SetEnds(&ranges);
  return ranges;
}

void SetEnds(std::vector<LayerRange>* ranges) {
  const auto has = [&](bool LayerRange::*end) {
    return std::any_of(ranges->begin(), ranges->end(),
                       [&](const LayerRange& range) { return range.*end; });
  };
  if (ranges->empty()) return;
  if (!has(&LayerRange::embedding)) ranges->front().embedding = true;
  if (!has(&LayerRange::head)) ranges->back().head = true;
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
