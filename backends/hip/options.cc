#include "backends/hip/options.h"

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

absl::Status Number(absl::string_view key, absl::string_view value, uint64_t* out) {
  if (absl::SimpleAtoi(value, out)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("option \"", key, "\" is a number, not \"", value, "\""));
}

#if defined(TRINE_GPU_HOST)
absl::Status SetFault(absl::string_view key, absl::string_view value,
                      emulator::DeviceSettings* device) {
  using emulator::Call;
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  absl::Status status = OneOf<Call>(key, parts[0],
                                    {{"malloc", Call::kMalloc},
                                     {"host-malloc", Call::kHostMalloc},
                                     {"copy", Call::kCopy},
                                     {"start", Call::kStart},
                                     {"capture", Call::kCapture},
                                     {"instantiate", Call::kInstantiate},
                                     {"synchronize", Call::kSynchronize},
                                     {"stream", Call::kStream},
                                     {"event", Call::kEvent},
                                     {"register", Call::kRegister},
                                     {"peer", Call::kPeer}},
                                    &device->failing);
  if (status.ok()) status = Number(key, parts.size() > 1 ? parts[1] : "", &device->failing_from);
  if (!status.ok() || parts.size() < 3) return status;
  return OneOf<uint32_t>(key, parts[2], {{"0", 0}, {"1", 1}, {"2", 2}}, &device->failing_device);
}

absl::Status SetEmulated(absl::string_view key, absl::string_view value, Options* options) {
  using emulator::Order;
  using emulator::Pace;
  using emulator::Peers;
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
    return OneOf<uint32_t>(key, value, {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}},
                           &options->device.devices);
  }
  if (key == "integrated") return Switch(key, value, &options->device.integrated);
  if (key == "code") return Switch(key, value, &options->device.has_code);
  if (key == "crash") return Switch(key, value, &options->device.crashes);
  if (key == "register-files") return Switch(key, value, &options->device.registers_files);
  if (key == "register") return Switch(key, value, &options->device.registers);
  if (key == "pace") {
    return OneOf<Pace>(key, value,
                       {{"at-once", Pace::kAtOnce},
                        {"oldest", Pace::kOldest},
                        {"newest", Pace::kNewest},
                        {"random", Pace::kRandom}},
                       &options->device.pace);
  }
  if (key == "peers") {
    return OneOf<Peers>(key, value,
                        {{"good", Peers::kGood}, {"none", Peers::kNone}, {"lying", Peers::kLying}},
                        &options->device.peers);
  }
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
  if (key == "wait") {
    return OneOf<GpuWait>(
        key, value,
        {{"spin", GpuWait::kSpin}, {"yield", GpuWait::kYield}, {"block", GpuWait::kBlock}},
        &options->wait);
  }
  if (key == "pin") return Switch(key, value, &options->pin_files);
  if (key == "pdl") return Switch(key, value, &options->early);
  if (key == "stage") {
    const absl::Status status = Number(key, value, &options->stage_bytes);
    if (!status.ok() || options->stage_bytes > 0) return status;
    return absl::InvalidArgumentError("option \"stage\" is at least 1 byte");
  }
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
