#include "plugins/fault/fate.h"

#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "trine/sdk/status.h"

namespace trine::fault {
namespace {

struct TeamHang {
  HungCalls* calls;
  std::optional<std::chrono::milliseconds> limit;
};

// One worker hangs, the others go home: the caller waits for all.
void HangInTeam(void* arg, uint32_t worker, uint32_t workers) {
  const auto& hang = *static_cast<const TeamHang*>(arg);
  if (worker + 1 == workers) hang.calls->Hang(hang.limit);
}

}  // namespace

trine_status CheckLost(FaultyDevice& device, trine_error* err) {
  if (!device.lost.load()) return TRINE_OK;
  return sdk::Fail(err, TRINE_UNAVAILABLE, device.why);
}

void Announce(FaultyDevice& device, const Strike& strike) {
  const trine_host* host = device.backend->host;
  std::string text =
      absl::StrCat("injected fault on ", device.faults->name(), ": ", strike.fault->text);
  if (strike.fault->kind != strike.kind) absl::StrAppend(&text, " (", KindName(strike.kind), ")");
  if (host != nullptr && host->log != nullptr) {
    host->log(host->self, TRINE_LOG_WARNING, text.c_str());
  }
}

void HangHere(FaultyDevice& device, const Strike& strike, bool team) {
  HungCalls& calls = device.injector().hung_calls();
  std::optional<std::chrono::milliseconds> limit;
  if (strike.kind == Kind::kTimeout) limit = strike.fault->time;
  device.faults->SetGone(*strike.fault);
  device.hung.store(true);
  const trine_host* host = device.backend->host;
  TeamHang hang{&calls, limit};
  if (!team || !strike.fault->in_team ||
      host->parallel_run(host->self, HangInTeam, &hang) != TRINE_OK) {
    calls.Hang(limit);
  }
  device.Fail(absl::StrCat("injected fault '", strike.fault->text, "': the device is lost"));
}

trine_status Meet(FaultyDevice& device, Moment moment, trine_error* err, Strike* out) {
  if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
  const Strike strike = device.faults->Count(moment);
  if (out != nullptr) *out = strike;
  if (strike.slow.count() != 0) std::this_thread::sleep_for(strike.slow);
  if (strike.fault == nullptr) return TRINE_OK;
  Announce(device, strike);
  switch (strike.kind) {
    case Kind::kOom:
      return sdk::Fail(err, TRINE_RESOURCE_EXHAUSTED,
                       absl::StrCat("injected fault '", strike.fault->text, "': out of memory"));
    case Kind::kLost:
      device.injector().Lose(&device, *strike.fault);
      return CheckLost(device, err);
    case Kind::kHang:
    case Kind::kTimeout:
      HangHere(device, strike, moment == Moment::kPlan);
      return CheckLost(device, err);
    case Kind::kGarbage:
      return strike.fault->junk == Junk::kStatus ? kNonsenseStatus : TRINE_OK;
    default:
      return TRINE_OK;
  }
}

}  // namespace trine::fault
