#include "tools/cli/capture_arguments.h"

#include <utility>

#include "runtime/gguf/gguf_file.h"
#include "runtime/pack_cache/model_id.h"
#include "runtime/version.h"

namespace trine {

void AddCaptureOptions(CLI::App* command, CaptureArguments* a) {
  CLI::Option* capture =
      command
          ->add_option("--capture", a->path,
                       "Record every pass into this file, for trine replay; one sequence")
          ->check(NotEmpty)
          ->type_name("FILE")
          ->excludes("--parallel");
  command
      ->add_option("--capture-level", a->level,
                   "What is recorded: what each layer hands on (layers), or what each op gives "
                   "(ops)")
      ->check(CLI::IsMember({"layers", "ops"}))
      ->needs(capture)
      ->capture_default_str();
  command
      ->add_flag("--capture-values", a->values,
                 "Record values in full, not as hashes: the file is large, and a replay can say "
                 "which element differs and by how much")
      ->needs(capture);
}

absl::StatusOr<std::shared_ptr<CaptureRecorder>> BeginCapture(const CaptureArguments& a,
                                                              EngineArguments* engine) {
  if (a.path.empty()) return std::shared_ptr<CaptureRecorder>();
  CaptureOptions options;
  options.path = a.path;
  options.program = VersionDescription();
  options.model = EngineOptionsOf(*engine).model_path;
  options.values = a.values;
  const auto file = gguf::File::Open(options.model);
  if (!file.ok()) return file.status();
  options.model_id = ModelId(**file);
  auto created = CaptureRecorder::Create(options);
  if (!created.ok()) return created.status();
  std::shared_ptr<CaptureRecorder> recorder = *std::move(created);
  engine->taps = a.level == "ops" ? TapLevel::kOps : TapLevel::kLayers;
  engine->observer = [recorder](const Model& model, size_t stage, const Pass& pass) {
    return recorder->Ran(model, stage, pass);
  };
  return recorder;
}

}  // namespace trine
