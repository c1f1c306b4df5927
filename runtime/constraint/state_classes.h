// Which states no token can tell apart. In a text of at most 1000 characters the states behind the
// 3rd and behind the 300th are such: what a token does there is worked out once for both.
#ifndef TRINE_RUNTIME_CONSTRAINT_STATE_CLASSES_H_
#define TRINE_RUNTIME_CONSTRAINT_STATE_CLASSES_H_

#include <cstdint>
#include <vector>

#include "runtime/constraint/automaton.h"

namespace trine::constraint {

// The class of each state, named by the least state in it. Two states of a class allow the same
// texts of up to `max_bytes` bytes before their rule is left, leave it at the same places in them,
// and each text changes their costs by as much.
std::vector<uint32_t> StateClasses(const Automaton& automaton, const std::vector<int64_t>& costs,
                                   int32_t max_bytes);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_STATE_CLASSES_H_
