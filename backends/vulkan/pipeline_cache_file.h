// Compiled pipelines, kept between runs. A file is of one chip, one driver and one set of shaders;
// one that is not, or that is damaged, counts as absent.
#ifndef TRINE_BACKENDS_VULKAN_PIPELINE_CACHE_FILE_H_
#define TRINE_BACKENDS_VULKAN_PIPELINE_CACHE_FILE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device_caps.h"
#include "backends/vulkan/keyed_file.h"

namespace trine::vulkan {

class PipelineCacheFile {
 public:
  // `shaders_hash` changes with any shader. An empty path: nothing is read or written.
  PipelineCacheFile(std::string path, const DeviceCaps& caps, uint64_t shaders_hash);

  // What the driver gave when the file was written; empty where there is nothing to be trusted.
  std::vector<uint8_t> Read() const;

  // Replaces the file in one step.
  absl::Status Write(const std::vector<uint8_t>& data) const { return file_.Write(data); }

  const std::string& path() const { return file_.path(); }

 private:
  KeyedFile file_;
  uint32_t vendor_id_, device_id_;
  std::array<uint8_t, 16> cache_uuid_;
};

// See CachePath.
std::string DefaultPipelineCachePath(const DeviceCaps& caps);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_PIPELINE_CACHE_FILE_H_
