// Token ids to text, one at a time, for streaming: what comes out is always whole UTF-8 characters.
// Bytes that can't be part of a character come out as U+FFFD, one for each longest beginning of a
// character (as browsers do). The pieces joined are the same however the ids are handed in.
// One thread at a time; holds the tokenizer alive.
#ifndef TRINE_RUNTIME_TOKENIZER_DETOKENIZER_H_
#define TRINE_RUNTIME_TOKENIZER_DETOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/tokenizer/tokenizer.h"

namespace trine {

struct DetokenizerOptions {
  SpecialText special = SpecialText::kHide;
  // The ids begin a text, so that the space a SentencePiece encoder put before it is taken away.
  // False for ids that go on from a prompt: " a" after "Once upon" keeps its space.
  bool at_start = false;
};

class Detokenizer {
 public:
  explicit Detokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                       const DetokenizerOptions& options = {});

  // The text that has become whole with this token, often empty. An id that isn't in the
  // vocabulary contributes nothing.
  std::string Push(int32_t id);
  // The same, appended: no allocation once `text` has room.
  void Push(int32_t id, std::string* text);

  // The sequence ends: U+FFFD for a character begun and not completed, else nothing. Then as new.
  std::string Flush();

  // Bytes held back until their character is whole: 0 to 3.
  size_t held_bytes() const { return held_.size(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  DetokenizerOptions options_;
  bool strip_space_;
  std::string held_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_DETOKENIZER_H_
