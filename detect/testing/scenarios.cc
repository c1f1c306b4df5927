#include "detect/testing/scenarios.h"

#include <string>

namespace trine::detect::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kKiBPerGiB = uint64_t{1} << 20;

constexpr char kAvx2Flags[] = "fpu sse2 lm sse4_2 fma avx f16c bmi2 avx2";
constexpr char kZen4Flags[] =
    "fpu sse2 lm sse4_2 fma avx f16c bmi2 avx2 avx512f avx512dq avx512cd avx512bw avx512vl "
    "avx512_vnni avx512_bf16";
constexpr char kSapphireRapidsFlags[] =
    "fpu sse2 lm sse4_2 fma avx f16c bmi2 avx2 avx_vnni avx512f avx512dq avx512cd avx512bw "
    "avx512vl avx512_vnni avx512_bf16 avx512_fp16 amx_bf16 amx_tile amx_int8";

void Desktop(FakeRoot* root, const char* flags = kAvx2Flags) {
  root->X86Cpuinfo(8, "AuthenticAMD", "AMD Ryzen 7 Test 8-Core Processor", flags)
      .Cores({{0, 4}, {1, 5}, {2, 6}, {3, 7}})
      .File("/sys/devices/system/cpu/online", "0-7\n")
      .Node(0, "0-7", 32 * kKiBPerGiB)
      .Meminfo(32 * kKiBPerGiB, 24 * kKiBPerGiB)
      .File("/proc/self/status", "Name:\ttest\nCpus_allowed_list:\t0-7\n")
      .File("/proc/self/cgroup", "0::/\n");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string core = std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4);
    root->Cache(cpu, 0, 1, "Data", "32K", core)
        .Cache(cpu, 1, 1, "Instruction", "32K", core)
        .Cache(cpu, 2, 2, "Unified", "1024K", core)
        .Cache(cpu, 3, 3, "Unified", "32M", "0-7");
  }
}

FakePci IntelIgpu() {
  FakePci gpu{.address = "0000:00:02.0", .vendor = 0x8086, .device = 0x9a49, .driver = "i915"};
  gpu.bar = kGiB / 4;
  gpu.render_node = 128;
  return gpu;
}

FakePci AmdApu() {
  FakePci gpu{.address = "0000:0d:00.0", .vendor = 0x1002, .device = 0x1681, .driver = "amdgpu"};
  gpu.bridges = {{"0000:00:08.1", 0x14b9}};
  gpu.vram = kGiB / 2;
  gpu.gtt = 14 * kGiB;
  gpu.render_node = 129;
  return gpu;
}

FakePci AmdCard(const std::string& bus = "03") {
  FakePci gpu{
      .address = "0000:" + bus + ":00.0", .vendor = 0x1002, .device = 0x744c, .driver = "amdgpu"};
  gpu.bridges = {{"0000:00:0" + bus.substr(1) + ".1", 0x14ab},
                 {"0000:" + bus.substr(0, 1) + "1:00.0", 0x1478},
                 {"0000:" + bus.substr(0, 1) + "2:00.0", 0x1479}};
  gpu.vram = 24 * kGiB;
  gpu.gtt = 16 * kGiB;
  gpu.bar = 32 * kGiB;
  gpu.render_node = 128;
  gpu.numa_node = 0;
  return gpu;
}

FakePci NvidiaCard(const std::string& address = "0000:01:00.0") {
  FakePci gpu{.address = address, .vendor = 0x10de, .device = 0x2684, .driver = "nvidia"};
  gpu.bar = 32 * kGiB;
  return gpu;
}

void LaptopIntelIgpu(FakeRoot* root) {
  Desktop(root);
  root->X86Cpuinfo(8, "GenuineIntel", "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", kZen4Flags);
  root->Pci(IntelIgpu());
}

void DesktopNvidia(FakeRoot* root) {
  Desktop(root);
  root->Pci(NvidiaCard());
  root->File("/proc/driver/nvidia/gpus/0000:01:00.0/information",
             "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 100\n");
}

void DesktopAmd(FakeRoot* root) {
  Desktop(root, kZen4Flags);
  root->Pci(AmdCard()).Kfd(0, 0, 0, 0).Kfd(1, 0, 0x0300, 110000);
}

void ApuAndDgpu(FakeRoot* root) {
  Desktop(root, kZen4Flags);
  root->Pci(AmdApu()).Pci(AmdCard());
  root->Kfd(1, 0, 0x0300, 110000).Kfd(2, 0, 0x0d00, 100305);
}

void TwoDgpus(FakeRoot* root) {
  Desktop(root);
  root->Pci(AmdCard()).Pci(NvidiaCard("0000:41:00.0"));
}

void LaptopHybridArc(FakeRoot* root) {
  // Two performance cores with two threads, four efficiency cores with one.
  root->X86Cpuinfo(8, "GenuineIntel", "12th Gen Intel(R) Core(TM) i7-1280P", kAvx2Flags)
      .Cores({{0, 1}, {2, 3}, {4}, {5}, {6}, {7}})
      .File("/sys/devices/cpu_core/cpus", "0-3\n")
      .File("/sys/devices/cpu_atom/cpus", "4-7\n")
      .Meminfo(16 * kKiBPerGiB, 8 * kKiBPerGiB);
  FakePci igpu = IntelIgpu();
  igpu.device = 0x46a6;
  FakePci arc{.address = "0000:03:00.0", .vendor = 0x8086, .device = 0x5693, .driver = "i915"};
  arc.bar = 4 * kGiB;
  root->Pci(igpu).Pci(arc);
}

void BmcServer(FakeRoot* root) {
  Desktop(root);
  root->X86Cpuinfo(8, "GenuineIntel", "INTEL(R) XEON(R) PLATINUM 8480+", kSapphireRapidsFlags);
  root->Pci({.address = "0000:02:00.0", .vendor = 0x1a03, .device = 0x2000, .driver = "ast"});
}

void Cdna3Server(FakeRoot* root) {
  Desktop(root, kZen4Flags);
  FakePci gpu{.address = "0000:0c:00.0",
              .vendor = 0x1002,
              .device = 0x74a1,
              .pci_class = 0x120000,
              .driver = "amdgpu"};
  gpu.vram = 192 * kGiB;
  root->Pci(gpu).Kfd(1, 0, 0x0c00, 90402);
  root->Pci({.address = "0000:02:00.0", .vendor = 0x1a03, .device = 0x2000, .driver = "ast"});
}

void ArmMali(FakeRoot* root) {
  root->ArmCpuinfo({{0x41, 0xd05}, {0x41, 0xd05}, {0x41, 0xd0b}, {0x41, 0xd0b}},
                   "fp asimd evtstrm aes atomics fphp asimdhp asimddp")
      .Cores({{0}, {1}, {2}, {3}})
      .File("/sys/devices/system/cpu/cpu0/cpu_capacity", "530\n")
      .File("/sys/devices/system/cpu/cpu1/cpu_capacity", "530\n")
      .File("/sys/devices/system/cpu/cpu2/cpu_capacity", "1024\n")
      .File("/sys/devices/system/cpu/cpu3/cpu_capacity", "1024\n")
      .Meminfo(8 * kKiBPerGiB, 6 * kKiBPerGiB)
      .Devfreq("fb000000.gpu", std::string("rockchip,rk3588-mali\0arm,mali-valhall-csf\0", 43),
               "panthor")
      .Devfreq("dmc", std::string("rockchip,rk3588-dmc\0", 20), "rockchip-dmc");
}

void VfioDgpu(FakeRoot* root) {
  Desktop(root);
  FakePci gpu = NvidiaCard();
  gpu.driver = "vfio-pci";
  root->Pci(gpu);
}

void UnboundDgpu(FakeRoot* root) {
  Desktop(root);
  FakePci gpu = AmdCard();
  gpu.driver = "";
  root->Pci(gpu);
}

void VirtualMachine(FakeRoot* root) {
  Desktop(root);
  root->Pci(
      {.address = "0000:00:01.0", .vendor = 0x1af4, .device = 0x1050, .driver = "virtio-pci"});
}

void CgroupV2(FakeRoot* root) {
  Desktop(root);
  root->File("/proc/self/cgroup", "0::/user.slice/app.scope\n")
      .File("/sys/fs/cgroup/user.slice/memory.max", "4294967296\n")
      .File("/sys/fs/cgroup/user.slice/memory.current", "2147483648\n")
      .File("/sys/fs/cgroup/user.slice/memory.stat", "anon 10\ninactive_file 1073741824\n")
      .File("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n")
      .File("/sys/fs/cgroup/user.slice/app.scope/memory.max", "max\n")
      .File("/sys/fs/cgroup/user.slice/app.scope/cpu.max", "max 100000\n");
}

void CgroupV1(FakeRoot* root) {
  Desktop(root);
  root->File("/proc/self/cgroup",
             "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n")
      .File("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .File("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1073741824\n")
      .File("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "536870912\n")
      .File("/sys/fs/cgroup/memory/docker/abc/memory.stat", "total_inactive_file 268435456\n")
      .File("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "200000\n")
      .File("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
}

void Nothing(FakeRoot*) {}

// Makes folders where files are expected, which not even the administrator can read.
void Unreadable(FakeRoot* root) {
  for (const char* path :
       {"/proc/cpuinfo", "/proc/meminfo", "/proc/self/status", "/proc/self/cgroup",
        "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/cpu0/topology/core_id",
        "/sys/devices/system/node/node0/meminfo", "/sys/bus/pci/devices/0000:03:00.0/class",
        "/sys/class/kfd/kfd/topology/nodes/0/properties"}) {
    root->Folder(path);
  }
}

void Garbage(FakeRoot* root) {
  const std::string binary("\xff\x00\xfe:\x80\n:::\n\x01\x7f", 12);
  root->File("/proc/cpuinfo", std::string(10 * 1024 * 1024, 'x'))
      .File("/proc/meminfo", "MemTotal: 99999999999999999999999 kB\nMemAvailable: -5 kB\n")
      .File("/proc/self/status", "Cpus_allowed_list:\t0-4294967295\n")
      .File("/proc/self/cgroup", "0::/../../../../etc\n::\n4:memory\n" + binary)
      .File("/sys/devices/system/cpu/online", "0-99999999999\n")
      .Folder("/sys/devices/system/cpu/cpu4294967296")
      .Folder("/sys/devices/system/cpu/cpux")
      .File("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "7-3,,\n")
      .File("/sys/devices/system/cpu/cpu0/topology/core_id", binary)
      .File("/sys/devices/system/cpu/cpu0/cache/index0/level", "9000000000\n")
      .File("/sys/devices/system/node/node0/cpulist", binary)
      .Link("/sys/devices/system/node/node1", "node2")
      .Link("/sys/devices/system/node/node2", "node1")
      .File("/sys/bus/pci/devices/0000:03:00.0/class", "0x0300000000000000\n")
      .File("/sys/bus/pci/devices/0000:04:00.0/class", "0x030000\n")
      .File("/sys/bus/pci/devices/0000:04:00.0/vendor", binary)
      .File("/sys/bus/pci/devices/zzzz:zz:zz.z/class", "0x030000\n")
      .Link("/sys/bus/pci/devices/0000:05:00.0", "0000:05:00.0")
      .Link("/sys/bus/pci/devices/0000:06:00.0", "../../../../../../../../etc")
      .File("/sys/class/devfreq/thing", "not a folder\n")
      .File("/sys/class/kfd/kfd/topology/nodes/0/properties", binary);
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  // Never destroyed, because a program may still read it while it exits.
  static const auto& scenarios = *new std::vector<Scenario>{
      {"laptop-intel-igpu", "cpu+igpu", LaptopIntelIgpu},
      {"laptop-hybrid-arc", "cpu+igpu+dgpu", LaptopHybridArc},
      {"desktop-nvidia", "cpu+dgpu", DesktopNvidia},
      {"desktop-amd", "cpu+dgpu", DesktopAmd},
      {"apu-and-dgpu", "cpu+igpu+dgpu", ApuAndDgpu},
      {"two-dgpus", "cpu+dgpu", TwoDgpus},
      {"bmc-server", "cpu-only", BmcServer},
      {"cdna3-server", "cpu+dgpu", Cdna3Server},
      {"arm-mali", "cpu+igpu", ArmMali},
      {"vfio-dgpu", "cpu-only", VfioDgpu},
      {"unbound-dgpu", "cpu-only", UnboundDgpu},
      {"virtual-machine", "cpu-only", VirtualMachine},
      {"cgroup-v2", "cpu-only", CgroupV2},
      {"cgroup-v1", "cpu-only", CgroupV1},
      {"nothing", "cpu-only", Nothing},
      {"unreadable", "cpu-only", Unreadable},
      {"garbage", "cpu-only", Garbage},
  };
  return scenarios;
}

const Scenario* FindScenario(std::string_view name) {
  for (const Scenario& scenario : Scenarios()) {
    if (name == scenario.name) return &scenario;
  }
  return nullptr;
}

}  // namespace trine::detect::testing
