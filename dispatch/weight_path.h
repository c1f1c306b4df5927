// How a device comes by weights that it reads as the file has them: where they lie in memory, or
// through a copy.
#ifndef TRINE_DISPATCH_WEIGHT_PATH_H_
#define TRINE_DISPATCH_WEIGHT_PATH_H_

#include <string>

#include "trine/backend.h"

namespace trine {

enum class WeightPath {
  kFile,   // in the mapped file's own pages
  kArena,  // in memory that the CPU and the device share, filled from the file
  kCopy,   // in memory of the device's, beside the file's
};
const char* WeightPathName(WeightPath path);  // "file", "arena", "copy"

// Whether importing is worth a try: false where the device's memory is its own, so that what it
// imports comes over a bus at each run; where the plugin has seen it fail; and for mapped files
// (`read_only`) where the device imports at larger multiples than the pages that files begin at.
bool MayImport(const trine_device_info& info, bool read_only);

// What is not imported, and why, as far as it is known without a try; "" where nothing is.
std::string ImportRefusal(const trine_device_info& info);

// By what the plugin has found out. Where it has not, importing will be tried, and is expected to
// work.
WeightPath ExpectedWeightPath(const trine_device_info& info);

// The same in words, with what was refused.
std::string DescribeWeightPath(const trine_device_info& info);

}  // namespace trine

#endif  // TRINE_DISPATCH_WEIGHT_PATH_H_
