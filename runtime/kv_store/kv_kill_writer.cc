// Writes blocks into a store with two threads, as fast as it can, until it is killed. For each
// block for which Put has returned OK it writes a byte to its output: the number of the thread.
// kv_kill_test runs it.
//
//   kv-kill-writer FOLDER SEED

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/kv_store/kv_disk_store.h"
#include "runtime/kv_store/kv_test_util.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto store = trine::KvDiskStore::Open(argv[1], {});
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 1;
  }
  const trine::KvSpace space = trine::SmallSpace();
  const auto seed = static_cast<uint32_t>(std::atoi(argv[2]));
  const auto write_blocks = [&](char thread) {
    const std::vector<int32_t> tokens =
        trine::RandomTokens(64 * 3000, 2 * seed + static_cast<uint32_t>(thread));
    for (const trine::KvBlock& block : trine::KvBlocksOf(space, tokens)) {
      if (!(*store)->Put(block, trine::PayloadOf(block)).ok()) std::_Exit(1);
      if (write(1, &thread, 1) != 1) std::_Exit(1);
    }
  };
  std::thread other(write_blocks, 1);
  write_blocks(0);
  other.join();
  pause();
}
