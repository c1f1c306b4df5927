// What a process holds: heap, resident memory, descriptors, threads.
#ifndef TRINE_PLUGINS_CONFORMANCE_RESOURCE_METER_H_
#define TRINE_PLUGINS_CONFORMANCE_RESOURCE_METER_H_

#include <cstdint>
#include <string>

namespace trine::conformance {

struct Resources {
  int64_t heap_bytes = 0;  // handed out by malloc and not given back
  int64_t resident_bytes = 0;
  int64_t descriptors = 0;
  int64_t threads = 0;
};

Resources Measure();

// "" or "leaks about 4096 bytes per cycle", of the growth over `cycles`.
std::string DescribeGrowth(const Resources& from, const Resources& to, int cycles);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_RESOURCE_METER_H_
