// What a process holds: heap, memory, descriptors, threads.
#ifndef TRINE_PLUGINS_CONFORMANCE_RESOURCE_METER_H_
#define TRINE_PLUGINS_CONFORMANCE_RESOURCE_METER_H_

#include <cstdint>
#include <string>

namespace trine::conformance {

struct Resources {
  int64_t heap_bytes = 0;  // handed out by malloc and not given back
  int64_t resident_bytes = 0;
  int64_t mapped_bytes = 0;  // address space
  int64_t descriptors = 0;   // -1: none is left to count them with
  int64_t threads = 0;
  int64_t device_bytes = 0;  // in use on the device, whoever uses it; the caller's to fill in
};

Resources Measure();

// Two windows of cycles, one behind the other.
struct Windows {
  Resources start, middle, end;
  int first_cycles = 0, second_cycles = 0;
};

// "" or "leaks file descriptors: ...": what has grown in both windows.
std::string DescribeHandleGrowth(const Windows& windows);

// "" or "leaks about 4096 bytes per cycle", likewise. A cache that fills up grows in one.
std::string DescribeMemoryGrowth(const Windows& windows);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_RESOURCE_METER_H_
