// The rules a tokenizer's data must keep before anything is built from it.
#ifndef TRINE_RUNTIME_TOKENIZER_TOKENIZER_CHECK_H_
#define TRINE_RUNTIME_TOKENIZER_TOKENIZER_CHECK_H_

#include "absl/status/status.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace trine {

// INVALID_ARGUMENT with what was found and what was expected: counts that differ, ids outside the
// vocabulary, scores that are no numbers, byte tokens that name no byte. Empty and repeated tokens
// and texts that aren't UTF-8 are allowed: the first of equals is encoded to, all are decoded.
absl::Status CheckTokenizerData(const TokenizerData& data);

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_TOKENIZER_CHECK_H_
