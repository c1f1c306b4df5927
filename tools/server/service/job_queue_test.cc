#include "tools/server/service/job_queue.h"

#include <atomic>
#include <future>
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
    return {[this](std::chrono::nanoseconds) {
      began_.set_value();
      go_.get_future().wait();
      return false;
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
    return {[this, name](std::chrono::nanoseconds) {
              std::lock_guard lock(mutex_);
              order_.push_back(name);
              return false;
            },
            [this, name](const absl::Status& why) {
              std::lock_guard lock(mutex_);
              order_.push_back(absl::StrCat(name, ": ", absl::StatusCodeToString(why.code())));
            }};
  }
  uint64_t Add(JobQueue* queue, const std::string& client, int64_t places, JobQueue::Work job) {
    uint64_t number = 0;
    const absl::Status s = queue->Add(client, places, std::move(job), &number);
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

TEST_F(JobQueueTest, PlacesAreNeverGivenTwiceAndTheLargeAreNotOvertaken) {
  Gate first, large;
  JobQueue queue({.places = 3});
  Add(&queue, "a", 2, first.Job());
  first.AwaitBegin();
  Add(&queue, "b", 2, large.Job());
  Add(&queue, "c", 1, Note("small"));
  EXPECT_FALSE(queue.WaitUntilIdle(milliseconds(30)));
  EXPECT_EQ(queue.counters().taken, 2);  // the small job would fit, but waits
  {
    std::lock_guard lock(mutex_);
    EXPECT_THAT(order_, ElementsAre());
  }
  first.Open();
  large.AwaitBegin();
  large.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("small"));
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

TEST_F(JobQueueTest, WhoWantsAnotherTurnWaitsBehindTheOthers) {
  Gate gate;
  JobQueue queue({.places = 1});
  Add(&queue, "z", 1, gate.Job());
  gate.AwaitBegin();
  int turns = 0;
  Add(&queue, "a", 1, {[&, note = Note("a")](std::chrono::nanoseconds waited) {
    note.run(waited);
    return ++turns < 3;
  }});
  Add(&queue, "b", 1, Note("b1"));
  Add(&queue, "b", 1, Note("b2"));
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("a", "b1", "a", "b2", "a"));
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
  twice.run = [&](std::chrono::nanoseconds) {
    gate.Job().run({});
    return true;
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
  EXPECT_TRUE(queue.Remove(waiting));
  EXPECT_FALSE(queue.Remove(waiting));
  EXPECT_FALSE(queue.Remove(running));
  gate.Open();
  ASSERT_TRUE(queue.WaitUntilIdle(kSoon));
  EXPECT_THAT(order_, ElementsAre("stays"));
}

TEST_F(JobQueueTest, AtTheEndWhatWaitsIsDroppedAndWhatRunsIsWaitedFor) {
  Gate gate;
  std::atomic<bool> over = false;
  auto held = std::make_shared<int>(1);
  JobQueue queue({.places = 1});
  Add(&queue, "a", 1, {[&, job = gate.Job()](std::chrono::nanoseconds waited) {
    job.run(waited);
    over = true;
    return false;
  }});
  gate.AwaitBegin();
  JobQueue::Work never = Note("never");
  never.run = [held](std::chrono::nanoseconds) { return false; };
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
