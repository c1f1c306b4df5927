#include "detect/cpu/x86_features.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

namespace trine::detect {
namespace {

constexpr uint64_t kXcr0Avx = 0x7;
constexpr uint64_t kXcr0Avx512 = 0xe7;
constexpr uint64_t kXcr0Amx = 0x600e7;

// Answers from a table; records what it was asked.
class Table : public CpuidSource {
 public:
  CpuidRegs Leaf(uint32_t leaf, uint32_t subleaf) override { return leaves[{leaf, subleaf}]; }
  uint64_t Xcr0() override {
    ++xcr0_reads;
    return xcr0;
  }
  int RequestAmx() override {
    ++amx_requests;
    return amx_error;
  }

  void SetVendor(const char* vendor, uint32_t max_leaf) {
    CpuidRegs& regs = leaves[{0, 0}];
    regs.eax = max_leaf;
    std::memcpy(&regs.ebx, vendor, 4);
    std::memcpy(&regs.edx, vendor + 4, 4);
    std::memcpy(&regs.ecx, vendor + 8, 4);
  }
  void SetBrand(const char* brand) {
    char padded[48] = {};
    std::strncpy(padded, brand, sizeof(padded) - 1);
    leaves[{0x80000000u, 0}].eax = 0x80000008u;
    for (uint32_t i = 0; i < 3; ++i) {
      std::memcpy(&leaves[{0x80000002u + i, 0}], padded + 16 * i, 16);
    }
  }

  std::map<std::pair<uint32_t, uint32_t>, CpuidRegs> leaves;
  uint64_t xcr0 = 0;
  int amx_error = 0;
  int xcr0_reads = 0;
  int amx_requests = 0;
};

// Leaves 1 and 7 as a Xeon Platinum 8480+ shows them (feature registers only).
Table SapphireRapids() {
  Table table;
  table.SetVendor("GenuineIntel", 0x20);
  table.SetBrand("Intel(R) Xeon(R) Platinum 8480+");
  table.leaves[{1, 0}] = {0x000806f8, 0, 0x7ffefbff, 0xbfebfbff};
  table.leaves[{7, 0}] = {2, 0xf3bfbfbf, 0xfb417ffe, 0xffdd4432};
  table.leaves[{7, 1}] = {0x00001c30, 0, 0, 0};
  table.xcr0 = kXcr0Amx;
  return table;
}

// A Ryzen 5000.
Table Zen3() {
  Table table;
  table.SetVendor("AuthenticAMD", 0x10);
  table.SetBrand("AMD Ryzen 9 5950X 16-Core Processor");
  table.leaves[{1, 0}] = {0x00a20f10, 0, 0x7ef8320b, 0x178bfbff};
  table.leaves[{7, 0}] = {0, 0x219c97a9, 0x0040068c, 0x00000010};
  // Must not be read: leaf 7 says that it has no subleaf 1.
  table.leaves[{7, 1}] = {0xffffffff, 0, 0, 0};
  table.xcr0 = kXcr0Avx;
  return table;
}

Table Zen4() {
  Table table = Zen3();
  table.leaves[{7, 0}] = {1, 0xf1bf97a9, 0x00405fce, 0x10000010};
  table.leaves[{7, 1}] = {0x00000020, 0, 0, 0};
  table.xcr0 = kXcr0Avx512 | 0x200;
  return table;
}

const SimdFeature& Find(const X86Cpu& cpu, const std::string& name) {
  for (const SimdFeature& feature : cpu.features) {
    if (feature.name == name) return feature;
  }
  static const SimdFeature none;
  ADD_FAILURE() << "no feature " << name;
  return none;
}

TEST(X86Features, SapphireRapidsHasEverything) {
  Table table = SapphireRapids();
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.vendor, "Intel");
  EXPECT_EQ(cpu.model, "Intel(R) Xeon(R) Platinum 8480+");
  EXPECT_EQ(cpu.simd_level, "amx");
  for (const SimdFeature& feature : cpu.features) {
    EXPECT_TRUE(feature.advertised && feature.usable) << feature.name;
    EXPECT_EQ(feature.reason, "");
  }
  EXPECT_EQ(table.amx_requests, 1);
}

TEST(X86Features, ZmmStateNotSaved) {
  Table table = SapphireRapids();
  table.xcr0 = kXcr0Avx;
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.simd_level, "avx2");
  const SimdFeature& avx512 = Find(cpu, "avx512f");
  EXPECT_TRUE(avx512.advertised);
  EXPECT_FALSE(avx512.usable);
  EXPECT_EQ(avx512.reason, "OS does not save ZMM state (XCR0)");
  EXPECT_EQ(Find(cpu, "amx-int8").reason, "OS does not save tile state (XCR0)");
  EXPECT_EQ(table.amx_requests, 0) << "permission for state that is not saved is pointless";
}

TEST(X86Features, AmxRefused) {
  Table table = SapphireRapids();
  table.amx_error = EPERM;
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.simd_level, "avx512-vnni");
  EXPECT_TRUE(Find(cpu, "amx-tile").advertised);
  EXPECT_FALSE(Find(cpu, "amx-tile").usable);
  EXPECT_NE(Find(cpu, "amx-tile").reason.find("arch_prctl"), std::string::npos);
  EXPECT_TRUE(Find(cpu, "avx512-fp16").usable);
}

TEST(X86Features, TilesWithoutAllOfZmmStayOutOfTheLevel) {
  Table table = SapphireRapids();
  table.xcr0 = 0x60007;
  EXPECT_EQ(DecodeX86(&table).simd_level, "avx2");
}

TEST(X86Features, Zen3IsAvx2) {
  Table table = Zen3();
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.vendor, "AMD");
  EXPECT_EQ(cpu.simd_level, "avx2");
  EXPECT_FALSE(Find(cpu, "avx512f").advertised);
  EXPECT_FALSE(Find(cpu, "avx-vnni").advertised);
  EXPECT_EQ(table.amx_requests, 0);
}

TEST(X86Features, Zen4IsAvx512VnniWithoutAmx) {
  Table table = Zen4();
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.simd_level, "avx512-vnni");
  EXPECT_TRUE(Find(cpu, "avx512-bf16").usable);
  EXPECT_FALSE(Find(cpu, "amx-tile").advertised);
  EXPECT_EQ(table.amx_requests, 0);
}

TEST(X86Features, OldProcessorIsNotAskedForXcr0) {
  Table table;
  table.SetVendor("AuthenticAMD", 1);
  table.leaves[{1, 0}] = {0x00000f4a, 0, 0, 0x078bfbff};
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.simd_level, "baseline");
  EXPECT_EQ(cpu.model, "");
  EXPECT_EQ(table.xcr0_reads, 0) << "xgetbv faults without OSXSAVE";
}

TEST(X86Features, AvxWithoutOsxsaveIsUnusable) {
  Table table = Zen3();
  table.leaves[{1, 0}].ecx &= ~(1u << 27);
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.simd_level, "baseline");
  EXPECT_TRUE(Find(cpu, "avx2").advertised);
  EXPECT_FALSE(Find(cpu, "avx2").usable);
  EXPECT_TRUE(Find(cpu, "bmi2").usable) << "needs no vector state";
  EXPECT_EQ(table.xcr0_reads, 0);
}

TEST(X86Features, GarbageWithMaxLeafZero) {
  Table table;
  table.leaves[{0, 0}] = {0, 0xffffffff, 0x01020304, 0};
  table.leaves[{1, 0}] = {~0u, ~0u, ~0u, ~0u};
  table.leaves[{7, 0}] = {~0u, ~0u, ~0u, ~0u};
  const X86Cpu cpu = DecodeX86(&table);
  EXPECT_EQ(cpu.simd_level, "baseline");
  for (const SimdFeature& feature : cpu.features) EXPECT_FALSE(feature.advertised);
  for (const char c : cpu.vendor) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(X86Features, LevelNeedsEveryMember) {
  for (const uint32_t bit : {16u, 17u, 28u, 30u, 31u}) {
    Table table = Zen4();
    table.leaves[{7, 0}].ebx &= ~(1u << bit);
    EXPECT_EQ(DecodeX86(&table).simd_level, "avx2") << bit;
  }
  Table no_f16c = Zen4();
  no_f16c.leaves[{1, 0}].ecx &= ~(1u << 29);
  EXPECT_EQ(DecodeX86(&no_f16c).simd_level, "baseline");
}

TEST(X86Features, FlagsOfAnotherMachine) {
  const auto features = X86FeaturesFromFlags({"amx_int8", "amx_tile", "avx2"});
  for (const SimdFeature& feature : features) {
    if (feature.name == "amx-tile") {
      EXPECT_TRUE(feature.advertised);
      EXPECT_FALSE(feature.usable);
      EXPECT_EQ(feature.reason, "not this machine: permission not tried");
    }
  }
  EXPECT_TRUE(Usable(features, "avx2"));
  EXPECT_FALSE(Usable(features, "fma"));
}

TEST(X86Cpuid, HostAnswersOnX86Only) {
  const auto host = HostCpuid();
#if defined(__x86_64__)
  ASSERT_NE(host, nullptr);
  const X86Cpu cpu = DecodeX86(host.get());
  EXPECT_FALSE(cpu.vendor.empty());
  // The compiler's own view of the running machine must not contradict this result.
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_TRUE(Usable(cpu.features, "avx2"));
  }
  if (!__builtin_cpu_supports("avx512f")) {
    EXPECT_FALSE(Usable(cpu.features, "avx512f"));
  }
#else
  EXPECT_EQ(host, nullptr);
#endif
}

}  // namespace
}  // namespace trine::detect
