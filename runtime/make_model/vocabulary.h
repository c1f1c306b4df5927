// Makes up a vocabulary of any size: every byte, words of letters in the order of their frequency
// in English, and the markers of a chat. It can express any text.
#pragma once

#include <cstdint>

#include "runtime/gguf/builder.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

// The fewest tokens: <unk>, <s>, </s>, the bytes, a space and the letters, and three markers.
// SentencePiece needs them all, byte-level BPE fewer.
inline constexpr int64_t kMinVocabulary = 3 + 256 + 27 + 3;
inline constexpr int64_t kMaxVocabulary = 1 << 20;

// Sets the keys that tokenizers read: tokens, types, merges or scores, special tokens, and the chat
// template.
void SetVocabulary(const ModelShape& shape, gguf::Builder* builder);

}  // namespace trine
