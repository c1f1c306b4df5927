// A made-up vocabulary of any size: every byte, words of letters in the order of their frequency in
// English, and the markers of a chat. Any text can be written with it.
#ifndef TRINE_RUNTIME_MAKE_MODEL_VOCABULARY_H_
#define TRINE_RUNTIME_MAKE_MODEL_VOCABULARY_H_

#include <cstdint>

#include "runtime/gguf/builder.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

int64_t MinVocabulary();
int64_t MaxVocabulary();

// Sets what tokenizers read: tokens, types, merges or scores, special tokens, the chat template.
void SetVocabulary(const ModelShape& shape, gguf::Builder* builder);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_VOCABULARY_H_
