// The ids are from the public PCI id registry and the Linux drivers' own lists. A range is the
// block that a vendor gave to one chip, where the block holds nothing else; other ids stand alone.

#include "detect/gpu/gpu_ids.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace trine::detect {
namespace {

constexpr GpuKind kIgpu = GpuKind::kIntegrated;
constexpr GpuKind kDgpu = GpuKind::kDiscrete;

constexpr GpuIdRange kIntel[] = {
    {0x0102, 0x0126, kIgpu, "Gen6 (Sandy Bridge)", "", true},
    {0x0152, 0x016a, kIgpu, "Gen7 (Ivy Bridge)", "", true},
    {0x0402, 0x042e, kIgpu, "Gen7.5 (Haswell)", "", true},
    {0x0a02, 0x0a2e, kIgpu, "Gen7.5 (Haswell)", "", true},
    {0x0a84, 0x0a84, kIgpu, "Gen9 (Apollo Lake)", "HD Graphics", false},
    {0x0b69, 0x0b69, kDgpu, "Xe-HPC (Ponte Vecchio)", "Data Center GPU Max", false},
    {0x0b6e, 0x0b6e, kDgpu, "Xe-HPC (Ponte Vecchio)", "Data Center GPU Max", false},
    {0x0bd0, 0x0bdb, kDgpu, "Xe-HPC (Ponte Vecchio)", "Data Center GPU Max", false},
    {0x0c02, 0x0c2e, kIgpu, "Gen7.5 (Haswell)", "", true},
    {0x0d02, 0x0d2e, kIgpu, "Gen7.5 (Haswell)", "", true},
    {0x0f30, 0x0f33, kIgpu, "Gen7 (Bay Trail)", "", true},
    {0x1602, 0x163e, kIgpu, "Gen8 (Broadwell)", "HD Graphics", false},
    {0x1902, 0x193d, kIgpu, "Gen9 (Skylake)", "HD Graphics", false},
    {0x1a84, 0x1a85, kIgpu, "Gen9 (Apollo Lake)", "HD Graphics", false},
    {0x22b0, 0x22b3, kIgpu, "Gen8 (Cherry Trail)", "HD Graphics", false},
    {0x3184, 0x3185, kIgpu, "Gen9 (Gemini Lake)", "UHD Graphics 600", false},
    {0x3e90, 0x3e9c, kIgpu, "Gen9 (Coffee Lake)", "UHD Graphics", false},
    {0x3ea0, 0x3ea4, kIgpu, "Gen9 (Whiskey Lake)", "UHD Graphics", false},
    {0x3ea5, 0x3ea9, kIgpu, "Gen9 (Coffee Lake)", "Iris Plus Graphics", false},
    {0x4541, 0x4571, kIgpu, "Gen11 (Elkhart Lake)", "UHD Graphics", false},
    {0x4626, 0x462a, kIgpu, "Xe-LP (Alder Lake)", "UHD Graphics", false},
    {0x4636, 0x463a, kIgpu, "Xe-LP (Alder Lake)", "UHD Graphics", false},
    {0x4680, 0x4693, kIgpu, "Xe-LP (Alder Lake)", "UHD Graphics 700", false},
    {0x46a0, 0x46c3, kIgpu, "Xe-LP (Alder Lake)", "Iris Xe Graphics", false},
    {0x46d0, 0x46d4, kIgpu, "Xe-LP (Alder Lake-N)", "UHD Graphics", false},
    {0x4905, 0x4909, kDgpu, "Xe-LP (DG1)", "Iris Xe MAX", false},
    {0x4c80, 0x4c9a, kIgpu, "Xe-LP (Rocket Lake)", "UHD Graphics 700", false},
    {0x4e51, 0x4e71, kIgpu, "Gen11 (Jasper Lake)", "UHD Graphics", false},
    {0x4f80, 0x4f88, kDgpu, "Arc Alchemist (DG2)", "Arc A-series", false},
    {0x5690, 0x5698, kDgpu, "Arc Alchemist (DG2)", "Arc A-series mobile", false},
    {0x56a0, 0x56a9, kDgpu, "Arc Alchemist (DG2)", "Arc A-series", false},
    {0x56b0, 0x56b3, kDgpu, "Arc Alchemist (DG2)", "Arc Pro A-series", false},
    {0x56ba, 0x56bf, kDgpu, "Arc Alchemist (DG2)", "Arc A-series embedded", false},
    {0x56c0, 0x56c2, kDgpu, "Arc Alchemist (ATS-M)", "Data Center GPU Flex", false},
    {0x5902, 0x593b, kIgpu, "Gen9 (Kaby Lake)", "HD Graphics", false},
    {0x5a84, 0x5a85, kIgpu, "Gen9 (Apollo Lake)", "HD Graphics 500", false},
    {0x6420, 0x6420, kIgpu, "Xe2 (Lunar Lake)", "Intel Graphics", false},
    {0x64a0, 0x64a0, kIgpu, "Xe2 (Lunar Lake)", "Arc 130V/140V", false},
    {0x64b0, 0x64b0, kIgpu, "Xe2 (Lunar Lake)", "Intel Graphics", false},
    {0x7d40, 0x7d40, kIgpu, "Xe-LPG (Meteor Lake)", "Intel Graphics", false},
    {0x7d41, 0x7d41, kIgpu, "Xe-LPG (Arrow Lake-U)", "Intel Graphics", false},
    {0x7d45, 0x7d45, kIgpu, "Xe-LPG (Meteor Lake)", "Intel Graphics", false},
    {0x7d51, 0x7d51, kIgpu, "Xe-LPG+ (Arrow Lake-H)", "Arc 130T/140T", false},
    {0x7d55, 0x7d55, kIgpu, "Xe-LPG (Meteor Lake)", "Arc Graphics", false},
    {0x7d60, 0x7d60, kIgpu, "Xe-LPG (Meteor Lake)", "Intel Graphics", false},
    {0x7d67, 0x7d67, kIgpu, "Xe-LPG (Arrow Lake-S)", "Intel Graphics", false},
    {0x7dd1, 0x7dd1, kIgpu, "Xe-LPG+ (Arrow Lake-H)", "Intel Graphics", false},
    {0x7dd5, 0x7dd5, kIgpu, "Xe-LPG (Meteor Lake)", "Intel Graphics", false},
    {0x87c0, 0x87c0, kIgpu, "Gen9 (Amber Lake)", "UHD Graphics 617", false},
    {0x87ca, 0x87ca, kIgpu, "Gen9 (Amber Lake)", "UHD Graphics 617", false},
    {0x8a50, 0x8a71, kIgpu, "Gen11 (Ice Lake)", "Iris Plus Graphics", false},
    {0x9840, 0x9841, kIgpu, "Gen11 (Lakefield)", "UHD Graphics", false},
    {0x9a40, 0x9af8, kIgpu, "Xe-LP (Tiger Lake)", "Iris Xe Graphics", false},
    {0x9b21, 0x9b21, kIgpu, "Gen9 (Comet Lake)", "UHD Graphics", false},
    {0x9b41, 0x9b41, kIgpu, "Gen9 (Comet Lake)", "UHD Graphics", false},
    {0x9ba2, 0x9bf6, kIgpu, "Gen9 (Comet Lake)", "UHD Graphics", false},
    {0xa720, 0xa721, kIgpu, "Xe-LP (Raptor Lake)", "UHD Graphics", false},
    {0xa780, 0xa78b, kIgpu, "Xe-LP (Raptor Lake)", "UHD Graphics 770", false},
    {0xa7a0, 0xa7ad, kIgpu, "Xe-LP (Raptor Lake)", "Iris Xe Graphics", false},
    {0xb080, 0xb0b0, kIgpu, "Xe3 (Panther Lake)", "Intel Graphics", false},
    {0xb640, 0xb640, kIgpu, "Xe-LPG (Arrow Lake-S)", "Intel Graphics", false},
    {0xe202, 0xe216, kDgpu, "Arc Battlemage (BMG-G21)", "Arc B-series", false},
    {0xe220, 0xe223, kDgpu, "Arc Battlemage (BMG-G31)", "Arc B-series", false},
    {0xfd80, 0xfd81, kIgpu, "Xe3 (Wildcat Lake)", "Intel Graphics", false},
};

constexpr GpuIdRange kAmd[] = {
    {0x1114, 0x1114, kIgpu, "RDNA3.5", "Krackan", false},
    {0x1304, 0x131d, kIgpu, "GCN (Kaveri)", "", false},
    {0x13c0, 0x13c0, kIgpu, "RDNA2", "Granite Ridge", false},
    {0x1435, 0x1435, kIgpu, "RDNA2", "Van Gogh", false},
    {0x1506, 0x1506, kIgpu, "RDNA2", "Mendocino", false},
    {0x150e, 0x150e, kIgpu, "RDNA3.5", "Strix Point", false},
    {0x1586, 0x1586, kIgpu, "RDNA3.5", "Strix Halo", false},
    {0x15bf, 0x15bf, kIgpu, "RDNA3", "Phoenix", false},
    {0x15c8, 0x15c8, kIgpu, "RDNA3", "Phoenix 2", false},
    {0x15d8, 0x15d8, kIgpu, "Vega", "Picasso", false},
    {0x15dd, 0x15dd, kIgpu, "Vega", "Raven Ridge", false},
    {0x15e7, 0x15e7, kIgpu, "Vega", "Barcelo", false},
    {0x1636, 0x1636, kIgpu, "Vega", "Renoir", false},
    {0x1638, 0x1638, kIgpu, "Vega", "Cezanne", false},
    {0x163f, 0x163f, kIgpu, "RDNA2", "Van Gogh", false},
    {0x164c, 0x164c, kIgpu, "Vega", "Lucienne", false},
    {0x164d, 0x164d, kIgpu, "RDNA2", "Rembrandt", false},
    {0x164e, 0x164e, kIgpu, "RDNA2", "Raphael", false},
    {0x164f, 0x164f, kIgpu, "RDNA3", "Phoenix", false},
    {0x1681, 0x1681, kIgpu, "RDNA2", "Rembrandt", false},
    {0x1900, 0x1901, kIgpu, "RDNA3", "Hawk Point", false},
    {0x1902, 0x1902, kIgpu, "RDNA3.5", "Krackan 2", false},
    {0x66a0, 0x66af, kDgpu, "Vega", "Vega 20", false},
    {0x67c0, 0x67df, kDgpu, "GCN (Polaris)", "Polaris 10", false},
    {0x67e0, 0x67ff, kDgpu, "GCN (Polaris)", "Polaris 11", false},
    {0x6860, 0x687f, kDgpu, "Vega", "Vega 10", false},
    {0x694c, 0x694f, kDgpu, "GCN (Polaris)", "Polaris 22", false},
    {0x6980, 0x699f, kDgpu, "GCN (Polaris)", "Polaris 12", false},
    {0x69a0, 0x69af, kDgpu, "Vega", "Vega 12", false},
    {0x6fdf, 0x6fdf, kDgpu, "GCN (Polaris)", "Polaris 20", false},
    {0x7310, 0x7312, kDgpu, "RDNA1", "Navi 10", false},
    {0x7318, 0x731f, kDgpu, "RDNA1", "Navi 10", false},
    {0x7340, 0x734f, kDgpu, "RDNA1", "Navi 14", false},
    {0x7360, 0x7362, kDgpu, "RDNA1", "Navi 12", false},
    {0x7388, 0x738e, kDgpu, "CDNA1", "Instinct MI100", false},
    {0x73a0, 0x73bf, kDgpu, "RDNA2", "Navi 21", false},
    {0x73c0, 0x73df, kDgpu, "RDNA2", "Navi 22", false},
    {0x73e0, 0x73ef, kDgpu, "RDNA2", "Navi 23", false},
    {0x73f0, 0x73f0, kDgpu, "RDNA3", "Navi 33", false},
    {0x73ff, 0x73ff, kDgpu, "RDNA2", "Navi 23", false},
    {0x7408, 0x740c, kDgpu, "CDNA2", "Instinct MI250", false},
    {0x740f, 0x740f, kDgpu, "CDNA2", "Instinct MI210", false},
    {0x7420, 0x743f, kDgpu, "RDNA2", "Navi 24", false},
    {0x7448, 0x745e, kDgpu, "RDNA3", "Navi 31", false},
    {0x7460, 0x7461, kDgpu, "RDNA3", "Navi 32", false},
    {0x7470, 0x747e, kDgpu, "RDNA3", "Navi 32", false},
    {0x7480, 0x749f, kDgpu, "RDNA3", "Navi 33", false},
    // CPU cores and compute units of the MI300A share one pool of HBM, as in any APU.
    {0x74a0, 0x74a0, kIgpu, "CDNA3", "Instinct MI300A", false},
    {0x74a1, 0x74a1, kDgpu, "CDNA3", "Instinct MI300X", false},
    {0x74a2, 0x74a2, kDgpu, "CDNA3", "Instinct MI308X", false},
    {0x74a5, 0x74a5, kDgpu, "CDNA3", "Instinct MI325X", false},
    {0x74a9, 0x74a9, kDgpu, "CDNA3", "Instinct MI300X HF", false},
    {0x74b5, 0x74b5, kDgpu, "CDNA3", "Instinct MI300X VF", false},
    {0x74b9, 0x74b9, kDgpu, "CDNA3", "Instinct MI325X VF", false},
    {0x74bd, 0x74bd, kDgpu, "CDNA3", "Instinct MI300X HF", false},
    {0x7550, 0x7551, kDgpu, "RDNA4", "Navi 48", false},
    {0x7590, 0x7590, kDgpu, "RDNA4", "Navi 44", false},
    {0x75a0, 0x75a8, kDgpu, "CDNA4", "Instinct MI350", false},
    {0x9830, 0x983d, kIgpu, "GCN (Kabini)", "", false},
    {0x9850, 0x985f, kIgpu, "GCN (Mullins)", "", false},
    {0x9874, 0x9874, kIgpu, "GCN (Carrizo)", "", false},
    {0x98e4, 0x98e4, kIgpu, "GCN (Stoney)", "", false},
};

// NVIDIA gives each chip a block. The blocks are not in the order of the generations: Hopper sits
// between two Ampere blocks. Audio, USB and bridge functions in them have other PCI classes.
constexpr GpuIdRange kNvidia[] = {
    {0x1340, 0x17ff, kDgpu, "Maxwell", "", false},
    {0x1b00, 0x1d7f, kDgpu, "Pascal", "", false},
    {0x1d80, 0x1dff, kDgpu, "Volta", "GV100", false},
    {0x1e00, 0x1e7f, kDgpu, "Turing", "TU102", false},
    {0x1e80, 0x1eff, kDgpu, "Turing", "TU104", false},
    {0x1f00, 0x1f7f, kDgpu, "Turing", "TU106", false},
    {0x1f80, 0x1fff, kDgpu, "Turing", "TU117", false},
    {0x2080, 0x20ff, kDgpu, "Ampere", "GA100", false},
    {0x2180, 0x21ff, kDgpu, "Turing", "TU116", false},
    {0x2200, 0x223f, kDgpu, "Ampere", "GA102", false},
    {0x2300, 0x23ff, kDgpu, "Hopper", "GH100", false},
    {0x2400, 0x247f, kDgpu, "Ampere", "GA103", false},
    {0x2480, 0x24ff, kDgpu, "Ampere", "GA104", false},
    {0x2500, 0x257f, kDgpu, "Ampere", "GA106", false},
    {0x2580, 0x25ff, kDgpu, "Ampere", "GA107", false},
    {0x2680, 0x26ff, kDgpu, "Ada", "AD102", false},
    {0x2700, 0x277f, kDgpu, "Ada", "AD103", false},
    {0x2780, 0x27ff, kDgpu, "Ada", "AD104", false},
    {0x2800, 0x287f, kDgpu, "Ada", "AD106", false},
    {0x2880, 0x28ff, kDgpu, "Ada", "AD107", false},
    {0x2900, 0x297f, kDgpu, "Blackwell", "GB100", false},
    {0x2980, 0x29ff, kDgpu, "Blackwell", "GB102", false},
    {0x2b00, 0x2b00, kIgpu, "Blackwell", "Jetson Thor", false},
    {0x2b80, 0x2bff, kDgpu, "Blackwell", "GB202", false},
    {0x2c00, 0x2c7f, kDgpu, "Blackwell", "GB203", false},
    {0x2d00, 0x2d7f, kDgpu, "Blackwell", "GB206", false},
    {0x2d80, 0x2dff, kDgpu, "Blackwell", "GB207", false},
    {0x2e00, 0x2e7f, kIgpu, "Blackwell", "GB10", false},
    {0x2f00, 0x2f80, kDgpu, "Blackwell", "GB205", false},
    {0x3180, 0x323f, kDgpu, "Blackwell", "GB110", false},
};

struct VendorName {
  uint32_t id;
  const char* name;
  bool display_only;
};

constexpr VendorName kVendors[] = {
    {0x0014, "Loongson", false},
    {kVendorAmd, "AMD", false},
    {0x1010, "Imagination", false},
    {0x1013, "Cirrus Logic", true},
    {0x102b, "Matrox", true},
    {kVendorNvidia, "NVIDIA", false},
    {0x1234, "Bochs/QEMU", true},
    {0x126f, "Silicon Motion", true},
    {0x1414, "Microsoft Hyper-V", true},
    {0x15ad, "VMware", true},
    {0x17cb, "Qualcomm", false},
    {0x18ca, "XGI", true},
    {0x19e5, "Huawei", true},  // Hi1710 management chip.
    {0x1a03, "ASPEED", true},
    {0x1af4, "Red Hat virtio", true},
    {0x1b36, "Red Hat QXL", true},
    {0x1d17, "Zhaoxin", false},
    {0x1ed5, "Moore Threads", false},
    {0x5333, "S3", true},
    {0x6766, "Glenfly", false},
    {0x80ee, "VirtualBox", true},
    {kVendorIntel, "Intel", false},
};

const VendorName* FindVendor(uint32_t vendor_id) {
  const auto* found = std::ranges::find(kVendors, vendor_id, &VendorName::id);
  return found == std::end(kVendors) ? nullptr : found;
}

}  // namespace

std::span<const GpuIdRange> GpuIdTable(uint32_t vendor_id) {
  if (vendor_id == kVendorIntel) return kIntel;
  if (vendor_id == kVendorAmd) return kAmd;
  if (vendor_id == kVendorNvidia) return kNvidia;
  return {};
}

const GpuIdRange* FindGpuId(uint32_t vendor_id, uint32_t device_id) {
  const std::span<const GpuIdRange> table = GpuIdTable(vendor_id);
  const auto found = std::ranges::lower_bound(table, device_id, {}, &GpuIdRange::last);
  return found != table.end() && found->first <= device_id ? &*found : nullptr;
}

std::string GpuVendorName(uint32_t vendor_id) {
  if (const VendorName* vendor = FindVendor(vendor_id)) return vendor->name;
  char text[32];
  std::snprintf(text, sizeof(text), "vendor 0x%04x", vendor_id);
  return text;
}

bool IsDisplayOnlyVendor(uint32_t vendor_id) {
  const VendorName* vendor = FindVendor(vendor_id);
  return vendor != nullptr && vendor->display_only;
}

}  // namespace trine::detect
