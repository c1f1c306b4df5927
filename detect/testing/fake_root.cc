#include "detect/testing/fake_root.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace trine::detect::testing {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "fake root: %s\n", what.c_str());
  std::exit(2);
}

std::string Hex(uint32_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%0*x\n", digits, value);
  return text;
}

std::string MakeTemporary() {
  std::string pattern = (fs::temp_directory_path() / "trine-root-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) Die("no temporary folder");
  return pattern;
}

// Returns "../" once for every folder from the root to the one that holds `path`.
std::string UpFrom(std::string_view path) {
  std::string up;
  const auto slashes = std::count(path.begin(), path.end(), '/');
  for (auto i = slashes; i > 1; --i) up += "../";
  return up;
}

std::string List(const std::vector<int>& cpus) {
  std::string text;
  for (const int cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text + "\n";
}

}  // namespace

FakeRoot::FakeRoot() : path_(MakeTemporary()), temporary_(true) {}

FakeRoot::FakeRoot(std::string folder) : path_(std::move(folder)), temporary_(false) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) Die("cannot make " + path_);
}

FakeRoot::~FakeRoot() {
  std::error_code error;
  if (temporary_) fs::remove_all(path_, error);
}

std::string FakeRoot::Inside(std::string_view path) const { return path_ + std::string(path); }

FakeRoot& FakeRoot::File(std::string_view path, std::string_view content) {
  const fs::path file(Inside(path));
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) Die("cannot write " + file.string());
  return *this;
}

FakeRoot& FakeRoot::Folder(std::string_view path) {
  std::error_code error;
  fs::create_directories(Inside(path), error);
  if (error) Die("cannot make " + Inside(path));
  return *this;
}

FakeRoot& FakeRoot::Link(std::string_view path, std::string_view target) {
  const fs::path link(Inside(path));
  std::error_code error;
  fs::create_directories(link.parent_path(), error);
  fs::remove(link, error);
  fs::create_symlink(std::string(target), link, error);
  if (error) Die("cannot link " + link.string());
  return *this;
}

FakeRoot& FakeRoot::Remove(std::string_view path) {
  std::error_code error;
  fs::remove_all(Inside(path), error);
  return *this;
}

FakeRoot& FakeRoot::X86Cpuinfo(int count, std::string_view vendor, std::string_view model,
                               std::string_view flags) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "processor\t: " + std::to_string(i) + "\nvendor_id\t: " + std::string(vendor) +
            "\nmodel name\t: " + std::string(model) + "\nflags\t\t: " + std::string(flags) + "\n\n";
  }
  return File("/proc/cpuinfo", text);
}

FakeRoot& FakeRoot::ArmCpuinfo(
    const std::vector<std::pair<uint32_t, uint32_t>>& implementer_and_part,
    std::string_view features) {
  std::string text;
  int number = 0;
  for (const auto& [implementer, part] : implementer_and_part) {
    text += "processor\t: " + std::to_string(number++) +
            "\nBogoMIPS\t: 48.00\nFeatures\t: " + std::string(features) +
            "\nCPU implementer\t: " + Hex(implementer, 2) +
            "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: " + Hex(part, 3) +
            "CPU revision\t: 0\n\n";
  }
  return File("/proc/cpuinfo", text);
}

FakeRoot& FakeRoot::Cores(const std::vector<std::vector<int>>& cores, int package) {
  const std::string base = "/sys/devices/system/cpu";
  int core_id = 0;
  for (const std::vector<int>& threads : cores) {
    for (const int cpu : threads) {
      const std::string topology = base + "/cpu" + std::to_string(cpu) + "/topology";
      File(topology + "/physical_package_id", std::to_string(package) + "\n");
      File(topology + "/core_id", std::to_string(core_id) + "\n");
      File(topology + "/thread_siblings_list", List(threads));
    }
    ++core_id;
  }
  return *this;
}

FakeRoot& FakeRoot::Cache(int cpu, int index, int level, std::string_view type,
                          std::string_view size, std::string_view shared_list) {
  const std::string folder =
      "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
  File(folder + "/level", std::to_string(level) + "\n");
  File(folder + "/type", std::string(type) + "\n");
  File(folder + "/size", std::string(size) + "\n");
  File(folder + "/coherency_line_size", "64\n");
  return File(folder + "/shared_cpu_list", std::string(shared_list) + "\n");
}

FakeRoot& FakeRoot::Node(int id, std::string_view cpulist, uint64_t kibibytes) {
  const std::string number = std::to_string(id);
  const std::string folder = "/sys/devices/system/node/node" + number;
  File(folder + "/cpulist", std::string(cpulist) + "\n");
  return File(folder + "/meminfo",
              "Node " + number + " MemTotal:       " + std::to_string(kibibytes) + " kB\n");
}

FakeRoot& FakeRoot::Meminfo(uint64_t total_kib, uint64_t available_kib) {
  return File("/proc/meminfo", "MemTotal:       " + std::to_string(total_kib) +
                                   " kB\nMemFree:        " + std::to_string(available_kib / 2) +
                                   " kB\nMemAvailable:   " + std::to_string(available_kib) +
                                   " kB\nBuffers:        100 kB\nCached:         1000 kB\n"
                                   "SwapTotal:      2048 kB\nSwapFree:       1024 kB\n");
}

FakeRoot& FakeRoot::Pci(const FakePci& device) {
  std::string folder = "/sys/devices/pci0000:00";
  for (const auto& [address, id] : device.bridges) {
    folder += "/" + address;
    File(folder + "/vendor", Hex(device.vendor, 4));
    File(folder + "/device", Hex(id, 4));
    File(folder + "/class", "0x060400\n");
    Link("/sys/bus/pci/devices/" + address, "../../.." + folder.substr(4));
  }
  folder += "/" + device.address;
  Link("/sys/bus/pci/devices/" + device.address, "../../.." + folder.substr(4));
  File(folder + "/vendor", Hex(device.vendor, 4));
  File(folder + "/device", Hex(device.device, 4));
  File(folder + "/class", Hex(device.pci_class, 6));
  File(folder + "/subsystem_vendor", "0x1043\n");
  File(folder + "/subsystem_device", "0x8888\n");
  File(folder + "/numa_node", std::to_string(device.numa_node) + "\n");
  if (!device.driver.empty()) {
    const std::string link = folder + "/driver";
    Link(link, UpFrom(link) + "sys/bus/pci/drivers/" + device.driver);
  }
  if (device.vram) File(folder + "/mem_info_vram_total", std::to_string(*device.vram) + "\n");
  if (device.gtt) File(folder + "/mem_info_gtt_total", std::to_string(*device.gtt) + "\n");
  if (device.render_node >= 0) Folder(folder + "/drm/renderD" + std::to_string(device.render_node));
  char resource[256];
  const unsigned long long start = 0x6000000000ull;
  const unsigned long long end = device.bar == 0 ? 0 : start + device.bar - 1;
  std::snprintf(resource, sizeof(resource),
                "0x%016llx 0x%016llx 0x%016x\n0x%016x 0x%016x 0x%016x\n"
                "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200\n",
                device.bar == 0 ? 0 : start, end, device.bar == 0 ? 0u : 0x14220cu, 0u, 0u, 0u);
  return File(folder + "/resource", resource);
}

FakeRoot& FakeRoot::Kfd(int node, uint32_t domain, uint32_t location_id,
                        uint32_t gfx_target_version) {
  return File("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
              "cpu_cores_count 0\nsimd_count 192\ngfx_target_version " +
                  std::to_string(gfx_target_version) + "\nlocation_id " +
                  std::to_string(location_id) + "\ndomain " + std::to_string(domain) + "\n");
}

FakeRoot& FakeRoot::Devfreq(std::string_view name, std::string_view compatible,
                            std::string_view driver) {
  const std::string leaf(name);
  const std::string device = "/sys/devices/platform/" + leaf;
  const std::string entry = device + "/devfreq/" + leaf;
  Folder(entry);
  Link(entry + "/device", "../../../" + leaf);
  Link("/sys/class/devfreq/" + leaf, "../../devices/platform/" + leaf + "/devfreq/" + leaf);
  const std::string node = "/sys/firmware/devicetree/base/gpu@" + leaf;
  File(node + "/compatible", compatible);
  Link(device + "/of_node", "../../../firmware/devicetree/base/gpu@" + leaf);
  if (!driver.empty()) {
    Link(device + "/driver", "../../../bus/platform/drivers/" + std::string(driver));
  }
  return *this;
}

}  // namespace trine::detect::testing
