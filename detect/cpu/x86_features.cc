#include "detect/cpu/x86_features.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "detect/cpu/cpuinfo.h"
#include "detect/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif
#endif

namespace trine::detect {
namespace {

// The register state that the operating system must save for an instruction.
enum class State { kNone, kYmm, kZmm, kTile };

constexpr uint64_t kXcr0Ymm = 0x6;              // SSE and AVX.
constexpr uint64_t kXcr0Zmm = kXcr0Ymm | 0xe0;  // Mask registers, upper ZMM halves, ZMM16-31.
constexpr uint64_t kXcr0Tile = 0x60000;         // Tile configuration and tile data.

enum class Reg { kEax, kEbx, kEcx, kEdx };

struct FeatureBit {
  const char* name;
  const char* linux_flag;
  uint32_t leaf, subleaf;
  Reg reg;
  int bit;
  State state;
};

// Bit positions from Intel's SDM volume 2A (CPUID) and AMD's APM volume 3.
constexpr FeatureBit kX86Features[] = {
    {"sse4.2", "sse4_2", 1, 0, Reg::kEcx, 20, State::kNone},
    {"bmi2", "bmi2", 7, 0, Reg::kEbx, 8, State::kNone},
    {"avx", "avx", 1, 0, Reg::kEcx, 28, State::kYmm},
    {"fma", "fma", 1, 0, Reg::kEcx, 12, State::kYmm},
    {"f16c", "f16c", 1, 0, Reg::kEcx, 29, State::kYmm},
    {"avx2", "avx2", 7, 0, Reg::kEbx, 5, State::kYmm},
    {"avx-vnni", "avx_vnni", 7, 1, Reg::kEax, 4, State::kYmm},
    {"avx512f", "avx512f", 7, 0, Reg::kEbx, 16, State::kZmm},
    {"avx512cd", "avx512cd", 7, 0, Reg::kEbx, 28, State::kZmm},
    {"avx512bw", "avx512bw", 7, 0, Reg::kEbx, 30, State::kZmm},
    {"avx512dq", "avx512dq", 7, 0, Reg::kEbx, 17, State::kZmm},
    {"avx512vl", "avx512vl", 7, 0, Reg::kEbx, 31, State::kZmm},
    {"avx512-vnni", "avx512_vnni", 7, 0, Reg::kEcx, 11, State::kZmm},
    {"avx512-bf16", "avx512_bf16", 7, 1, Reg::kEax, 5, State::kZmm},
    {"avx512-fp16", "avx512_fp16", 7, 0, Reg::kEdx, 23, State::kZmm},
    {"amx-tile", "amx_tile", 7, 0, Reg::kEdx, 24, State::kTile},
    {"amx-int8", "amx_int8", 7, 0, Reg::kEdx, 25, State::kTile},
    {"amx-bf16", "amx_bf16", 7, 0, Reg::kEdx, 22, State::kTile},
};

uint32_t Value(const CpuidRegs& regs, Reg reg) {
  switch (reg) {
    case Reg::kEax:
      return regs.eax;
    case Reg::kEbx:
      return regs.ebx;
    case Reg::kEcx:
      return regs.ecx;
    case Reg::kEdx:
      break;
  }
  return regs.edx;
}

void AppendRegister(uint32_t value, std::string* text) {
  for (int byte = 0; byte < 4; ++byte) {
    text->push_back(static_cast<char>((value >> (8 * byte)) & 0xff));
  }
}

std::string Vendor(const CpuidRegs& leaf0) {
  std::string name;
  AppendRegister(leaf0.ebx, &name);
  AppendRegister(leaf0.edx, &name);
  AppendRegister(leaf0.ecx, &name);
  return X86VendorName(name);
}

std::string BrandString(CpuidSource* source) {
  if (source->Leaf(0x80000000u, 0).eax < 0x80000004u) return "";
  std::string brand;
  for (uint32_t leaf = 0x80000002u; leaf <= 0x80000004u; ++leaf) {
    const CpuidRegs regs = source->Leaf(leaf, 0);
    for (const uint32_t value : {regs.eax, regs.ebx, regs.ecx, regs.edx}) {
      AppendRegister(value, &brand);
    }
  }
  return CleanText(brand.substr(0, std::min(brand.find('\0'), brand.size())));
}

// The CPUID leaves that hold feature bits, each read once.
struct Leaves {
  CpuidRegs leaf1, leaf7_0, leaf7_1;

  const CpuidRegs& Of(const FeatureBit& feature) const {
    if (feature.leaf == 1) return leaf1;
    return feature.subleaf == 0 ? leaf7_0 : leaf7_1;
  }
};

bool Advertised(const Leaves& leaves, const FeatureBit& feature) {
  return (Value(leaves.Of(feature), feature.reg) >> feature.bit & 1u) != 0;
}

// The reasons why states can't be used; "" for a state that can.
struct StateReasons {
  std::string ymm, zmm, tile;

  std::string Of(State state) const {
    switch (state) {
      case State::kYmm:
        return ymm;
      case State::kZmm:
        return zmm;
      case State::kTile:
        return tile;
      case State::kNone:
        break;
    }
    return "";
  }
};

StateReasons AskForState(CpuidSource* source, const Leaves& leaves) {
  StateReasons reasons;
  if ((leaves.leaf1.ecx >> 27 & 1u) == 0) {
    reasons.ymm = reasons.zmm = reasons.tile = "OS does not use XSAVE (CPUID OSXSAVE is clear)";
    return reasons;
  }
  const uint64_t xcr0 = source->Xcr0();
  if ((xcr0 & kXcr0Ymm) != kXcr0Ymm) reasons.ymm = "OS does not save YMM state (XCR0)";
  if ((xcr0 & kXcr0Zmm) != kXcr0Zmm) reasons.zmm = "OS does not save ZMM state (XCR0)";
  if ((xcr0 & kXcr0Tile) != kXcr0Tile) {
    reasons.tile = "OS does not save tile state (XCR0)";
    return reasons;
  }
  const bool has_amx =
      std::any_of(std::begin(kX86Features), std::end(kX86Features), [&](const FeatureBit& feature) {
        return feature.state == State::kTile && Advertised(leaves, feature);
      });
  // Requests tiles only where the processor has them, because the grant outlives this call.
  if (!has_amx) return reasons;
  if (const int error = source->RequestAmx(); error != 0) {
    reasons.tile =
        std::string("OS refused tile data to this process (arch_prctl): ") + std::strerror(error);
  }
  return reasons;
}

#if defined(__x86_64__)
class HostCpuidSource : public CpuidSource {
 public:
  CpuidRegs Leaf(uint32_t leaf, uint32_t subleaf) override {
    CpuidRegs regs;
    __cpuid_count(leaf, subleaf, regs.eax, regs.ebx, regs.ecx, regs.edx);
    return regs;
  }

  uint64_t Xcr0() override {
    uint32_t low = 0, high = 0;
    // The intrinsic would need the whole file built with -mxsave.
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<uint64_t>(high) << 32) | low;
  }

  int RequestAmx() override {
#if defined(__linux__)
    // From <asm/prctl.h>, which on some build machines is too old to have them.
    constexpr long kArchReqXcompPerm = 0x1023;
    constexpr long kXfeatureXtileData = 18;
    return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtileData) == 0 ? 0 : errno;
#else
    // Other systems that set the tile bits in XCR0 require no request.
    return 0;
#endif
  }
};
#endif

}  // namespace

std::unique_ptr<CpuidSource> HostCpuid() {
#if defined(__x86_64__)
  return std::make_unique<HostCpuidSource>();
#else
  return nullptr;
#endif
}

X86Cpu DecodeX86(CpuidSource* source) {
  X86Cpu cpu;
  const CpuidRegs leaf0 = source->Leaf(0, 0);
  cpu.vendor = Vendor(leaf0);
  cpu.model = BrandString(source);
  Leaves leaves;
  if (leaf0.eax >= 1) leaves.leaf1 = source->Leaf(1, 0);
  if (leaf0.eax >= 7) {
    leaves.leaf7_0 = source->Leaf(7, 0);
    if (leaves.leaf7_0.eax >= 1) leaves.leaf7_1 = source->Leaf(7, 1);
  }
  const StateReasons reasons = AskForState(source, leaves);
  for (const FeatureBit& bit : kX86Features) {
    SimdFeature feature;
    feature.name = bit.name;
    feature.advertised = Advertised(leaves, bit);
    if (feature.advertised) feature.reason = reasons.Of(bit.state);
    feature.usable = feature.advertised && feature.reason.empty();
    cpu.features.push_back(std::move(feature));
  }
  cpu.simd_level = X86SimdLevel(cpu.features);
  return cpu;
}

std::vector<SimdFeature> X86FeaturesFromFlags(const std::vector<std::string>& sorted_flags) {
  std::vector<SimdFeature> features;
  for (const FeatureBit& bit : kX86Features) {
    SimdFeature feature;
    feature.name = bit.name;
    feature.advertised =
        std::binary_search(sorted_flags.begin(), sorted_flags.end(), bit.linux_flag);
    feature.usable = feature.advertised && bit.state != State::kTile;
    if (feature.advertised && !feature.usable) {
      feature.reason = "not this machine: permission not tried";
    }
    features.push_back(std::move(feature));
  }
  return features;
}

std::string X86SimdLevel(const std::vector<SimdFeature>& features) {
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const char* name) { return Usable(features, name); });
  };
  if (!all({"avx", "avx2", "fma", "f16c", "bmi2"})) return "baseline";
  if (!all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})) return "avx2";
  if (!all({"avx512-vnni"})) return "avx512";
  if (!all({"amx-tile", "amx-int8"})) return "avx512-vnni";
  return "amx";
}

}  // namespace trine::detect
