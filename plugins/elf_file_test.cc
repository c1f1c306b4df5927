#include "plugins/elf_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ElfFileTest : public ::testing::Test {
 protected:
  // Writes a file of these bytes and returns its path.
  std::string Make(const std::string& bytes) {
    const std::string path = ::testing::TempDir() + "elf_file_test." + std::to_string(getpid());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }
  std::string Refusal(const std::string& path) {
    const auto facts = InspectElf(path);
    return facts.ok() ? "" : std::string(facts.status().message());
  }
};

TEST_F(ElfFileTest, ReadsAPlugin) {
  const auto facts = InspectElf(TRINE_CPU_PLUGIN);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->exports_query);
  EXPECT_THAT(facts->needed, Contains(HasSubstr("libc.so")));
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_TRUE(facts->wants_asan);
#elif defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(facts->wants_tsan);
#else
  EXPECT_FALSE(facts->wants_asan);
  EXPECT_FALSE(facts->wants_tsan);
#endif
}

TEST_F(ElfFileTest, ReadsWhatHardwareAPluginNeeds) {
  const auto facts = InspectElf(TRINE_HARDWARE_PLUGIN);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->hardware, "/dev/trine-fixture:$TRINE_FIXTURE_HARDWARE");
  const auto silent = InspectElf(TRINE_CPU_PLUGIN);
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_EQ(silent->hardware, std::nullopt);
}

// A note that claims to be longer than its section, by any of its sizes, is skipped.
TEST_F(ElfFileTest, NotesThatDoNotEndSayNothing) {
  const std::string whole = ReadFile(TRINE_HARDWARE_PLUGIN);
  const size_t name = whole.find(std::string("Trine\0", 6));
  ASSERT_NE(name, std::string::npos);
  for (const size_t size_at : {name - 12, name - 8}) {
    for (const uint32_t size : {0xffffffffu, 0xfffffffdu, 0x10000u}) {
      std::string bytes = whole;
      std::memcpy(&bytes[size_at], &size, sizeof(size));
      const auto facts = InspectElf(Make(bytes));
      ASSERT_TRUE(facts.ok()) << facts.status();
      EXPECT_EQ(facts->hardware, std::nullopt) << size;
    }
  }
  // A text without a NUL is skipped too.
  std::string bytes = whole;
  const size_t end = bytes.find('\0', name + 8);
  bytes[end] = 'x';
  const auto facts = InspectElf(Make(bytes));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->hardware, std::nullopt);
}

TEST_F(ElfFileTest, OtherFilesAreRefusedWithAReason) {
  EXPECT_THAT(Refusal("/nowhere/at/all.so"), HasSubstr("no such file"));
  EXPECT_THAT(Refusal("/tmp"), HasSubstr("not a file"));
  const std::string pipe = ::testing::TempDir() + "elf_pipe." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Refusal(pipe), HasSubstr("not a file")) << "and it must not hang";
  unlink(pipe.c_str());
  EXPECT_THAT(Refusal("/dev/zero"), HasSubstr("not a file"));
  EXPECT_THAT(Refusal(Make("")), HasSubstr("too short"));
  EXPECT_THAT(Refusal(Make("hello")), HasSubstr("too short"));
  EXPECT_THAT(Refusal(Make(std::string(4096, 'x'))), HasSubstr("not a shared object"));
}

TEST_F(ElfFileTest, OtherMachinesAreNamed) {
  std::string bytes = ReadFile(TRINE_CPU_PLUGIN);
  const uint16_t machine = EM_PPC64;
  std::memcpy(&bytes[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof(machine));
  EXPECT_THAT(Refusal(Make(bytes)), HasSubstr("built for machine 21, this machine is"));
}

TEST_F(ElfFileTest, PermissionIsSaidToBeMissing) {
  const std::string path = Make(ReadFile(TRINE_CPU_PLUGIN));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  std::string refusal;
  if (geteuid() == 0) {  // root can read everything: act as another user
    ASSERT_EQ(seteuid(65534), 0);
    refusal = Refusal(path);
    ASSERT_EQ(seteuid(0), 0);
  } else {
    refusal = Refusal(path);
  }
  EXPECT_THAT(refusal, HasSubstr("no permission"));
  chmod(path.c_str(), 0600);
}

// A file truncated at any length, or with any byte changed, gives an answer and never a crash.
TEST_F(ElfFileTest, DamagedFilesAreSurvived) {
  const std::string whole = ReadFile(TRINE_HARDWARE_PLUGIN);
  std::mt19937 random(7);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 500 : 60;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = whole.substr(0, random() % whole.size());
    (void)InspectElf(Make(bytes));
    bytes = whole;
    const size_t tables = sizeof(Elf64_Ehdr) + random() % 2 * (whole.size() - sizeof(Elf64_Ehdr));
    for (int flips = 0; flips < 4; ++flips) bytes[random() % tables] = static_cast<char>(random());
    const size_t from_end = 64 * (1 + random() % 30);
    bytes[bytes.size() - from_end + random() % 64] = static_cast<char>(random());
    (void)InspectElf(Make(bytes));
  }
}

}  // namespace
}  // namespace trine
