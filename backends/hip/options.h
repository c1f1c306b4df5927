// What plugin options and TRINE_HIP_TUNING say: "key=value;key=value".
#ifndef TRINE_BACKENDS_HIP_OPTIONS_H_
#define TRINE_BACKENDS_HIP_OPTIONS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/hip/gpu/runtime.h"
#include "kernels/hip/product.h"
#if defined(TRINE_GPU_HOST)
#include "kernels/hip/gpu/emulator.h"
#endif

namespace trine::hip {

struct Options {
  bool graphs = true;  // "graphs=0": kernels are started one by one
  bool fuse = true;    // "fuse=0": each op runs by itself
  bool early = true;   // "pdl=0": no kernel begins before those before it have ended
  // "stage=1000000": of weights that are streamed, the most that is brought in at once.
  uint64_t stage_bytes = uint64_t{16} << 20;
  std::optional<MatrixUnit> unit;  // "unit=dot4": else the device's own; the emulator has all
#if defined(TRINE_GPU_HOST)
  // "wave=64", "order=reverse", "seed=7"; "memory=1000000", "devices=2", "integrated=1", "code=0",
  // "crash=1", "register=0", "pace=newest", "peers=lying"; "fail=start:12": the twelfth start
  // fails, and all from then on; "fail=start:12:1": of the second device.
  emulator::Settings emulator;
  emulator::DeviceSettings device;
#endif
};

// INVALID_ARGUMENT for what is no "key=value;key=value", and for a name or a value that is none.
absl::StatusOr<Options> ParseOptions(const std::string& text);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_OPTIONS_H_
