// Kills a process that writes blocks, at any moment. All blocks that Put has acknowledged must be
// there and intact, and no damaged block is ever found.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/gguf/test_file.h"
#include "runtime/kv_store/kv_disk_store.h"
#include "runtime/kv_store/kv_test_util.h"

extern char** environ;

namespace trine {
namespace {

// The number of blocks that Put acknowledged to each thread of a writer.
struct Progress {
  size_t stored[2] = {0, 0};
};

// Starts a writer and kills it `after` its first block is stored.
Progress RunAndKill(const std::string& folder, uint32_t seed, std::chrono::microseconds after) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::string number = std::to_string(seed);
  std::string program = TRINE_KV_KILL_WRITER, where = folder;
  char* arguments[] = {program.data(), where.data(), number.data(), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Progress progress;
  char thread = 0;
  if (read(ends[0], &thread, 1) == 1) ++progress.stored[thread & 1];
  std::thread killer([&] {
    std::this_thread::sleep_for(after);
    kill(pid, SIGKILL);
  });
  while (read(ends[0], &thread, 1) == 1) ++progress.stored[thread & 1];
  killer.join();
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  close(ends[0]);
  return progress;
}

TEST(KvKillTest, WhatWasStoredIsThere) {
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 200 : 20;
  const KvSpace space = SmallSpace();
  std::mt19937 random(1);
  size_t stored = 0, more = 0;
  for (int round = 0; round < rounds; ++round) {
    gguf::TempFolder temp;
    const std::string folder = temp.File("store");
    // Kills several writers in one folder.
    for (uint32_t death = 0; death < 3; ++death) {
      const uint32_t seed = static_cast<uint32_t>(round) * 3 + death;
      const Progress progress =
          RunAndKill(folder, seed, std::chrono::microseconds(random() % 20000));
      auto store = KvDiskStore::Open(folder, {});
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_TRUE(std::filesystem::is_empty(folder + "/temporary"));
      for (uint32_t thread = 0; thread < 2; ++thread) {
        const std::vector<int32_t> tokens = RandomTokens(64 * 3000, 2 * seed + thread);
        const std::vector<KvBlock> blocks = KvBlocksOf(space, tokens);
        const size_t told = progress.stored[thread];
        stored += told;
        for (size_t i = 0; i < std::min(told + 3, blocks.size()); ++i) {
          const auto got = (*store)->Get(blocks[i]);
          ASSERT_TRUE(got.ok() || i >= told) << round << " " << i << " " << got.status();
          if (!got.ok()) continue;
          ASSERT_TRUE(IsPayloadOf(blocks[i], **got));
          more += i >= told;
        }
      }
      ASSERT_EQ((*store)->counters().damaged, 0u);
    }
  }
  EXPECT_GT(stored, static_cast<size_t>(3 * rounds));
  RecordProperty("stored", static_cast<int>(stored));
  RecordProperty("killed_before_it_was_told", static_cast<int>(more));
  std::printf("%zu blocks stored, %zu more whose writer was killed before it said so\n", stored,
              more);
}

}  // namespace
}  // namespace trine
