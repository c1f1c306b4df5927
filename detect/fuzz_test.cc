// Damages one file of a valid machine at a time, with a fixed seed, and checks that detection still
// returns something that a report can print.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "detect/machine.h"
#include "detect/testing/fake_root.h"
#include "detect/testing/scenarios.h"

namespace trine::detect {
namespace {

namespace fs = std::filesystem;
using testing::FakeRoot;
using testing::FindScenario;

bool Printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

void CheckReportable(const Machine& machine) {
  const std::string tier = ComputeTierName(machine.tier);
  EXPECT_TRUE(tier == "cpu-only" || tier == "cpu+igpu" || tier == "cpu+dgpu" ||
              tier == "cpu+igpu+dgpu");
  for (const std::string* text : {&machine.cpu.arch, &machine.cpu.vendor, &machine.cpu.model,
                                  &machine.cpu.simd_level, &machine.memory.limit_source}) {
    EXPECT_TRUE(Printable(*text));
  }
  for (const std::string& note : machine.notes) EXPECT_TRUE(Printable(note));
  for (const GpuInfo& gpu : machine.gpus) {
    EXPECT_TRUE(Printable(gpu.name + gpu.driver + gpu.device_path + gpu.family + gpu.vendor +
                          gpu.render_node + gpu.gfx_target + gpu.pci_address));
  }
  if (machine.memory.physical_bytes > 0) {
    EXPECT_LE(machine.memory.total_bytes, machine.memory.physical_bytes);
    EXPECT_LE(machine.memory.available_bytes, machine.memory.physical_bytes);
  }
  EXPECT_GE(machine.cpu.topology.threads, machine.cpu.topology.cores);
}

std::string Mutate(std::string text, std::mt19937* random) {
  const auto pick = [&](size_t below) { return below == 0 ? 0 : (*random)() % below; };
  switch (pick(6)) {
    case 0:  // Any byte.
      if (!text.empty()) text[pick(text.size())] = static_cast<char>(pick(256));
      break;
    case 1:  // Cut short.
      text.resize(pick(text.size() + 1));
      break;
    case 2:  // A digit changed: still well formed, mostly.
      for (size_t tries = 0; tries < 20 && !text.empty(); ++tries) {
        char& c = text[pick(text.size())];
        if (c < '0' || c > '9') continue;
        c = static_cast<char>('0' + pick(10));
        break;
      }
      break;
    case 3:  // A number that fits in no type.
      text.insert(pick(text.size() + 1), "99999999999999999999");
      break;
    case 4:  // A separator, a sign or a NUL in the middle.
      text.insert(pick(text.size() + 1), 1, "-,:\n \0x"[pick(7)]);
      break;
    default:  // Random bytes instead of the file.
      text.assign(pick(64), '\0');
      for (char& c : text) c = static_cast<char>(pick(256));
  }
  return text;
}

TEST(Fuzz, DamagedFilesAreSurvived) {
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 2000 : 500;
  std::mt19937 random(20240607);
  for (const char* name : {"apu-and-dgpu", "arm-mali", "cgroup-v1", "cgroup-v2"}) {
    FakeRoot fake;
    FindScenario(name)->build(&fake);
    // A machine with one core tests as much as one with four, and is read in a quarter of the time.
    for (const char* cpu : {"1", "2", "3", "5", "6", "7"}) {
      fake.Remove(std::string("/sys/devices/system/cpu/cpu") + cpu);
    }
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(fake.path())) {
      if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    ASSERT_FALSE(files.empty());
    for (int round = 0; round < rounds; ++round) {
      const std::string inside = files[random() % files.size()].substr(fake.path().size());
      std::ifstream file(fake.path() + inside, std::ios::binary);
      const std::string original((std::istreambuf_iterator<char>(file)), {});
      fake.File(inside, Mutate(original, &random));
      CheckReportable(DetectMachine({fake.path()}));
      if (HasFailure()) FAIL() << name << " round " << round << ": " << inside;
      fake.File(inside, original);
    }
  }
}

}  // namespace
}  // namespace trine::detect
