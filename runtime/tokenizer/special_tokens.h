// Which tokens of a vocabulary are more than text: what the file's types say, corrected where files
// are known to be wrong, and the tokens that end a generation.
#ifndef TRINE_RUNTIME_TOKENIZER_SPECIAL_TOKENS_H_
#define TRINE_RUNTIME_TOKENIZER_SPECIAL_TOKENS_H_

#include <cstdint>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {

// The type of every token. A file without types has normal tokens, but for <0xNN> in a
// SentencePiece vocabulary and the ids the file names. A well-known end marker such as <|im_end|>
// is a control token even where the file calls it text: else chats would never end, and users could
// forge turns.
std::vector<TokenType> ResolveTypes(const TokenizerData& data);

struct EndTokens {
  int32_t eot = kNoToken;  // the file's, or the first known text
  int32_t eom = kNoToken;
  std::vector<int32_t> all;  // ascending, EOS among them
};
EndTokens FindEndTokens(const TokenizerData& data, const Vocabulary& vocabulary);

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_SPECIAL_TOKENS_H_
