// Kernels as host code: no device, no vendor's header.
//
// Blocks run one after the other; the threads of a block are fibers, each of which runs until it
// meets the others or returns. What hardware leaves undefined is found and told, with block and
// thread: lanes of a group that stand in different meetings or none, a barrier that some threads
// never reach. What depends on the order of threads shows under another order. Speed, registers and
// races inside one phase between two meetings do not show.
#ifndef TRINE_KERNELS_HIP_GPU_EMULATOR_H_
#define TRINE_KERNELS_HIP_GPU_EMULATOR_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/hip/gpu/launch.h"

namespace trine::hip::emulator {

enum class Order { kForward, kReverse, kRandom };

struct Settings {
  uint32_t wave = 32;  // threads that run in turn until they meet: 32 or 64
  Order order = Order::kForward;
  uint64_t seed = 1;  // of kRandom
};

// Of all launches from now on, in this process.
void Configure(const Settings& settings);
Settings CurrentSettings();

// Runs a launch to its end. "" or what the kernel did wrong, and where.
std::string Run(const Launch& launch);

// ---- For device.h: inside a kernel alone -----------------------------------------------------

struct Where {
  Dim thread, block, block_size, grid;
};
const Where& Current();

void SyncBlock();
void* SharedMemory(size_t bytes);
void* DynamicSharedMemory();

// A meeting of the 32 lanes of a group: all come with the same function, which is called once with
// what each brought, in order of lanes. `from`: the line of the kernel that they meet at, the same
// for all of them.
using Meeting = const char* (*)(void** lanes);  // nullptr, or what is wrong
void MeetLanes(Meeting meeting, void* mine, int from = __builtin_LINE());

// Likewise of the 64 lanes of a wave, which only devices with such waves can have.
void MeetWave(Meeting meeting, void* mine, int from = __builtin_LINE());

void SyncLanes(int from);

template <class T>
T LaneXor(T v, int mask, int from) {
  static_assert(sizeof(T) == 4);
  struct Lane {
    T in, out;
    int mask;
  } mine{v, v, mask};
  MeetLanes(
      [](void** lanes) -> const char* {
        for (int i = 0; i < 32; ++i) {
          auto* to = static_cast<Lane*>(lanes[i]);
          if (to->mask != static_cast<Lane*>(lanes[0])->mask || to->mask < 0 || to->mask > 31) {
            return "lanes of a group exchange with different masks";
          }
          to->out = static_cast<Lane*>(lanes[i ^ to->mask])->in;
        }
        return nullptr;
      },
      &mine, from);
  return mine.out;
}

template <class T>
T LaneRead(T v, int lane, int from) {
  static_assert(sizeof(T) == 4);
  struct Lane {
    T in, out;
    int from;
  } mine{v, v, lane};
  MeetLanes(
      [](void** lanes) -> const char* {
        for (int i = 0; i < 32; ++i) {
          auto* to = static_cast<Lane*>(lanes[i]);
          if (to->from < 0 || to->from > 31) return "a lane reads one that is not there";
          to->out = static_cast<Lane*>(lanes[to->from])->in;
        }
        return nullptr;
      },
      &mine, from);
  return mine.out;
}

}  // namespace trine::hip::emulator

#endif  // TRINE_KERNELS_HIP_GPU_EMULATOR_H_
