// Tests devices that were declared lost, or hung, while they really have work in flight. Nothing
// that the work uses is freed while it runs, and handles that the host has given up are freed
// later. Uses its own plugin, which runs submissions on threads and counts its handles.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "plugins/fault/injector.h"
#include "trine/sdk/status.h"
#include "trine/sdk/timeline.h"

namespace trine::fault {
namespace {

using std::chrono::milliseconds;

std::atomic<int> g_live{0};      // handles that exist
std::atomic<int> g_breaches{0};  // handles freed while work used them
std::atomic<int> g_ran{0};       // submissions that ran to their end

// A handle that counts itself, and whether it is freed while in use.
struct Counted {
  std::atomic<int> users{0};
  Counted() { ++g_live; }
  ~Counted() {
    --g_live;
    if (users != 0) ++g_breaches;
  }
};
struct FakeBackend : Counted {};
struct FakeDevice : Counted {
  std::vector<std::thread> work;
};
struct FakeBuffer : Counted {};
struct FakeTimeline : Counted, sdk::Timeline {
  using Timeline::Timeline;
};
struct FakePlan : Counted {
  FakeDevice* device = nullptr;
  FakeBuffer* buffer = nullptr;
};

template <class Fake, class Handle>
Fake* As(Handle* handle) {
  return reinterpret_cast<Fake*>(handle);
}
template <class Fake, class Handle, class... Args>
trine_status Make(Handle** out, Args... args) {
  *out = reinterpret_cast<Handle*>(new Fake(args...));
  return TRINE_OK;
}

sdk::Timeline& TimelineOf(trine_timeline* t) { return *As<FakeTimeline>(t); }

// Runs the submission; if it has signals, on its own thread.
trine_status Submit(FakeDevice* device, const trine_sync& sync, std::vector<Counted*> used,
                    trine_error* err) {
  std::vector<trine_point> waits, signals;
  for (uint32_t i = 0; i < sync.n_waits; ++i) {
    waits.push_back(sdk::At(sync.waits, sync.point_stride, i));
    used.push_back(As<FakeTimeline>(waits.back().timeline));
  }
  for (uint32_t i = 0; i < sync.n_signals; ++i) {
    signals.push_back(sdk::At(sync.signals, sync.point_stride, i));
    used.push_back(As<FakeTimeline>(signals.back().timeline));
  }
  for (Counted* c : used) ++c->users;
  const auto body = [=](trine_error* why) {
    trine_status status = TRINE_OK;
    for (const trine_point& p : waits) {
      status = TimelineOf(p.timeline).Wait(p.value, UINT64_MAX, why);
      if (status != TRINE_OK) break;
    }
    if (status == TRINE_OK) {
      std::this_thread::sleep_for(milliseconds(50));
      ++g_ran;
    }
    // Does not use the handles after this: the last signal lets the host free the timelines too.
    for (Counted* c : used) --c->users;
    for (const trine_point& p : signals) {
      sdk::Settle(TimelineOf(p.timeline), p.value, status, why != nullptr ? why->message : "");
    }
    return status;
  };
  if (signals.empty()) return body(err);
  device->work.emplace_back([body] {
    trine_error why{};
    body(&why);
  });
  return TRINE_OK;
}

trine_plugin FakeTable() {
  trine_plugin t{};
  t.struct_size = sizeof(t);
  t.abi_version = TRINE_ABI_VERSION;
  t.name = "fake";
  t.version = "1";
  t.close = [](trine_backend* b) { delete As<FakeBackend>(b); };
  t.device_count = [](trine_backend*) { return 2u; };
  t.device_info = [](trine_backend*, uint32_t, trine_device_info* out, trine_error*) {
    out->flags = TRINE_DEVICE_ASYNC | TRINE_DEVICE_PEER_COPIES;
    return trine_status{TRINE_OK};
  };
  t.device_open = [](trine_backend*, uint32_t, trine_device** out, trine_error*) {
    return Make<FakeDevice>(out);
  };
  t.device_close = [](trine_device* d) {
    for (std::thread& thread : As<FakeDevice>(d)->work) thread.join();
    delete As<FakeDevice>(d);
  };
  t.buffer_alloc = [](trine_device*, const trine_buffer_desc*, trine_buffer** out, trine_error*) {
    return Make<FakeBuffer>(out);
  };
  t.buffer_free = [](trine_buffer* b) { delete As<FakeBuffer>(b); };
  t.copy_run = [](trine_device* d, const trine_copy_args* args, trine_error* err) {
    return Submit(As<FakeDevice>(d), args->sync, {As<FakeBuffer>(args->copies[0].dst.buffer)}, err);
  };
  t.plan_create = [](trine_device* d, const trine_plan_desc* desc, trine_plan** out, trine_error*) {
    auto* plan = new FakePlan();
    plan->device = As<FakeDevice>(d);
    plan->buffer = As<FakeBuffer>(desc->bindings[0].span.buffer);
    *out = reinterpret_cast<trine_plan*>(plan);
    return trine_status{TRINE_OK};
  };
  t.plan_run = [](trine_plan* p, const trine_run_args* args, trine_error* err) {
    if (args->n_params != 0) return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "no parameters");
    auto* plan = As<FakePlan>(p);
    return Submit(plan->device, args->sync, {plan, plan->buffer}, err);
  };
  t.plan_destroy = [](trine_plan* p) { delete As<FakePlan>(p); };
  t.timeline_create = [](trine_device*, uint64_t initial, trine_timeline** out, trine_error*) {
    return Make<FakeTimeline>(out, initial);
  };
  t.timeline_destroy = [](trine_timeline* t) { delete As<FakeTimeline>(t); };
  t.timeline_signal = [](trine_timeline* t, uint64_t value, trine_error* err) {
    return TimelineOf(t).Signal(value, err);
  };
  t.timeline_fail = [](trine_timeline* t, trine_status s, const char* why, trine_error* err) {
    return TimelineOf(t).SetFailed(s, why, err);
  };
  t.timeline_wait = [](trine_timeline* t, uint64_t value, uint64_t ns, trine_error* err) {
    return TimelineOf(t).Wait(value, ns, err);
  };
  t.timeline_query = [](trine_timeline* t, uint64_t* value, trine_error* err) {
    return TimelineOf(t).Query(value, err);
  };
  return t;
}

class AbandonedTest : public ::testing::Test {
 protected:
  AbandonedTest() { g_live = g_breaches = g_ran = 0; }

  void Open(const std::string& faults) {
    injector_ = std::make_unique<Injector>(*FaultSpec::Parse(faults));
    backend_ =
        injector_->Wrap(FakeTable(), nullptr, reinterpret_cast<trine_backend*>(new FakeBackend()),
                        {{"dgpu0", "Fake0"}, {"dgpu1", "Fake1"}});
    ASSERT_EQ(table().device_open(backend_.handle, 0, &device_, nullptr), TRINE_OK);
    buffer_ = NewBuffer(device_);
    const trine_binding binding{0, 0, {buffer_, 0, 64}};
    trine_plan_desc desc{};
    const trine_graph graph{};
    desc.struct_size = sizeof(desc);
    desc.n_bindings = 1;
    desc.binding_stride = sizeof(binding);
    desc.bindings = &binding;
    desc.graph = &graph;
    ASSERT_EQ(table().plan_create(device_, &desc, &plan_, nullptr), TRINE_OK);
    ASSERT_EQ(table().timeline_create(device_, 0, &timeline_, nullptr), TRINE_OK);
  }
  const trine_plugin& table() const { return *backend_.table; }

  trine_buffer* NewBuffer(trine_device* device) {
    const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_IO, 64};
    trine_buffer* buffer = nullptr;
    EXPECT_EQ(table().buffer_alloc(device, &desc, &buffer, nullptr), TRINE_OK);
    return buffer;
  }

  // Runs the plan after point `wait` of the timeline, and signals point `signal`; 0: none.
  trine_status Run(uint64_t wait, uint64_t signal, uint32_t n_params = 0) {
    const trine_point waits[] = {{timeline_, wait}}, signals[] = {{timeline_, signal}};
    trine_run_args args{};
    args.struct_size = sizeof(args);
    args.n_params = n_params;
    args.sync.point_stride = sizeof(trine_point);
    args.sync.n_waits = wait != 0 ? 1 : 0;
    args.sync.waits = waits;
    args.sync.n_signals = signal != 0 ? 1 : 0;
    args.sync.signals = signals;
    return table().plan_run(plan_, &args, nullptr);
  }

  void CloseAll() {
    table().plan_destroy(plan_);
    table().buffer_free(buffer_);
    table().timeline_destroy(timeline_);
    table().device_close(device_);
    table().close(backend_.handle);
    EXPECT_EQ(g_live.load(), 0);
    EXPECT_EQ(g_breaches.load(), 0);
  }

  std::unique_ptr<Injector> injector_;
  OpenedBackend backend_;
  trine_device* device_ = nullptr;
  trine_buffer* buffer_ = nullptr;
  trine_plan* plan_ = nullptr;
  trine_timeline* timeline_ = nullptr;
};

TEST_F(AbandonedTest, WorkOfALostDeviceIsAwaitedBeforeItsMemoryGoes) {
  Open("dgpu:lost@run=2");
  ASSERT_EQ(Run(0, 1), TRINE_OK);  // in flight
  EXPECT_EQ(Run(0, 0), TRINE_UNAVAILABLE);
  EXPECT_EQ(table().timeline_wait(timeline_, 1, UINT64_MAX, nullptr), TRINE_UNAVAILABLE);
  CloseAll();
  EXPECT_EQ(g_ran.load(), 1);
}

TEST_F(AbandonedTest, WorkThatWaitsForTheHostEndsWithTheDevice) {
  Open("dgpu:lost@run=2");
  ASSERT_EQ(Run(5, 6), TRINE_OK);  // 5 is never signalled
  EXPECT_EQ(Run(0, 0), TRINE_UNAVAILABLE);
  CloseAll();
  EXPECT_EQ(g_ran.load(), 0);
}

TEST_F(AbandonedTest, WorkBeforeARunThatHangsIsAwaited) {
  Open("dgpu:hang@run=2");
  ASSERT_EQ(Run(0, 1), TRINE_OK);
  ASSERT_EQ(Run(0, 2), TRINE_OK);
  EXPECT_EQ(table().timeline_wait(timeline_, 2, 1'000'000, nullptr), TRINE_DEADLINE_EXCEEDED);
  CloseAll();  // as a host that gives up the device
  EXPECT_EQ(g_ran.load(), 1);
}

TEST_F(AbandonedTest, WhatWasNotSubmittedIsNotAwaited) {
  Open("dgpu:lost@run=3");
  EXPECT_EQ(Run(0, 1, 7), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Run(0, 1, 7), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Run(0, 0), TRINE_UNAVAILABLE);
  CloseAll();
}

TEST_F(AbandonedTest, ManyRunsShareFences) {
  Open("dgpu:lost@run=100");
  for (uint64_t i = 1; i <= 8; ++i) {
    ASSERT_EQ(Run(0, i), TRINE_OK);
    ASSERT_EQ(table().timeline_wait(timeline_, i, UINT64_MAX, nullptr), TRINE_OK);
  }
  // Five handles from Open, and at most three fences: runs that are done, or nearly, share them.
  EXPECT_LE(g_live.load(), 5 + 3);
  CloseAll();
  EXPECT_EQ(g_ran.load(), 8);
}

TEST_F(AbandonedTest, WhatTheHostGaveUpGoesBackWithTheInjector) {
  Open("dgpu:hang@run=2");
  ASSERT_EQ(Run(0, 1), TRINE_OK);
  trine_status hung = TRINE_OK, waited = TRINE_OK;
  std::thread run([&] { hung = Run(0, 0); });
  std::thread wait([&] { waited = table().timeline_wait(timeline_, 9, UINT64_MAX, nullptr); });
  std::this_thread::sleep_for(milliseconds(20));
  injector_->Release();
  run.join();
  injector_.reset();  // frees all handles, since no call has
  wait.join();
  EXPECT_EQ(hung, TRINE_UNAVAILABLE);
  EXPECT_EQ(waited, TRINE_UNAVAILABLE);
  EXPECT_EQ(g_live.load(), 0);
  EXPECT_EQ(g_breaches.load(), 0);
}

TEST_F(AbandonedTest, ACopyFromALostPeerIsAborted) {
  Open("dgpu1:lost@alloc=2");
  trine_device* peer = nullptr;
  ASSERT_EQ(table().device_open(backend_.handle, 1, &peer, nullptr), TRINE_OK);
  trine_buffer* theirs = NewBuffer(peer);
  const trine_copy copy{{theirs, nullptr, 0}, {buffer_, nullptr, 0}, 64};
  trine_copy_args args{};
  args.struct_size = sizeof(args);
  args.n_copies = 1;
  args.copy_stride = sizeof(copy);
  args.copies = &copy;
  EXPECT_EQ(table().copy_run(device_, &args, nullptr), TRINE_OK);
  const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_IO, 64};
  trine_buffer* none = nullptr;
  EXPECT_EQ(table().buffer_alloc(peer, &desc, &none, nullptr), TRINE_UNAVAILABLE);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(table().copy_run(device_, &args, nullptr), TRINE_ABORTED);
  const trine_point signal{timeline_, 1};
  args.sync.point_stride = sizeof(signal);
  args.sync.n_signals = 1;
  args.sync.signals = &signal;
  EXPECT_EQ(table().copy_run(device_, &args, nullptr), TRINE_OK);
  EXPECT_EQ(table().timeline_wait(timeline_, 1, UINT64_MAX, nullptr), TRINE_ABORTED);
  EXPECT_EQ(Run(0, 0), TRINE_OK);  // this device still works
  table().buffer_free(theirs);
  table().device_close(peer);
  CloseAll();
}

}  // namespace
}  // namespace trine::fault
