// Tests several devices: each by itself, one lost while others go on, and copies between them.
#include "tests/hip_plugin/plugin_fixture.h"

namespace trine::hip {
namespace {

using emulator::Call;
using emulator::Peers;
using ::testing::HasSubstr;
using ::testing::Not;

class HipDevicesTest : public PluginFixture {
 protected:
  static constexpr uint64_t kBytes = (20 << 20) + 36;  // several pieces, and a part of one

  trine_status Copy(trine_device* device, trine_buffer* from, trine_buffer* to, uint64_t bytes) {
    const trine_copy copy{{from, nullptr, 0}, {to, nullptr, 0}, bytes};
    const trine_copy_args args{sizeof(args), 1, sizeof(copy), 0, &copy, {}};
    return status_ = Table().copy_run(device, &args, &err_);
  }
  Bytes Read(trine_buffer* buffer, uint64_t bytes) {
    Bytes content(bytes);
    status_ = Table().buffer_read(buffer, 0, content.data(), bytes, &err_);
    return content;
  }
  void Write(trine_buffer* buffer, const Bytes& content) {
    status_ = Table().buffer_write(buffer, 0, content.data(), content.size(), &err_);
  }
};

TEST_F(HipDevicesTest, EachIsAPlaceOfItsOwn) {
  const auto backend = Backend("devices=3;memory=1000000000");
  ASSERT_EQ(backend->found.devices.size(), 3u);
  const auto first = Device(backend.get(), 0), third = Device(backend.get(), 2);
  const uint64_t before = DescribeDevice(backend.get(), 2).memory_free;
  const BufferPtr buffer = Alloc(third.get(), 600'000'000);
  ASSERT_EQ(status_, TRINE_OK);
  EXPECT_EQ(Alloc(third.get(), 600'000'000), nullptr);
  EXPECT_EQ(status_, TRINE_RESOURCE_EXHAUSTED);
  EXPECT_NE(Alloc(first.get(), 600'000'000), nullptr) << err_.message;
  const trine_device_info info = DescribeDevice(backend.get(), 2);
  EXPECT_EQ(info.memory_total, 1'000'000'000u);
  EXPECT_EQ(info.memory_free, before - 600'000'000);
  EXPECT_EQ(DescribeDevice(backend.get(), 1).memory_free, before);
  EXPECT_STRNE(info.memory_pool, DescribeDevice(backend.get(), 1).memory_pool);
  EXPECT_STRNE(info.bandwidth_domain, DescribeDevice(backend.get(), 1).bandwidth_domain);
}

TEST_F(HipDevicesTest, OneIsLostAndOthersGoOn) {
  const auto backend = Backend("devices=3");
  const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
  const BufferPtr a = Alloc(first.get(), 64), b = Alloc(second.get(), 64);
  emulator::DeviceSettings settings;
  settings.devices = 3;
  settings.failing = Call::kCopy;
  settings.failing_device = 1;
  emulator::Reset(settings);
  const Bytes content = Noise(64, 1);
  Write(b.get(), content);
  EXPECT_EQ(status_, TRINE_UNAVAILABLE);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Alloc(second.get(), 64), nullptr);
    EXPECT_EQ(status_, TRINE_UNAVAILABLE) << "from then on, in every call";
    Write(a.get(), content);
    EXPECT_EQ(status_, TRINE_OK) << err_.message;
    EXPECT_EQ(Read(a.get(), 64), content);
  }
  EXPECT_NE(Device(backend.get(), 2), nullptr) << "one that was not open yet";
  // Copies with the lost device fail, and the other device is unharmed.
  for (const auto& [from, to] : {std::pair(a.get(), b.get()), std::pair(b.get(), a.get())}) {
    EXPECT_EQ(Copy(first.get(), from, to, 64), TRINE_ABORTED);
    EXPECT_THAT(err_.message, HasSubstr("the other device is lost"));
    EXPECT_EQ(Copy(second.get(), from, to, 64), TRINE_UNAVAILABLE);
  }
  EXPECT_TRUE(first->Health().ok());
}

TEST_F(HipDevicesTest, CopyToEachOtherWhateverThePairIsWorth) {
  const Bytes content = Noise(kBytes, 7);
  for (const char* peers : {"good", "none", "lying"}) {
    log_.clear();
    const auto backend = Backend(std::string("devices=2;peers=") + peers);
    const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
    const BufferPtr a = Alloc(first.get(), kBytes), b = Alloc(second.get(), kBytes),
                    io = Alloc(second.get(), kBytes, TRINE_MEMORY_IO);
    Write(a.get(), content);
    for (const trine_device* asked : {first.get(), second.get()}) {
      Write(b.get(), Noise(kBytes, 8));
      ASSERT_EQ(Copy(const_cast<trine_device*>(asked), a.get(), b.get(), kBytes), TRINE_OK)
          << err_.message;
      EXPECT_EQ(Read(b.get(), kBytes), content) << peers;
      Write(a.get(), Noise(kBytes, 9));
      ASSERT_EQ(Copy(const_cast<trine_device*>(asked), b.get(), a.get(), kBytes), TRINE_OK);
      EXPECT_EQ(Read(a.get(), kBytes), content) << peers;
    }
    ASSERT_EQ(Copy(first.get(), a.get(), io.get(), kBytes), TRINE_OK) << "the host's memory";
    EXPECT_EQ(Read(io.get(), kBytes), content);
  }
}

TEST_F(HipDevicesTest, SayWhyAPairGoesThroughTheHost) {
  struct Case {
    const char *options, *sentence;
  };
  for (const Case& c : {
           Case{"peers=good", "copies from device 0 to device 1 go directly"},
           Case{"peers=none",
                "copies from device 0 to device 1 go through the host: one has no access"},
           Case{"peers=lying",
                "copies from device 0 to device 1 go through the host: byte 2097186 of 4194372"},
           Case{"fail=peer:1", "through the host: it fails: a kernel failed"},
           Case{"memory=30000000", "through the host: they could not be tried"},
       }) {
    log_.clear();
    const auto backend = Backend(std::string("devices=2;") + c.options);
    const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
    const BufferPtr a = Alloc(first.get(), 28'000'000), b = Alloc(second.get(), 100);
    (void)Copy(second.get(), a.get(), b.get(), 100);
    EXPECT_THAT(log_, HasSubstr(c.sentence));
  }
}

// A pair that copied wrongly in its test is never used for direct copies.
TEST_F(HipDevicesTest, APairThatFailedItsTestIsNotUsed) {
  const auto backend = Backend("devices=2;peers=lying");
  const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
  const BufferPtr a = Alloc(first.get(), 1000), b = Alloc(second.get(), 1000);
  const Bytes content = Noise(1000, 3);
  Write(a.get(), content);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Copy(first.get(), a.get(), b.get(), 1000), TRINE_OK);
    EXPECT_EQ(Read(b.get(), 1000), content);
  }
  EXPECT_EQ(log_.find("through the host"), log_.rfind("through the host")) << "told once";
}

TEST_F(HipDevicesTest, APairIsTriedOnceAndLeavesNothingBehind) {
  const auto backend = Backend("devices=2");
  const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
  const BufferPtr a = Alloc(first.get(), 1000), b = Alloc(second.get(), 1000);
  const uint64_t free[] = {MemoryOf(0).available, MemoryOf(1).available};
  ASSERT_EQ(Copy(first.get(), a.get(), b.get(), 1000), TRINE_OK);
  emulator::StartTrace();
  ASSERT_EQ(Copy(first.get(), a.get(), b.get(), 1000), TRINE_OK);
  EXPECT_EQ(emulator::TakeTrace().size(), 1u) << "one copy, straight";
  EXPECT_EQ(MemoryOf(0).available, free[0]);
  EXPECT_EQ(MemoryOf(1).available, free[1]);
}

// A source that fails during a copy does not make the target lost.
TEST_F(HipDevicesTest, AFaultBetweenDevicesIsLaidWhereItBelongs) {
  for (const uint32_t failing : {0u, 1u}) {
    const auto backend = Backend("devices=2");
    const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
    const BufferPtr a = Alloc(first.get(), 1000), b = Alloc(second.get(), 1000);
    ASSERT_EQ(Copy(second.get(), a.get(), b.get(), 1000), TRINE_OK);
    emulator::DeviceSettings settings;
    settings.devices = 2;
    settings.failing = Call::kPeer;
    settings.failing_device = failing;
    emulator::Reset(settings);
    EXPECT_EQ(Copy(second.get(), a.get(), b.get(), 1000),
              failing == 0 ? TRINE_ABORTED : TRINE_UNAVAILABLE)
        << err_.message;
    EXPECT_TRUE(absl::IsUnavailable((failing == 0 ? first : second)->Health()));
    EXPECT_TRUE((failing == 0 ? second : first)->Health().ok());
  }
}

TEST_F(HipDevicesTest, OneEndOfACopyIsTheDevicesOwn) {
  const auto backend = Backend("devices=3"), another = Backend("devices=3");
  const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1),
             foreign = Device(another.get(), 1);
  const BufferPtr a = Alloc(first.get(), 64), b = Alloc(second.get(), 64),
                  c = Alloc(second.get(), 64), f = Alloc(foreign.get(), 64);
  EXPECT_EQ(Copy(first.get(), b.get(), c.get(), 64), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("no end in a buffer of this device's"));
  EXPECT_EQ(Copy(first.get(), a.get(), f.get(), 64), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Copy(first.get(), a.get(), b.get(), 65), TRINE_INVALID_ARGUMENT);
  std::byte memory[64];
  const trine_copy copy{{nullptr, memory, 0}, {b.get(), nullptr, 0}, 64};
  const trine_copy_args args{sizeof(args), 1, sizeof(copy), 0, &copy, {}};
  EXPECT_EQ(Table().copy_run(first.get(), &args, &err_), TRINE_INVALID_ARGUMENT);
}

// ---- Which devices count -----------------------------------------------------------------------

// Copies that only wait for a run's point see what it wrote, over any stream and by the host.
TEST_F(HipDevicesTest, CopiesComeBehindTheRunTheyWaitFor) {
  constexpr int64_t kValues = 1 << 16;
  const Bytes content = Noise(kValues * 4, 11);
  sdk::GraphBuilder builder;
  const uint32_t from = builder.Tensor(TRINE_DTYPE_F32, {kValues}, TRINE_ROLE_STATE);
  const uint32_t to = builder.Tensor(TRINE_DTYPE_F32, {kValues}, TRINE_ROLE_STATE);
  const uint32_t out = builder.Tensor(TRINE_DTYPE_F32, {kValues}, TRINE_ROLE_IO);
  builder.Op(TRINE_OP_COPY, {from}, {to});
  builder.Op(TRINE_OP_COPY, {from}, {out});
  for (const char* options : {"peers=good", "peers=none"}) {
    for (const char* pace : {"newest", "oldest", "random"}) {
      const auto backend =
          Backend(std::string("devices=2;") + options + ";pace=" + std::string(pace));
      const auto first = Device(backend.get(), 0), second = Device(backend.get(), 1);
      BoundPlan plan(first.get(), builder, {}, Keep::kDevice);
      ASSERT_EQ(plan.status, TRINE_OK) << plan.error.message;
      plan.Write(builder.tensors[from].slot, content);
      const BufferPtr there = Alloc(second.get(), content.size());
      const BufferPtr there_io = Alloc(second.get(), content.size(), TRINE_MEMORY_IO);
      Bytes host(content.size());
      trine_buffer* const state = plan.buffer(builder.tensors[to].slot);
      trine_buffer* const io = plan.buffer(builder.tensors[out].slot);
      // The pair is tried before, as that waits for everything.
      ASSERT_EQ(Copy(first.get(), state, there.get(), 4), TRINE_OK);
      const trine_copy copies[] = {{{state, nullptr, 0}, {there.get(), nullptr, 0}, content.size()},
                                   {{io, nullptr, 0}, {there_io.get(), nullptr, 0}, content.size()},
                                   {{io, nullptr, 0}, {nullptr, host.data(), 0}, content.size()}};
      for (const trine_copy& copy : copies) {
        plan.Write(builder.tensors[to].slot, Noise(content.size(), 12));
        plan.Write(builder.tensors[out].slot, Noise(content.size(), 13));
        trine_timeline timeline(0);
        const trine_point points[] = {{&timeline, 1}, {&timeline, 2}};
        ASSERT_EQ(plan.Run({}, {0, 1, 0, 0, nullptr, &points[0]}), TRINE_OK);
        const trine_copy_args args{
            sizeof(args), 1,
            sizeof(copy), 0,
            &copy,        {1, 1, sizeof(trine_point), 0, &points[0], &points[1]}};
        ASSERT_EQ(Table().copy_run(first.get(), &args, &err_), TRINE_OK) << err_.message;
        ASSERT_EQ(timeline.Wait(2, 20'000'000'000, &err_), TRINE_OK) << err_.message;
      }
      EXPECT_EQ(Read(there.get(), content.size()), content) << options << " " << pace;
      EXPECT_EQ(Read(there_io.get(), content.size()), content) << options << " " << pace;
      EXPECT_EQ(host, content) << options << " " << pace;
    }
  }
}

TEST_F(HipDevicesTest, IntegratedOnesAreTheVulkanBackends) {
  const auto backend = Backend("integrated=1");
  trine_device_info info = DescribeDevice(backend.get(), 0);
  EXPECT_EQ(info.tier, uint32_t{TRINE_TIER_IGPU});
  EXPECT_NE(info.flags & TRINE_DEVICE_UNUSABLE, 0u);
  EXPECT_THAT(info.reason, HasSubstr("integrated: the vulkan backend serves it"));
  EXPECT_EQ(MakeDevice(backend.get(), 0).status().code(), absl::StatusCode::kFailedPrecondition);
  setenv("TRINE_HIP_ALLOW_INTEGRATED", "1", 1);
  info = DescribeDevice(Backend("integrated=1").get(), 0);
  unsetenv("TRINE_HIP_ALLOW_INTEGRATED");
  EXPECT_EQ(info.flags & TRINE_DEVICE_UNUSABLE, 0u);
  EXPECT_NE(info.flags & TRINE_DEVICE_UNIFIED_MEMORY, 0u);
  EXPECT_STREQ(info.memory_pool, "system") << "RAM is not counted twice";
  EXPECT_STREQ(info.bandwidth_domain, "system");
  EXPECT_EQ(info.import_alignment, 0u);
  EXPECT_EQ(info.imports, 0u);
  EXPECT_STREQ(info.import_refusal, "");
}

TEST_F(HipDevicesTest, OnesWithoutCodeAreRefusedBeforeTheyAreUsed) {
  const auto backend = Backend("code=0");
  const trine_device_info info = DescribeDevice(backend.get(), 0);
  EXPECT_NE(info.flags & TRINE_DEVICE_UNUSABLE, 0u);
  EXPECT_STREQ(info.reason, "this build has no code for host");
  EXPECT_EQ(MakeDevice(backend.get(), 0).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(emulator::PeakBytes(0), 0u) << "nothing was run on it";
}

// The emulator returns a count along with its error, as some runtimes do.
TEST_F(HipDevicesTest, ACountWithAnErrorIsNoDevice) {
  const auto backend = Backend("devices=0");
  EXPECT_TRUE(backend->found.devices.empty());
  EXPECT_THAT(log_, HasSubstr("hip: no device: no device"));
}

TEST_F(HipDevicesTest, ALostOneReportsNoMemory) {
  const auto backend = Backend("");
  const auto device = Device(backend.get(), 0);
  EXPECT_EQ(DescribeDevice(backend.get(), 0).memory_total, uint64_t{1} << 36);
  emulator::DeviceSettings settings;
  settings.failing = Call::kSynchronize;
  emulator::Reset(settings);
  const BufferPtr a = Alloc(device.get(), 64);
  (void)Copy(device.get(), a.get(), a.get(), 32);
  EXPECT_TRUE(absl::IsUnavailable(device->Health()));
  EXPECT_EQ(DescribeDevice(backend.get(), 0).memory_total, 0u) << "nobody can say";
  EXPECT_EQ(DescribeDevice(backend.get(), 0).memory_free, 0u);
}

// A device whose opening fails half-way is refused, and can be opened later.
TEST_F(HipDevicesTest, FaultsOfOpeningAreStatuses) {
  for (const Call call : {Call::kStream, Call::kHostMalloc, Call::kEvent}) {
    for (const uint64_t from : {1, 2}) {
      const auto backend = Backend("");
      emulator::DeviceSettings settings;
      settings.failing = call;
      settings.failing_from = from;
      emulator::Reset(settings);
      const auto device = MakeDevice(backend.get(), 0);
      if (device.ok()) {
        EXPECT_TRUE(call == Call::kStream && from == 2) << "it makes one";
        continue;
      }
      EXPECT_EQ(device.status().code(), call == Call::kHostMalloc
                                            ? absl::StatusCode::kResourceExhausted
                                            : absl::StatusCode::kUnavailable);
      emulator::Reset({});
      EXPECT_TRUE(MakeDevice(backend.get(), 0).ok());
    }
  }
}

}  // namespace
}  // namespace trine::hip
