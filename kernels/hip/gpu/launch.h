// One run of a kernel, as plans keep it: made without a device, started any number of times.
//
// Every kernel takes one struct by value. Blocks and grids are of one to three dimensions.
#ifndef TRINE_KERNELS_HIP_GPU_LAUNCH_H_
#define TRINE_KERNELS_HIP_GPU_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace trine::hip {

struct Dim {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim&) const = default;
};

// What every device starts along y and z at the most; along x 2^31 - 1.
inline constexpr uint32_t kMaxGridYZ = 65535;

// Of a kernel's arguments: what all platforms take by value, and no more than fits a few lines.
inline constexpr size_t kMaxArgs = 512;

struct Launch {
  const void* kernel = nullptr;
  void (*call)(const void* kernel, const void* args) = nullptr;  // as a function of the host's
  Dim grid, block;
  uint32_t shared_bytes = 0;  // of dynamic shared memory
  uint32_t args_bytes = 0;
  const char* label = nullptr;  // in profiles, valid for ever
  alignas(16) unsigned char args[kMaxArgs];

  // Nothing to do: a launch of no blocks is an error everywhere.
  bool empty() const { return grid.count() == 0; }
};

template <class Args>
Launch MakeLaunch(void (*kernel)(Args), Dim grid, Dim block, const Args& args,
                  uint32_t shared_bytes = 0) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= kMaxArgs);
  Launch launch;
  launch.kernel = reinterpret_cast<const void*>(kernel);
  launch.call = [](const void* k, const void* a) {
    Args copy;
    std::memcpy(&copy, a, sizeof(copy));
    reinterpret_cast<void (*)(Args)>(const_cast<void*>(k))(copy);
  };
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = shared_bytes;
  launch.args_bytes = sizeof(Args);
  std::memcpy(launch.args, &args, sizeof(args));
  return launch;
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GPU_LAUNCH_H_
