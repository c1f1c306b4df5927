// What becomes of a call before it reaches the plugin.
#ifndef TRINE_PLUGINS_FAULT_FATE_H_
#define TRINE_PLUGINS_FAULT_FATE_H_

#include "plugins/fault/faulty_handles.h"

namespace trine::fault {

// No status of the ABI's.
constexpr trine_status kNonsenseStatus = 1234;

// UNAVAILABLE, with the sentence why, where the context is lost; else OK.
trine_status CheckLost(FaultyDevice& device, trine_error* err);

// Tells whoever reads the host's log.
void Announce(FaultyDevice& device, const Strike& strike);

// Blocks as the fault says, after which the context is lost. `team`: the call is one of those that
// may use it.
void HangHere(FaultyDevice& device, const Strike& strike, bool team);

// Counts a call that is no submission and lets happen what is due: OK means go on. Garbage of
// other kinds than a status is left to the caller, which finds it in `strike`.
trine_status Meet(FaultyDevice& device, Moment moment, trine_error* err, Strike* strike = nullptr);

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_FATE_H_
