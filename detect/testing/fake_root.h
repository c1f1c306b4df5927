// Builds the /proc and /sys of a made-up machine in a folder, for tests.
//
// The layout is the kernel's, relative links included, so that code that works on a fake root works
// on a capture. A failure to write ends the test program. Not thread-safe; one test owns one root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trine::detect::testing {

inline constexpr uint64_t kGiB = uint64_t{1} << 30;

struct FakePci {
  std::string address;  // "0000:03:00.0"
  uint32_t vendor = 0;
  uint32_t device = 0;
  uint32_t pci_class = 0x030000;
  std::string driver = {};  // "": no driver is bound.
  // The (address, device id) of each bridge, from the root port down. Its vendor is the GPU's.
  std::vector<std::pair<std::string, uint32_t>> bridges = {};
  std::optional<uint64_t> vram = {};  // Written only if the driver is amdgpu.
  std::optional<uint64_t> gtt = {};
  uint64_t bar = 0;      // The size of a prefetchable window.
  int render_node = -1;  // 128 makes drm/renderD128.
  int numa_node = -1;
};

class FakeRoot {
 public:
  // Makes a new folder under the system's temporary one and removes it with this object.
  FakeRoot();
  // Uses an existing folder or makes a new one, and keeps it.
  explicit FakeRoot(std::string folder);
  ~FakeRoot();
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }

  // Paths are absolute within the root. Parent folders are made as needed.
  FakeRoot& File(std::string_view path, std::string_view content);
  FakeRoot& Folder(std::string_view path);
  FakeRoot& Link(std::string_view path, std::string_view target);
  FakeRoot& Remove(std::string_view path);

  // Writes a /proc/cpuinfo of `count` equal processors.
  FakeRoot& X86Cpuinfo(int count, std::string_view vendor, std::string_view model,
                       std::string_view flags);
  FakeRoot& ArmCpuinfo(const std::vector<std::pair<uint32_t, uint32_t>>& implementer_and_part,
                       std::string_view features);

  // Adds a sysfs topology: cores[i] lists the threads of core i, all in one package with one node.
  FakeRoot& Cores(const std::vector<std::vector<int>>& cores, int package = 0);
  // Adds one cache of one processor, as cpuN/cache/indexI.
  FakeRoot& Cache(int cpu, int index, int level, std::string_view type, std::string_view size,
                  std::string_view shared_list);
  FakeRoot& Node(int id, std::string_view cpulist, uint64_t kibibytes);

  FakeRoot& Meminfo(uint64_t total_kib, uint64_t available_kib);
  FakeRoot& Pci(const FakePci& device);
  // Adds a node of AMD's compute driver.
  FakeRoot& Kfd(int node, uint32_t domain, uint32_t location_id, uint32_t gfx_target_version);
  // Adds a GPU of a system on a chip with its devfreq entry; `compatible` is NUL-separated.
  FakeRoot& Devfreq(std::string_view name, std::string_view compatible, std::string_view driver);

 private:
  std::string Inside(std::string_view path) const;

  std::string path_;
  bool temporary_;
};

}  // namespace trine::detect::testing
