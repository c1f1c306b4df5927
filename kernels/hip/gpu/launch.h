// Launch: one run of a kernel, as plans keep it. It is made without a device, and can be started
// any number of times. Every kernel takes one struct by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// How a thread waits for a device: without a pause, giving the processor to others that want it, or
// asleep, which takes longest to notice the end.
enum class GpuWait { kSpin, kYield, kBlock };

namespace trine::hip {

struct Dim {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim&) const = default;
};

// The most blocks that every device takes along y and z; along x it is 2^31 - 1.
inline constexpr uint32_t kMaxGridYZ = 65535;

// The most bytes of a kernel's arguments, which all platforms take by value.
inline constexpr size_t kMaxArgs = 576;

struct Launch {
  const void* kernel = nullptr;
  void (*call)(const void* kernel, const void* args) = nullptr;  // calls the kernel on the host
  Dim grid, block;
  uint32_t shared_bytes = 0;  // dynamic shared memory
  uint32_t args_bytes = 0;
  const char* label = nullptr;  // name in profiles, never freed
  alignas(16) unsigned char args[kMaxArgs];

  // Returns whether there is nothing to do. Starting a launch of no blocks is an error everywhere.
  bool empty() const { return grid.count() == 0; }
};

// Makes a launch of `kernel` with a copy of `args`.
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
