// Runs kernels as host code, without a device or a vendor's headers.
//
// Runs the blocks one after the other. The threads of a block are fibers. Each runs until it has to
// wait for others, in a barrier or in an exchange between lanes (a meeting), or until it returns.
// Reports, with block and thread, what hardware leaves undefined: lanes of a group that wait in
// different meetings or in none, a barrier that some threads never reach, and copies that are never
// awaited or are not aligned. A result that depends on the order of threads changes with
// Settings::order. The emulator tells nothing about speed or registers, and does not find races
// between two meetings.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/hip/gpu/launch.h"

namespace trine::hip::emulator {

enum class Order { kForward, kReverse, kRandom };

struct Settings {
  uint32_t wave = 32;  // threads that run in turn until they meet: 32 or 64
  Order order = Order::kForward;
  uint64_t seed = 1;  // for kRandom
};

// Applies to all later launches of the process.
void Configure(const Settings& settings);
Settings CurrentSettings();

// Runs a launch to its end. Returns "", or the mistake of the kernel and its place.
std::string Run(const Launch& launch);

// ---- For device.h: inside a kernel alone -----------------------------------------------------

struct Where {
  Dim thread, block, block_size, grid;
};
const Where& Current();

void SyncBlock();
void* SharedMemory(size_t bytes);
void* DynamicSharedMemory();

// Makes the 32 lanes of a group meet: each waits until all have called this. All must pass the same
// function. It is called once, with the `mine` of each lane, in the order of the lanes. `from`: the
// line of the kernel where they meet, which must be the same for all.
using Meeting = const char* (*)(void** lanes);  // returns null, or what is wrong
void MeetLanes(Meeting meeting, void* mine, int from = __builtin_LINE());

// Makes the 64 lanes of a wave meet, as MeetLanes does. Only for devices with such waves.
void MeetWave(Meeting meeting, void* mine, int from = __builtin_LINE());

void SyncLanes(int from);

// Begin copies, close a group of them, and wait until at most `left` groups are under way, as the
// functions of device.h do. A copy is done when it is begun or when it is awaited, as
// Settings::order says. A thread that ends with copies under way is reported.
void BeginCopy(void* to, const void* from, size_t bytes);
void EndCopyGroup();
void AwaitCopyGroups(uint32_t left);

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
