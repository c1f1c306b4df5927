// The tokens of a vocabulary: their texts, types and the bytes they stand for, and the way back
// from a text to its id. Owns copies of all texts. Immutable; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_VOCABULARY_H_
#define TRINE_RUNTIME_TOKENIZER_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace trine {

// U+2581, by which SentencePiece writes a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class Vocabulary {
 public:
  // `data` has passed CheckTokenizerData; `types` are its types as corrected by ResolveTypes.
  Vocabulary(const TokenizerData& data, std::vector<TokenType> types);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t size() const { return static_cast<int32_t>(types_.size()); }
  bool Has(int32_t id) const { return id >= 0 && id < size(); }
  std::string_view Text(int32_t id) const { return texts_.Get(id); }
  TokenType Type(int32_t id) const { return types_[id]; }
  // What the token stands for; nothing for control, unknown and unused ones.
  std::string_view Bytes(int32_t id) const { return bytes_.Get(id); }

  // The lowest id with this text, of any type.
  int32_t Find(std::string_view text) const;
  // The lowest id that text may be encoded to: its bytes are the text's, and it is neither special
  // nor a byte token. A text of the encoder's kind: byte alphabet or space marks.
  int32_t FindPiece(std::string_view text) const;
  // The token of type byte for this byte.
  int32_t ByteToken(uint8_t byte) const { return byte_tokens_[byte]; }

  size_t longest_piece_bytes() const { return longest_piece_bytes_; }

 private:
  // Strings end to end.
  class Strings {
   public:
    void Add(std::string_view text) {
      chars_.append(text);
      ends_.push_back(chars_.size());
    }
    std::string_view Get(int32_t i) const {
      const size_t begin = i == 0 ? 0 : ends_[i - 1];
      return std::string_view(chars_).substr(begin, ends_[i] - begin);
    }
    void Reserve(size_t strings, size_t chars) {
      chars_.reserve(chars);
      ends_.reserve(strings);
    }

   private:
    std::string chars_;
    std::vector<size_t> ends_;
  };

  bool AddBytes(TokenizerModel model, TokenType type, std::string_view text);

  Strings texts_;
  Strings bytes_;
  std::vector<TokenType> types_;
  std::array<int32_t, 256> byte_tokens_;
  // Keyed by views into texts_. Most texts are in `pieces_`; the rest are few.
  absl::flat_hash_map<std::string_view, int32_t> pieces_;
  absl::flat_hash_map<std::string_view, int32_t> others_;
  size_t longest_piece_bytes_ = 0;
};

// The byte that a text such as <0x0A> names; -1 for any other text.
int ParseByteToken(std::string_view text);

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_VOCABULARY_H_
