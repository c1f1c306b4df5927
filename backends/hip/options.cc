#include "backends/hip/options.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace trine::hip {
namespace {

template <class T>
absl::Status OneOf(absl::string_view key, absl::string_view value,
                   const std::vector<std::pair<absl::string_view, T>>& known, T* out) {
  std::string names;
  for (const auto& [name, meaning] : known) {
    if (name == value) {
      *out = meaning;
      return absl::OkStatus();
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("option \"", key, "\" is one of ", names, ", not \"", value, "\""));
}

absl::Status Switch(absl::string_view key, absl::string_view value, bool* out) {
  return OneOf<bool>(key, value, {{"0", false}, {"1", true}}, out);
}

#if defined(TRINE_GPU_HOST)
absl::Status Number(absl::string_view key, absl::string_view value, uint64_t* out) {
  if (absl::SimpleAtoi(value, out)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("option \"", key, "\" is a number, not \"", value, "\""));
}

absl::Status SetFault(absl::string_view key, absl::string_view value,
                      emulator::DeviceSettings* device) {
  using emulator::Call;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(':', 1));
  const absl::Status status = OneOf<Call>(key, parts.first,
                                          {{"malloc", Call::kMalloc},
                                           {"host-malloc", Call::kHostMalloc},
                                           {"copy", Call::kCopy},
                                           {"start", Call::kStart},
                                           {"capture", Call::kCapture},
                                           {"instantiate", Call::kInstantiate},
                                           {"synchronize", Call::kSynchronize}},
                                          &device->failing);
  return status.ok() ? Number(key, parts.second, &device->failing_from) : status;
}

absl::Status SetEmulated(absl::string_view key, absl::string_view value, Options* options) {
  using emulator::Order;
  if (key == "wave") {
    return OneOf<uint32_t>(key, value, {{"32", 32}, {"64", 64}}, &options->emulator.wave);
  }
  if (key == "order") {
    return OneOf<Order>(
        key, value,
        {{"forward", Order::kForward}, {"reverse", Order::kReverse}, {"random", Order::kRandom}},
        &options->emulator.order);
  }
  if (key == "seed") return Number(key, value, &options->emulator.seed);
  if (key == "memory") return Number(key, value, &options->device.memory_bytes);
  if (key == "devices") {
    return OneOf<uint32_t>(key, value, {{"0", 0}, {"1", 1}, {"2", 2}}, &options->device.devices);
  }
  if (key == "integrated") return Switch(key, value, &options->device.integrated);
  if (key == "fail") return SetFault(key, value, &options->device);
  return absl::InvalidArgumentError(absl::StrCat("unknown option \"", key, "\""));
}
#else
absl::Status SetEmulated(absl::string_view key, absl::string_view, Options*) {
  return absl::InvalidArgumentError(absl::StrCat("unknown option \"", key, "\""));
}
#endif

absl::Status Set(absl::string_view key, absl::string_view value, Options* options) {
  if (key == "graphs") return Switch(key, value, &options->graphs);
  if (key == "fuse") return Switch(key, value, &options->fuse);
  if (key == "pdl") return Switch(key, value, &options->early);
  if (key == "unit") {
    MatrixUnit unit = MatrixUnit::kDot4;
    const absl::Status status = OneOf<MatrixUnit>(key, value,
                                                  {{"dot4", MatrixUnit::kDot4},
                                                   {"mma", MatrixUnit::kMma},
                                                   {"wmma", MatrixUnit::kWmma},
                                                   {"mfma", MatrixUnit::kMfma},
                                                   {"wmma-gfx12", MatrixUnit::kWmmaGfx12},
                                                   {"mfma-gfx942", MatrixUnit::kMfmaGfx942}},
                                                  &unit);
    if (status.ok()) options->unit = unit;
    return status;
  }
  return SetEmulated(key, value, options);
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::string& text) {
  Options options;
  for (const absl::string_view entry : absl::StrSplit(text, ';', absl::SkipEmpty())) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("options are key=value;key=value, not \"", entry, "\""));
    }
    const absl::Status status = Set(entry.substr(0, equals), entry.substr(equals + 1), &options);
    if (!status.ok()) return status;
  }
  return options;
}

}  // namespace trine::hip
