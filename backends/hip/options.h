// Parses plugin options and TRINE_HIP_TUNING: "key=value;key=value".
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/hip/gpu/runtime.h"
#include "kernels/hip/weights/product.h"
#if defined(TRINE_GPU_HOST)
#include "kernels/hip/gpu/emulator.h"
#endif

namespace trine::hip {

struct Options {
  bool graphs = true;  // "graphs=0": starts kernels one by one
  bool fuse = true;    // "fuse=0": runs each op by itself
  bool early = true;   // "pdl=0": no kernel begins before the previous one has ended
  // "wait=yield": how a thread waits for the device.
  GpuWait wait = GpuWait::kYield;
  bool pin_files = true;  // "pin=0": pages of files that are imported are not pinned
  // "stage=1000000": the most bytes of streamed weights that are brought in at a time.
  uint64_t stage_bytes = uint64_t{64} << 20;
  std::optional<MatrixUnit> unit;  // "unit=dot4"; nullopt: the device's own unit
#if defined(TRINE_GPU_HOST)
  // The emulator's: "wave=64", "order=reverse", "seed=7", "memory=1000000", "devices=2",
  // "integrated=1", "code=0", "crash=1", "register=0", "register-files=1", "pace=newest",
  // "peers=lying"; "fail=start:12" makes start 12 and all later ones fail, "fail=start:12:1" on the
  // second device only.
  emulator::Settings emulator;
  emulator::DeviceSettings device;
#endif
};

// Returns INVALID_ARGUMENT if `text` has another form, an unknown name or an invalid value.
absl::StatusOr<Options> ParseOptions(const std::string& text);

}  // namespace trine::hip
