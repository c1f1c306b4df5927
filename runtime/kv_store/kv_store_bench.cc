// Measures coding, storing and finding blocks of 8 MiB, the size that a Llama 8B has. Uses the
// given folder, or one in the system's temporary folder. A tool, never a test.
//
//   kv-store-bench [FOLDER]

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/quant/encode.h"
#include "runtime/kv_store/kv_codec.h"
#include "runtime/kv_store/kv_disk_store.h"
#include "runtime/kv_store/kv_host_store.h"

namespace trine {
namespace {

constexpr int kBlocks = 32;

class Timer {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Measures the time of this thread on the processor, without that of others.
class WorkTimer {
 public:
  double Seconds() const { return Now() - start_; }

 private:
  static double Now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double start_ = Now();
};

void Say(const char* what, double bytes, double seconds) {
  std::printf("%-28s %8.0f MB/s\n", what, bytes / seconds / 1e6);
}

KvSpace Space() {
  KvSpaceFields fields;
  fields.layout.layers = 32;
  fields.layout.kv_heads = 8;
  fields.layout.head_dim_k = fields.layout.head_dim_v = 128;
  return *KvSpace::Create(fields);
}

std::vector<std::byte> RandomBlock(const KvSpace& space) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(space.block_bytes() / 2);
  for (float& value : x) value = normal(random);
  std::vector<std::byte> block(space.block_bytes());
  quant::EncodeRow(quant::Type::kF16, x.data(), static_cast<int64_t>(x.size()), nullptr,
                   block.data());
  return block;
}

void Forms(const KvSpace& space, const std::vector<std::byte>& block) {
  const KvCodec codec = *KvCodec::Create(space.layout());
  std::vector<std::byte> back(block.size());
  for (const KvForm form : kAllKvForms) {
    const int rounds = form == KvForm::kRaw ? 20 : 2;
    KvPayload payload;
    const WorkTimer encoding;
    for (int i = 0; i < rounds; ++i) payload = *codec.Encode(form, block);
    const std::string name = KvFormName(form);
    const auto bytes = static_cast<double>(rounds) * static_cast<double>(block.size());
    Say((name + " encode").c_str(), bytes, encoding.Seconds());
    const WorkTimer decoding;
    for (int i = 0; i < rounds; ++i) {
      if (!codec.Decode(payload, back).ok()) return;
    }
    Say((name + " decode").c_str(), bytes, decoding.Seconds());
  }
}

void PutAndGet(const char* name, KvStore* store, const std::vector<KvBlock>& blocks,
               const std::shared_ptr<const KvPayload>& payload) {
  const double bytes = static_cast<double>(blocks.size()) * static_cast<double>(payload->size);
  const Timer putting;
  for (const KvBlock& block : blocks) {
    if (!store->Put(block, payload).ok()) std::printf("a block was not stored\n");
  }
  Say((std::string(name) + " put").c_str(), bytes, putting.Seconds());
  const Timer getting;
  for (const KvBlock& block : blocks) {
    if (!store->Get(block).ok()) std::printf("a block was not found\n");
  }
  Say((std::string(name) + " get").c_str(), bytes, getting.Seconds());
}

void Run(const std::string& folder) {
  const KvSpace space = Space();
  const std::vector<std::byte> block = RandomBlock(space);
  std::printf("blocks of %.1f MiB, one thread\n", static_cast<double>(block.size()) / (1 << 20));
  Forms(space, block);
  std::vector<int32_t> tokens(64 * kBlocks);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  const Timer keys;
  const std::vector<KvBlock> blocks = KvBlocksOf(space, tokens);
  std::printf("%-28s %8.2f us\n", "a key", keys.Seconds() * 1e6 / kBlocks);
  auto payload = std::make_shared<KvPayload>(KvForm::kRaw, block.size());
  std::memcpy(payload->data.get(), block.data(), block.size());
  KvHostStore host({uint64_t{4} << 30, {}});
  PutAndGet("memory", &host, blocks, payload);
  for (const bool sync : {false, true}) {
    KvDiskOptions options;
    options.sync = sync;
    const std::string path = folder + (sync ? "/sync" : "/plain");
    auto disk = KvDiskStore::Open(path, options);
    if (!disk.ok()) {
      std::printf("%s\n", disk.status().ToString().c_str());
      return;
    }
    PutAndGet(sync ? "disk, synced" : "disk", disk->get(), blocks, payload);
  }
  // Small blocks, to measure the cost of a file.
  KvSpaceFields small;
  small.layout.layers = small.layout.kv_heads = 1;
  small.layout.head_dim_k = small.layout.head_dim_v = 1;
  const KvSpace tiny = *KvSpace::Create(small);
  std::vector<int32_t> many(64 * 10000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int32_t>(i);
  {
    auto disk = *KvDiskStore::Open(folder + "/many", {});
    const Timer putting;
    for (const KvBlock& b : KvBlocksOf(tiny, many)) {
      if (!disk->Put(b, std::make_shared<KvPayload>(KvForm::kRaw, tiny.block_bytes())).ok()) return;
    }
    std::printf("%-28s %8.1f us\n", "disk put, 256 bytes", putting.Seconds() * 1e6 / 10000);
  }
  const Timer opening;
  const auto disk = KvDiskStore::Open(folder + "/many", {});
  std::printf("%-28s %8.1f ms\n", "open, 10000 blocks", opening.Seconds() * 1e3);
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) {
  const std::filesystem::path root =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  std::string folder = (root / "trine-kv-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  trine::Run(folder);
  std::filesystem::remove_all(folder);
}
