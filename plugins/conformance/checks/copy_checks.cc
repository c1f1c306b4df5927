// Section copies: copy_run between buffers and host memory.
#include "absl/strings/str_cat.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

constexpr uint64_t kBytes = 10000;

Bytes Counting(size_t n, unsigned first) {
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(first + 7 * i);
  return bytes;
}

struct Pair {
  BufferPtr a, b;
  Bytes a_bytes = Counting(kBytes, 1), b_bytes = Counting(kBytes, 90);

  bool Make(Trial& trial, Session& s) {
    a = s.Alloc(trial, kBytes, TRINE_MEMORY_STATE);
    b = s.Alloc(trial, kBytes, TRINE_MEMORY_IO);
    return a != nullptr && b != nullptr &&
           trial.ExpectOk(s.Write(trial, a.get(), 0, a_bytes.data(), kBytes), "buffer_write") &&
           trial.ExpectOk(s.Write(trial, b.get(), 0, b_bytes.data(), kBytes), "buffer_write");
  }
  void ExpectHeld(Trial& trial, Session& s, const std::string& when) const {
    for (const auto& [buffer, bytes] :
         {std::pair(a.get(), &a_bytes), std::pair(b.get(), &b_bytes)}) {
      Bytes got(kBytes);
      trial.ExpectOk(s.Read(trial, buffer, 0, got.data(), kBytes), "buffer_read");
      trial.Expect(got == *bytes, absl::StrCat("a buffer holds the wrong bytes ", when));
    }
  }
};

void CheckCopies(Trial& trial, Session& s, size_t padding) {
  Pair pair;
  if (!pair.Make(trial, s)) return;
  const Bytes source = Counting(777, 33);
  Bytes target(500, kGarbage);
  const std::vector<trine_copy> copies = {
      {{pair.a.get(), nullptr, 100}, {pair.b.get(), nullptr, 4001}, 3000},
      {{nullptr, const_cast<std::byte*>(source.data()), 0}, {pair.b.get(), nullptr, 3}, 777},
      {{pair.a.get(), nullptr, kBytes - 500}, {nullptr, target.data(), 0}, 500},
  };
  if (!trial.ExpectOk(Copy(trial, s, copies, {}, padding), "copy_run")) return;
  std::copy_n(pair.a_bytes.begin() + 100, 3000, pair.b_bytes.begin() + 4001);
  std::copy_n(source.begin(), 777, pair.b_bytes.begin() + 3);
  pair.ExpectHeld(trial, s, "after copy_run");
  trial.Expect(std::equal(target.begin(), target.end(), pair.a_bytes.end() - 500),
               "copy_run to host memory brought the wrong bytes");
  trial.Expect(source == Counting(777, 33), "copy_run wrote to its source");
}

void CheckCopyBounds(Trial& trial, Session& s) {
  Pair pair;
  if (!pair.Make(trial, s)) return;
  Bytes host(64);
  const trine_copy_end good_host = {nullptr, host.data(), 0};
  const std::pair<const char*, trine_copy> wrong[] = {
      {"source behind its end", {{pair.a.get(), nullptr, kBytes - 10}, good_host, 11}},
      {"destination behind its end", {good_host, {pair.a.get(), nullptr, kBytes}, 1}},
      {"overflowing offset", {{pair.a.get(), nullptr, UINT64_MAX - 3}, good_host, 8}},
      {"overflowing size",
       {{pair.a.get(), nullptr, 0}, {pair.b.get(), nullptr, 0}, UINT64_MAX - 1}},
      {"an end that is nothing", {{nullptr, nullptr, 0}, {pair.b.get(), nullptr, 0}, 8}},
  };
  for (const auto& [what, copy] : wrong) {
    trial.ExpectRefused(Copy(trial, s, {copy}), absl::StrCat("copy_run with ", what),
                        {TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
    if (trial.failed()) return;
  }
  pair.ExpectHeld(trial, s, "after refused copies");
}

void CheckCopySync(Trial& trial, Session& s) {
  Pair pair;
  if (!pair.Make(trial, s)) return;
  const TimelinePtr timeline = s.NewTimeline(trial, 5);
  if (timeline == nullptr) return;
  const trine_point wait{timeline.get(), 5}, signal{timeline.get(), 6};
  trine_sync sync{1, 1, 0, 0, &wait, &signal};
  const trine_copy copy{{pair.a.get(), nullptr, 0}, {pair.b.get(), nullptr, 0}, 4096};
  if (!trial.ExpectOk(Copy(trial, s, {copy}, sync), "copy_run")) return;
  trial.ExpectOk(s.Wait(trial, timeline.get(), 6, 10'000'000'000u),
                 "waiting for the point copy_run was to signal");
  std::copy_n(pair.a_bytes.begin(), 4096, pair.b_bytes.begin());
  pair.ExpectHeld(trial, s, "once copy_run's point was reached");
}

// Copies to a buffer of another device and back again, both by copy_run of this device.
void CheckBetween(Trial& trial, Session& s, trine_device* other) {
  Pair pair;
  if (!pair.Make(trial, s)) return;
  trine_buffer* made = nullptr;
  const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, kBytes};
  const Answer answer =
      s.Call(trial, "buffer_alloc", &trine_plugin::buffer_alloc, other, &desc, &made);
  if (!trial.ExpectOk(answer, "buffer_alloc on another device")) return;
  const BufferPtr there = s.Own(made);
  const std::vector<trine_copy> out = {
      {{pair.a.get(), nullptr, 100}, {there.get(), nullptr, 7}, 6000}};
  const std::vector<trine_copy> back = {
      {{there.get(), nullptr, 7}, {pair.b.get(), nullptr, 2000}, 6000}};
  if (!trial.ExpectOk(Copy(trial, s, out), "copy_run to another device's buffer")) return;
  if (!trial.ExpectOk(Copy(trial, s, back), "copy_run from another device's buffer")) return;
  std::copy_n(pair.a_bytes.begin() + 100, 6000, pair.b_bytes.begin() + 2000);
  pair.ExpectHeld(trial, s, "after copies to another device and back");
  const trine_copy beyond{{pair.a.get(), nullptr, 0}, {there.get(), nullptr, kBytes - 9}, 10};
  trial.ExpectRefused(Copy(trial, s, {beyond}), "copy_run beyond another device's buffer",
                      {TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
}

// Copies to and from every device, also a second context of this one.
void CheckPeers(Trial& trial, Session& s) {
  if ((s.info().flags & TRINE_DEVICE_PEER_COPIES) == 0) {
    return trial.Skip("device_info does not offer copies between devices");
  }
  for (uint32_t i = 0; i < s.table().device_count(s.backend()) && !trial.failed(); ++i) {
    trine_device_info info{};
    info.struct_size = sizeof(info);
    const Answer told =
        s.Call(trial, "device_info", &trine_plugin::device_info, s.backend(), i, &info);
    if (!told.Ok() || (info.flags & TRINE_DEVICE_UNUSABLE) != 0) continue;
    trine_device* other = nullptr;
    const Answer opened =
        s.Call(trial, "device_open", &trine_plugin::device_open, s.backend(), i, &other);
    if (!trial.ExpectOk(opened, absl::StrCat("opening device ", i))) return;
    CheckBetween(trial, s, other);
    s.table().device_close(other);
  }
}

}  // namespace

void RunCopyChecks(Bench& bench) {
  bench.Run("copies/content", [](Trial& trial, Session& s) { CheckCopies(trial, s, 0); });
  bench.Run("copies/longer-elements", [](Trial& trial, Session& s) { CheckCopies(trial, s, 24); });
  bench.Run("copies/bounds", CheckCopyBounds);
  bench.Run("copies/sync", CheckCopySync);
  bench.Run("copies/peers", CheckPeers);
}

}  // namespace trine::conformance
