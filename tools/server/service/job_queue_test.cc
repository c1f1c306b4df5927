#include "tools/server/service/job_queue.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace trine::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
constexpr milliseconds kSoon(10'000);

// A job that a test can wait for and let finish.
class Gate {
 public:
  JobQueue::Work Job() {
    return {[this](const JobQueue::Turn&) {
      began_.set_value();
      go_.get_future().wait();
    }};
  }
  void AwaitBegin() { ASSERT_EQ(began_.get_future().wait_for(kSoon), std::future_status::ready); }
  void Open() { go_.set_value(); }

 private:
  std::promise<void> began_, go_;
};

class JobQueueTest : public ::testing::Test {
 protected:
  JobQueue::Work Note(std::string name) {
    return {[this, name](const JobQueue::Turn&) {
              std::lock_guard lock(mutex_);
              order_.push_back(name);
            },
            [this, name](int64_t parts, const absl::Status& why) {
              std::lock_guard lock(mutex_);
              order_.push_back(absl::StrCat(name, ": ", parts == 1 ? "" : absl::StrCat(parts, " "),
                                            absl::StatusCodeToString(why.code())));
            }};
  }
  uint64_t Add(JobQueue* queue, const std::string& client, int64_t parts, JobQueue::Work job) {
    uint64_t number = 0;
    const absl::Status s = queue->Add(client, parts, std::move(job), &number);
    EXPECT_TRUE(s.ok()) << s;
    return number;
  }

  std::mutex mutex_;
  std::vector<std::string> order_;
};

TEST_F(JobQueueTest, ClientsTakeTurns) {
  Gate gate;
  JobQueue queue({.places = 1});
  Add(&queue, "z", 1, gate.Job());
  gate.AwaitBegin();
  for (const char* name : {"a1", "a2", "a3"}) Add(&queue, "a", 1, Note(name));
  for (const char* name : {"b1", "b2"}) Add(&queue, "b", 1, Note(name));
  EXPECT_EQ(queue.counters().waiting, 5);
  EXPECT_EQ(queue.counters().running, 1);
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("a1", "b1", "a2", "b2", "a3"));
}

// Parts of one job, which a test can wait for and let finish.
class PartGate {
 public:
  JobQueue::Work Job() {
    return {[this](const JobQueue::Turn&) {
      std::unique_lock lock(mutex_);
      ++began_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_ > 0; });
      --open_;
    }};
  }
  // Waits until `parts` parts have begun, in all.
  bool AwaitBegin(int parts) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, [&] { return began_ >= parts; });
  }
  void Open(int parts) {
    std::lock_guard lock(mutex_);
    open_ += parts;
    changed_.notify_all();
  }
  int began() {
    std::lock_guard lock(mutex_);
    return began_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int began_ = 0, open_ = 0;
};

TEST_F(JobQueueTest, ALargeJobBeginsWithThePlacesThatAreFree) {
  Gate first;
  PartGate large;
  JobQueue queue({.places = 3});
  Add(&queue, "a", 1, first.Job());
  first.AwaitBegin();
  Add(&queue, "b", 8, large.Job());
  ASSERT_TRUE(large.AwaitBegin(2));
  EXPECT_EQ(queue.counters().taken, 3);
  EXPECT_EQ(queue.counters().running, 2);
  EXPECT_EQ(queue.counters().waiting, 0);
  EXPECT_TRUE(queue.IsFull());
  first.Open();
  ASSERT_TRUE(large.AwaitBegin(3));
  EXPECT_FALSE(queue.WaitUntilIdle(milliseconds(30)));
  EXPECT_EQ(large.began(), 3);  // no place is given twice
  large.Open(8);
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_EQ(large.began(), 8);
}

// A job with as many parts as there are places, or more, delays other clients by one part alone.
TEST_F(JobQueueTest, ALargeJobTakesTurnsWithOtherClients) {
  PartGate large;
  JobQueue queue({.places = 2});
  Add(&queue, "a", 6, large.Job());
  ASSERT_TRUE(large.AwaitBegin(2));
  for (const char* name : {"b1", "b2"}) Add(&queue, "b", 1, Note(name));
  Add(&queue, "c", 1, Note("c"));
  large.Open(1);
  ASSERT_TRUE(large.AwaitBegin(3));  // its turn came before that of b
  large.Open(1);                     // b1, then c or a part of a
  while (queue.counters().waiting > 0) large.Open(1);
  {
    std::lock_guard lock(mutex_);
    EXPECT_THAT(order_, ElementsAre("b1", "c", "b2"));
  }
  EXPECT_LT(large.began(), 7);
  large.Open(6);
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
}

TEST_F(JobQueueTest, AsManyRunAtOnceAsThereArePlaces) {
  std::vector<Gate> gates(3);
  JobQueue queue({.places = 3});
  for (Gate& gate : gates) Add(&queue, "a", 1, gate.Job());
  for (Gate& gate : gates) gate.AwaitBegin();
  EXPECT_EQ(queue.counters().running, 3);
  for (Gate& gate : gates) gate.Open();
  EXPECT_TRUE(queue.WaitUntilIdle(kSoon));
}

// Idle threads may not have noticed yet that several jobs have come at the same time.
TEST_F(JobQueueTest, AfterAQuietMomentAsManyBeginAtOnce) {
  std::vector<Gate> gates(6);
  JobQueue queue({.places = 6});
  Add(&queue, "a", 1, Note("first"));
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  for (Gate& gate : gates) Add(&queue, "a", 1, gate.Job());
  for (Gate& gate : gates) gate.AwaitBegin();
  EXPECT_EQ(queue.counters().running, 6);
  for (Gate& gate : gates) gate.Open();
  EXPECT_TRUE(queue.WaitUntilIdle(kSoon));
}

TEST_F(JobQueueTest, AddedPartsWaitBehindOtherClients) {
  Gate gate;
  JobQueue queue({.places = 1});
  Add(&queue, "z", 1, gate.Job());
  gate.AwaitBegin();
  int turns = 0;
  Add(&queue, "a", 1, {[&, note = Note("a")](const JobQueue::Turn& turn) {
    note.run(turn);
    if (++turns == 1) {
      EXPECT_TRUE(queue.AddParts(turn.number, 2));
    }
  }});
  Add(&queue, "b", 1, Note("b1"));
  Add(&queue, "b", 1, Note("b2"));
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("a", "b1", "a", "b2", "a"));
  EXPECT_FALSE(queue.AddParts(2, 1)) << "the job has ended";
}

TEST_F(JobQueueTest, WaitingPartsAreRemovedAndRefusedTogether) {
  Gate gate;
  JobQueue queue({.places = 1});
  Add(&queue, "z", 1, gate.Job());
  gate.AwaitBegin();
  const uint64_t removed = Add(&queue, "a", 3, Note("removed"));
  Add(&queue, "a", 4, Note("dropped"));
  EXPECT_EQ(queue.Remove(removed), 3);
  EXPECT_EQ(queue.Remove(removed), 0);
  queue.DropWaiting();
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("dropped: 4 UNAVAILABLE"));
}

TEST_F(JobQueueTest, WhoHasWaitedTooLongIsToldSo) {
  Gate gate;
  JobQueue queue({.places = 1});
  Add(&queue, "z", 1, gate.Job());
  gate.AwaitBegin();
  Add(&queue, "a", 1, Note("old"));
  queue.DropOlder(milliseconds(60'000));
  EXPECT_EQ(queue.counters().waiting, 1);
  std::this_thread::sleep_for(milliseconds(20));
  queue.DropOlder(milliseconds(10));
  EXPECT_EQ(queue.counters().waiting, 0);
  Add(&queue, "a", 1, Note("new"));
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("old: DEADLINE_EXCEEDED", "new"));
}

// Time counts from the arrival, whatever happened before the job was added, and a turn does not
// reset it.
TEST_F(JobQueueTest, TimeCountsFromTheArrival) {
  Gate gate;
  JobQueue queue({.places = 1});
  uint64_t number = 0;
  JobQueue::Work twice = Note("twice");
  twice.run = [&](const JobQueue::Turn& turn) {
    gate.Job().run(turn);
    EXPECT_TRUE(queue.AddParts(turn.number, 1));
  };
  twice.arrived = std::chrono::steady_clock::now() - std::chrono::seconds(30);
  ASSERT_TRUE(queue.Add("a", 1, std::move(twice), &number).ok());
  gate.AwaitBegin();
  JobQueue::Work late = Note("late");
  late.arrived = std::chrono::steady_clock::now() - std::chrono::seconds(60);
  ASSERT_TRUE(queue.Add("b", 1, std::move(late), &number).ok());
  Gate other;
  Add(&queue, "c", 1, other.Job());
  queue.DropOlder(std::chrono::seconds(50));
  EXPECT_EQ(queue.counters().waiting, 1);
  gate.Open();
  other.AwaitBegin();  // `twice` has had a turn and waits for the next
  queue.DropOlder(std::chrono::seconds(20));
  EXPECT_EQ(queue.counters().waiting, 0);
  other.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("late: DEADLINE_EXCEEDED", "twice: DEADLINE_EXCEEDED"));
}

TEST_F(JobQueueTest, ThereIsAnEndToWaiting) {
  Gate gate;
  JobQueue queue({.places = 1, .waiting = 3, .waiting_per_client = 2});
  Add(&queue, "z", 1, gate.Job());
  gate.AwaitBegin();
  uint64_t number = 0;
  Add(&queue, "a", 1, Note("a1"));
  Add(&queue, "a", 1, Note("a2"));
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Add("a", 1, Note("a3"), &number)));
  Add(&queue, "b", 1, Note("b1"));
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Add("c", 1, Note("c1"), &number)));
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("a1", "b1", "a2"));
  Add(&queue, "c", 1, Note("c2"));
  EXPECT_TRUE(queue.WaitUntilIdle(kSoon));
}

TEST_F(JobQueueTest, WhoLeavesIsNotServed) {
  Gate gate;
  JobQueue queue({.places = 1});
  const uint64_t running = Add(&queue, "a", 1, gate.Job());
  gate.AwaitBegin();
  const uint64_t waiting = Add(&queue, "a", 1, Note("left"));
  Add(&queue, "b", 1, Note("stays"));
  EXPECT_EQ(queue.Remove(waiting), 1);
  EXPECT_EQ(queue.Remove(waiting), 0);
  EXPECT_EQ(queue.Remove(running), 0);
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("stays"));
}

TEST_F(JobQueueTest, AtTheEndWhatWaitsIsDroppedAndWhatRunsIsWaitedFor) {
  Gate gate;
  std::atomic<bool> over = false;
  auto held = std::make_shared<int>(1);
  JobQueue queue({.places = 1});
  Add(&queue, "a", 1, {[&, job = gate.Job()](const JobQueue::Turn& turn) {
    job.run(turn);
    over = true;
  }});
  gate.AwaitBegin();
  JobQueue::Work never = Note("never");
  never.run = [held](const JobQueue::Turn&) {};
  Add(&queue, "a", 1, std::move(never));
  EXPECT_EQ(held.use_count(), 2);
  auto stopped = std::async(std::launch::async, [&] { queue.Stop(); });
  EXPECT_EQ(stopped.wait_for(milliseconds(30)), std::future_status::timeout);
  gate.Open();
  stopped.get();
  EXPECT_TRUE(over);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_THAT(order_, ElementsAre("never: UNAVAILABLE"));
  uint64_t number = 0;
  EXPECT_TRUE(absl::IsUnavailable(queue.Add("a", 1, Note("late"), &number)));
}

}  // namespace
}  // namespace trine::server
