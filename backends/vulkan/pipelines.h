// Pipelines by shader, specialisation constants and subgroup size, each compiled when first wanted.
#ifndef TRINE_BACKENDS_VULKAN_PIPELINES_H_
#define TRINE_BACKENDS_VULKAN_PIPELINES_H_

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
#include "backends/vulkan/device.h"
#include "backends/vulkan/pipeline_cache_file.h"
#include "kernels/vulkan/shader.h"

namespace trine::vulkan {

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
};

// Thread-safe: a thread may warm up what another will want. Outlives the recordings that use it.
class Pipelines {
 public:
  // `cache_path`: where compiled pipelines are kept between runs, "" for nowhere.
  static absl::StatusOr<std::unique_ptr<Pipelines>> Create(Device& device, std::string cache_path);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // constants[i] is the shader's constant_id i. constants[0] is the size of its workgroup (layout
  // (local_size_x_id = 0)), the other two sides being 1. subgroup_size 0 leaves it to the driver,
  // else the device must be able to require it and the workgroup be a multiple of it.
  // UNIMPLEMENTED where the device lacks what the shader needs. The pipeline stays until the end.
  absl::StatusOr<Pipeline> Get(const Shader& shader, std::span<const uint32_t> constants,
                               uint32_t subgroup_size);

  // Whether Get would take such a request: what it asks of the device, before anything is compiled.
  absl::Status Check(const Shader& shader, std::span<const uint32_t> constants,
                     uint32_t subgroup_size) const;

  // Writes the cache file when something was compiled since it was read. Failing is no harm.
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

#endif  // TRINE_BACKENDS_VULKAN_PIPELINES_H_
