#include "tools/cli/bench/random_model.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/make_model/make_model.h"
#include "runtime/make_model/presets.h"
#include "runtime/quantize/mix.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"

namespace trine {

absl::StatusOr<std::unique_ptr<RandomModel>> RandomModel::Make(std::string_view like,
                                                               int64_t layers,
                                                               std::string_view type,
                                                               int64_t context) {
  auto shape = FindPreset(like);
  if (!shape.ok()) return shape.status();
  shape->ctx = context;
  shape->layers = layers;
  const auto mix = quantize::FindMix(std::string(type));
  if (!mix.ok()) return mix.status();
  MakeModelOptions options;
  options.mix = *mix;
  options.threads = std::max(1U, std::thread::hardware_concurrency());
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return absl::NotFoundError("there is no folder for temporary files");
  const std::string path = (folder / absl::StrCat("trine-random-", getpid(), ".gguf")).string();
  const InterruptFlag interrupt;
  Progress progress("making a model");
  const absl::Status made = MakeModel(*shape, options, path, [&](double fraction) {
    return progress.Update(fraction) && !interrupt.raised();
  });
  progress.Clear();
  if (!made.ok()) return made;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int why = errno;
  unlink(path.c_str());
  if (file < 0) return absl::ErrnoToStatus(why, absl::StrCat(path, " can't be opened"));
  return std::unique_ptr<RandomModel>(new RandomModel(file));
}

RandomModel::RandomModel(int file) : file_(file), path_(absl::StrCat("/proc/self/fd/", file)) {}

RandomModel::~RandomModel() { close(file_); }

}  // namespace trine
