// How values are written as JSON: every character of a string in one way, and at most one space
// behind ':' and ','.
#ifndef TRINE_RUNTIME_CONSTRAINT_JSON_TEXT_H_
#define TRINE_RUNTIME_CONSTRAINT_JSON_TEXT_H_

#include "runtime/constraint/char_dfa.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

// A character of a string, as it is or, where JSON asks for that, escaped.
ExprPtr JsonCharacter(const CodePointSet& set);
// A string, with its quotes, of min to max characters.
ExprPtr JsonString(int64_t min, int64_t max);
// One that the automaton accepts.
ExprPtr JsonString(const CharDfa& dfa);
ExprPtr JsonComma();
ExprPtr JsonColon();

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_JSON_TEXT_H_
