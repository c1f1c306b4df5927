// Compiles pipelines. Each shader, with its specialisation constants and its subgroup size, is
// compiled on first use.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device/device.h"
#include "backends/vulkan/device/device_caps.h"
#include "backends/vulkan/memory/keyed_file.h"
#include "kernels/vulkan/spirv/shader.h"

namespace trine::vulkan {

// A file that keeps compiled pipelines between runs. It is valid for one chip, one driver and one
// set of shaders. An invalid or damaged file is treated as absent.
class PipelineCacheFile {
 public:
  // `shaders_hash` must change if any shader changes. With an empty path, nothing is read or
  // written.
  PipelineCacheFile(std::string path, const DeviceCaps& caps, uint64_t shaders_hash);

  // Returns the driver's data as it was written. Returns none if there is no valid file.
  std::vector<uint8_t> Read() const;

  // Replaces the file in one step.
  absl::Status Write(const std::vector<uint8_t>& data) const { return file_.Write(data); }

  const std::string& path() const { return file_.path(); }

 private:
  KeyedFile file_;
  uint32_t vendor_id_, device_id_;
  std::array<uint8_t, 16> cache_uuid_;
};

// Returns the path of the device's pipeline cache: see CachePath.
std::string DefaultPipelineCachePath(const DeviceCaps& caps);

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
};

// Thread-safe: one thread may compile a pipeline that another will need. Must outlive recordings
// that use it.
class Pipelines {
 public:
  // `cache_path` is the file that keeps compiled pipelines between runs; "" for none.
  static absl::StatusOr<std::unique_ptr<Pipelines>> Create(Device& device, std::string cache_path);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // Returns a pipeline, which stays valid as long as this object. constants[i] is the shader's
  // constant_id i. constants[0] is the size of its workgroup (layout(local_size_x_id = 0)); the
  // workgroup's other two sides are 1. With a subgroup_size of 0 the driver chooses it; otherwise
  // the device must be able to require the size, and the workgroup must be a multiple of it.
  // Returns UNIMPLEMENTED if the device lacks something that the shader needs.
  absl::StatusOr<Pipeline> Get(const Shader& shader, std::span<const uint32_t> constants,
                               uint32_t subgroup_size);

  // Returns the error that Get would return because of the device, without compiling anything.
  absl::Status Check(const Shader& shader, std::span<const uint32_t> constants,
                     uint32_t subgroup_size) const;

  // Writes the cache file if pipelines were compiled that it lacks. A failure does no harm.
  absl::Status Save();

 private:
  using Key = std::tuple<const Shader*, std::vector<uint32_t>, uint32_t>;
  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };

  Pipelines(Device& device, std::string cache_path);
  absl::Status CreateCache();
  absl::StatusOr<Layout> LayoutFor(uint32_t bindings);
  absl::StatusOr<VkPipeline> Compile(const Shader& shader, std::span<const uint32_t> constants,
                                     uint32_t subgroup_size, VkPipelineLayout layout);

  Device& device_;
  PipelineCacheFile file_;
  std::mutex mutex_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  bool changed_ = false;
  std::array<Layout, kMaxShaderBindings + 1> layouts_{};  // by number of bindings
  std::map<Key, Pipeline> pipelines_;
};

}  // namespace trine::vulkan
