#include "backends/vulkan/pipeline_cache_file.h"

#include <cstring>
#include <utility>

namespace trine::vulkan {
namespace {

constexpr char kMagic[] = "trine-vulkan-pipelines-1";

std::vector<uint8_t> KeyOf(const DeviceCaps& caps, uint64_t shaders_hash) {
  std::vector<uint8_t> key;
  AppendBytes(&key, kMagic);
  AppendBytes(&key, caps.uuid);
  AppendBytes(&key, caps.driver_id);
  AppendBytes(&key, caps.driver_version);
  AppendBytes(&key, caps.pipeline_cache_uuid);
  AppendBytes(&key, shaders_hash);
  return key;
}

}  // namespace

PipelineCacheFile::PipelineCacheFile(std::string path, const DeviceCaps& caps,
                                     uint64_t shaders_hash)
    : file_(std::move(path), KeyOf(caps, shaders_hash)),
      vendor_id_(caps.vendor_id),
      device_id_(caps.device_id),
      cache_uuid_(caps.pipeline_cache_uuid) {}

std::vector<uint8_t> PipelineCacheFile::Read() const {
  std::optional<std::vector<uint8_t>> data = file_.Read();
  if (!data.has_value()) return {};
  // Drivers are to ignore another one's data, and have been seen to crash on it.
  VkPipelineCacheHeaderVersionOne header{};
  if (data->size() < sizeof(header)) return {};
  std::memcpy(&header, data->data(), sizeof(header));
  if (header.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE ||
      header.vendorID != vendor_id_ || header.deviceID != device_id_ ||
      std::memcmp(header.pipelineCacheUUID, cache_uuid_.data(), cache_uuid_.size()) != 0) {
    return {};
  }
  return *std::move(data);
}

std::string DefaultPipelineCachePath(const DeviceCaps& caps) {
  return CachePath(caps, ".pipelines");
}

}  // namespace trine::vulkan
