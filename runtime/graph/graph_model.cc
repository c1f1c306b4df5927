#include "runtime/graph/graph_model.h"

#include <utility>
#include <vector>

#include "plugins/handles.h"

namespace trine {

absl::StatusOr<std::unique_ptr<GraphModel>> LoadGraphModel(const EngineOptions& options) {
  auto setup = PrepareModel(options);
  if (!setup.ok()) return setup.status();
  auto loaded = std::make_unique<GraphModel>();
  loaded->setup = *std::move(setup);
  ModelSetup& s = loaded->setup;
  const auto places = s.placer->Choose();
  if (!places.ok()) return places.status();
  LoadOptions load;
  load.pack = options.pack;
  load.progress = options.progress;
  load.taps = options.taps;
  load.observer = options.observer;
  std::vector<SegmentPlace> segments;
  const auto open = [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<Device>> {
    auto device = s.devices->Open(name);
    if (!device.ok()) return OnDevice(name, device.status());
    return device;
  };
  for (const LayerRange& range : places->ranges) {
    auto device = open(range.device);
    if (!device.ok()) return device.status();
    segments.push_back(
        {*std::move(device), range.device, {range.begin, range.end, range.embedding, range.head}});
  }
  for (const DeviceShare& share : places->rows) {
    auto device = open(share.device);
    if (!device.ok()) return device.status();
    load.tensors.rows.push_back({{*std::move(device), share.device}, share.share});
  }
  for (const auto& [tensor, name] : places->tensors) {
    auto device = open(name);
    if (!device.ok()) return device.status();
    load.tensors.tensors.emplace(tensor, NamedDevice{*std::move(device), name});
  }
  auto model =
      Model::Load(s.file, s.config, s.limits, std::move(segments), s.devices->host(), load);
  if (!model.ok()) return AboutFile(options.model_path, model.status());
  loaded->model = *std::move(model);
  return loaded;
}

}  // namespace trine
