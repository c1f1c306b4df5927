#include "kernels/hip/gpu/emulator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/hip/gpu/fiber.h"

namespace trine::hip::emulator {
namespace {

constexpr uint64_t kMaxThreads = 1024;      // in a block
constexpr size_t kSharedBytes = 256 << 10;  // more than any device has
constexpr unsigned char kPoison = 0xa5;
constexpr uint32_t kGroup = 32, kWholeWave = 64;  // lanes that meet
constexpr char kTooMuchShared[] = "a block asks for more shared memory than any device has";

std::mutex settings_mutex;
Settings settings;

enum class State { kReady, kAtBarrier, kMeeting, kDone };

// A copy that a thread has begun and not yet awaited.
struct PendingCopy {
  void* to;
  const void* from;
  size_t bytes;
  uint32_t group;  // the number of groups that the thread had closed when the copy began
};

// A thread of a kernel. Most of the emulator's time goes into switching from one Thread to the
// next, so the members for that are in one cache line.
struct alignas(64) Thread {
  State state = State::kDone;
  uint32_t lanes = 0;  // number of lanes that meet
  Meeting meeting = nullptr;
  void* brought = nullptr;
  int from = 0;  // the source line where it meets
  Fiber fiber;
  Where where;
  std::vector<PendingCopy> copies;  // under way
  uint32_t copy_groups = 0;         // closed
};

std::string Place(const Where& where) {
  const auto text = [](const Dim& d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) +
           ")";
  };
  return "block " + text(where.block) + ", thread " + text(where.thread);
}

// Runs the blocks of one launch, one after the other, on one thread of the system.
class Runner {
 public:
  std::string Run(const Launch& launch) {
    launch_ = &launch;
    settings_ = CurrentSettings();
    random_ = settings_.seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    wrong_.clear();
    const uint64_t threads = launch.block.count();
    if (threads == 0 || threads > kMaxThreads) {
      return "a block has " + std::to_string(threads) + " threads";
    }
    const Dim& grid = launch.grid;
    if (grid.count() == 0) return "a grid has no blocks";
    if (grid.x > 0x7fffffff || std::max(grid.y, grid.z) > kMaxGridYZ) {
      return "a grid has more blocks along a dimension than devices take";
    }
    if (launch.shared_bytes > kSharedBytes) return kTooMuchShared;
    if (threads_ == nullptr) threads_ = std::make_unique<Thread[]>(kMaxThreads);
    Resize(launch.shared_bytes, &dynamic_);
    const uint64_t blocks = launch.grid.count();
    for (uint64_t i = 0; i < blocks && wrong_.empty(); ++i) RunBlock(BlockAt(i, blocks));
    return wrong_;
  }

  Thread& current() { return *current_; }

  void SyncBlock() { Park(State::kAtBarrier); }

  void Meet(uint32_t lanes, Meeting meeting, void* mine, int from) {
    current_->meeting = meeting;
    current_->lanes = lanes;
    current_->from = from;
    current_->brought = mine;
    Park(State::kMeeting);
  }

  // Returns the kernel's shared struct, which the block's first thread to come fills with poison. A
  // kernel has one such struct; on devices its size is known before.
  void* SharedMemory(size_t bytes) {
    if (bytes > kSharedBytes) Abandon(kTooMuchShared);
    if (has_shared_ && shared_.size() != bytes) {
      Abandon("a kernel declares shared memory more than once");
    }
    if (!has_shared_) {
      has_shared_ = true;
      Resize(bytes, &shared_);
      std::fill(shared_.begin(), shared_.end(), kPoison);
    }
    return shared_.data();
  }
  void* DynamicSharedMemory() { return dynamic_.data(); }

  void BeginCopy(const PendingCopy& copy) {
    const auto places =
        reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from);
    if (places % copy.bytes != 0) return Wrong("a copy is not aligned to its size", *current_);
    const bool at_once =
        settings_.order == Order::kReverse || (settings_.order == Order::kRandom && Random(2) == 0);
    if (at_once) std::memcpy(copy.to, copy.from, copy.bytes);
    // Stays in the list, so that forgetting to wait is found with every order.
    current_->copies.push_back(
        {copy.to, copy.from, at_once ? 0 : copy.bytes, current_->copy_groups});
  }
  void EndCopyGroup() { ++current_->copy_groups; }
  void AwaitCopyGroups(uint32_t left) {
    std::erase_if(current_->copies, [&](const PendingCopy& copy) {
      if (copy.group + left >= current_->copy_groups) return false;
      std::memcpy(copy.to, copy.from, copy.bytes);
      return true;
    });
  }

  // Called by a thread whose kernel has returned.
  void End() {
    if (!current_->copies.empty()) Wrong("a thread ends with copies under way", *current_);
    current_->state = State::kDone;
    current_->fiber.Leave(true);
  }

 private:
  uint64_t Random(uint64_t below) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % below;
  }

  // Returns the block to run as number i: blocks may come in any order.
  Dim BlockAt(uint64_t i, uint64_t blocks) const {
    if (settings_.order == Order::kReverse) i = blocks - 1 - i;
    const Dim& grid = launch_->grid;
    return {static_cast<uint32_t>(i % grid.x), static_cast<uint32_t>(i / grid.x % grid.y),
            static_cast<uint32_t>(i / grid.x / grid.y)};
  }

  static void Body();

  void Park(State state) {
    current_->state = state;
    current_->fiber.Leave(false);
  }

  // Allocates exactly what is asked for, so that a sanitizer sees accesses beyond it.
  static void Resize(size_t bytes, std::vector<unsigned char>* memory) {
    if (memory->size() != bytes) *memory = std::vector<unsigned char>(bytes);
  }

  // Ends the current thread where it is: there is nothing to return to it.
  void Abandon(const char* what) {
    Wrong(what, *current_);
    current_->state = State::kDone;
    current_->fiber.Leave(true);
  }

  void Wrong(const char* what, const Thread& thread) {
    if (wrong_.empty()) wrong_ = std::string(what) + ", at " + Place(thread.where);
  }

  void RunBlock(const Dim& block) {
    const Dim& size = launch_->block;
    count_ = static_cast<uint32_t>(size.count());
    has_shared_ = false;
    std::fill(dynamic_.begin(), dynamic_.end(), kPoison);
    for (uint32_t i = 0; i < count_; ++i) {
      Thread& t = threads_[i];
      t.where = {
          {i % size.x, i / size.x % size.y, i / size.x / size.y}, block, size, launch_->grid};
      t.state = State::kReady;
      t.copies.clear();
      t.copy_groups = 0;
      if (!t.fiber.Start(&Body)) return Wrong("no memory for a thread's stack", t);
    }
    for (;;) {
      RunPhase();
      if (!wrong_.empty()) return;
      const std::span all(threads_.get(), count_);
      const auto done = std::count_if(all.begin(), all.end(),
                                      [](const Thread& t) { return t.state == State::kDone; });
      if (done == static_cast<std::ptrdiff_t>(count_)) return;
      for (Thread& t : all) {
        if (t.state == State::kDone) continue;
        if (done != 0) return Wrong("a barrier that other threads of the block never reach", t);
        t.state = State::kReady;
      }
    }
  }

  // Runs every wave up to its threads' next barrier, or their end.
  void RunPhase() {
    const uint32_t wave = settings_.wave, waves = (count_ + wave - 1) / wave;
    const auto turn = static_cast<uint32_t>(settings_.order == Order::kRandom ? Random(waves) : 0);
    for (uint32_t k = 0; k < waves && wrong_.empty(); ++k) {
      const uint32_t w = settings_.order == Order::kReverse ? waves - 1 - k : (k + turn) % waves;
      while (StepWave(w * wave, std::min(count_, (w + 1) * wave)) && wrong_.empty()) {
      }
    }
  }

  // Runs each of threads [begin, end) until it has to wait, then lets their groups meet. Returns
  // false if all are waiting at a barrier or have ended.
  bool StepWave(uint32_t begin, uint32_t end) {
    const uint32_t n = end - begin;
    const auto turn = static_cast<uint32_t>(settings_.order == Order::kRandom ? Random(n) : 0);
    for (uint32_t j = 0; j < n && wrong_.empty(); ++j) {
      const uint32_t turned = j + turn < n ? j + turn : j + turn - n;
      const uint32_t lane = settings_.order == Order::kReverse ? n - 1 - j : turned;
      Thread& t = threads_[begin + lane];
      if (t.state != State::kReady) continue;
      current_ = &t;
      t.fiber.Enter();
    }
    const Thread* first = FirstToMeet(begin, end);
    const uint32_t lanes = first == nullptr ? kGroup : first->lanes;
    bool met = false;
    for (uint32_t g = begin; g < end && wrong_.empty(); g += lanes) {
      met |= MeetGroup(g, std::min(end, g + lanes), lanes);
    }
    return met;
  }

  const Thread* FirstToMeet(uint32_t begin, uint32_t end) const {
    for (uint32_t i = begin; i < end; ++i) {
      if (threads_[i].state == State::kMeeting) return &threads_[i];
    }
    return nullptr;
  }

  bool MeetGroup(uint32_t begin, uint32_t end, uint32_t lanes) {
    const Thread* first = FirstToMeet(begin, end);
    if (first == nullptr) return false;
    if (lanes > settings_.wave) {
      Wrong("lanes meet as a wave of 64, and waves are of 32", *first);
      return false;
    }
    if (end - begin != lanes) {
      Wrong("lanes meet in a group that is not whole", *first);
      return false;
    }
    void* brought[kWholeWave];
    for (uint32_t i = begin; i < end; ++i) {
      const Thread& t = threads_[i];
      if (t.state != State::kMeeting) {
        Wrong("lanes meet while others of their group are elsewhere", *first);
        return false;
      }
      // Another line means another branch of a condition, or another round of a loop.
      if (t.meeting != first->meeting || t.from != first->from || t.lanes != lanes) {
        Wrong("lanes of a group stand in different meetings", t);
        return false;
      }
      brought[i - begin] = t.brought;
    }
    if (const char* what = first->meeting(brought)) {
      Wrong(what, *first);
      return false;
    }
    for (uint32_t i = begin; i < end; ++i) threads_[i].state = State::kReady;
    return true;
  }

  const Launch* launch_ = nullptr;
  Settings settings_;
  std::unique_ptr<Thread[]> threads_;  // room for the largest block
  uint32_t count_ = 0;                 // threads of this block
  Thread* current_ = nullptr;
  std::vector<unsigned char> shared_, dynamic_;
  bool has_shared_ = false;  // this block has asked for shared_
  uint64_t random_ = 1;
  std::string wrong_;
};

// Returns the system thread's own runner: kernels may run on several threads.
Runner& ThisRunner() {
  static thread_local Runner runner;
  return runner;
}

void Runner::Body() {
  Runner& runner = ThisRunner();
  const Launch& launch = *runner.launch_;
  launch.call(launch.kernel, launch.args);
  runner.End();
}

}  // namespace

void Configure(const Settings& wanted) {
  const std::lock_guard<std::mutex> lock(settings_mutex);
  settings = wanted;
  settings.wave = wanted.wave >= 64 ? 64 : 32;
}

Settings CurrentSettings() {
  const std::lock_guard<std::mutex> lock(settings_mutex);
  return settings;
}

std::string Run(const Launch& launch) { return ThisRunner().Run(launch); }

const Where& Current() { return ThisRunner().current().where; }
void SyncBlock() { ThisRunner().SyncBlock(); }
void* SharedMemory(size_t bytes) { return ThisRunner().SharedMemory(bytes); }
void* DynamicSharedMemory() { return ThisRunner().DynamicSharedMemory(); }
void MeetLanes(Meeting meeting, void* mine, int from) {
  ThisRunner().Meet(kGroup, meeting, mine, from);
}
void MeetWave(Meeting meeting, void* mine, int from) {
  ThisRunner().Meet(kWholeWave, meeting, mine, from);
}
void BeginCopy(void* to, const void* from, size_t bytes) {
  ThisRunner().BeginCopy({to, from, bytes, 0});
}
void EndCopyGroup() { ThisRunner().EndCopyGroup(); }
void AwaitCopyGroups(uint32_t left) { ThisRunner().AwaitCopyGroups(left); }
void SyncLanes(int from) {
  MeetLanes([](void**) -> const char* { return nullptr; }, nullptr, from);
}

}  // namespace trine::hip::emulator
