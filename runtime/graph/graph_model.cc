#include "runtime/graph/graph_model.h"

#include <utility>

#include "runtime/placement/elsewhere.h"

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
  auto opened = OpenPlaces(*places, s.devices.get());
  if (!opened.ok()) return opened.status();
  load.tensors = std::move(opened->tensors);
  auto model =
      Model::Load(s.file, s.config, s.limits, std::move(opened->segments), s.devices->host(), load);
  if (!model.ok()) return AboutFile(options.model_path, model.status());
  loaded->model = *std::move(model);
  return loaded;
}

}  // namespace trine
