// The tokens of a vocabulary: their texts, types and bytes, and the ids of texts. Owns copies of
// all texts. Immutable; any thread may use it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace trine {

// The alphabet of byte-level BPE vocabularies: one printable character for each of the 256 bytes (a
// space is U+0120, a newline U+010A). Returns the code point of each byte: the byte itself if it
// prints, otherwise the next unused one, beginning with U+0100.
constexpr std::array<uint16_t, 256> MakeByteAlphabet() {
  std::array<uint16_t, 256> alphabet{};
  uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
    alphabet[byte] = prints ? static_cast<uint16_t>(byte) : next++;
  }
  return alphabet;
}
inline constexpr std::array<uint16_t, 256> kByteAlphabet = MakeByteAlphabet();

// Appends `bytes` as characters of the alphabet.
void AppendAlphabet(std::string_view bytes, std::string* out);

// Appends the bytes of `text`. Stops and returns false at a character outside of the alphabet.
bool AppendAlphabetBytes(std::string_view text, std::string* out);

// U+2581, which SentencePiece writes for a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class Vocabulary {
 public:
  // REQUIRES: `data` has passed CheckTokenizerData; `types` come from ResolveTypes.
  Vocabulary(const TokenizerData& data, std::vector<TokenType> types);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t size() const { return static_cast<int32_t>(types_.size()); }
  bool Has(int32_t id) const { return id >= 0 && id < size(); }
  std::string_view Text(int32_t id) const { return texts_.Get(id); }
  TokenType Type(int32_t id) const { return types_[id]; }
  // Returns the bytes that the token stands for; "" for control, unknown and unused tokens.
  std::string_view Bytes(int32_t id) const { return bytes_.Get(id); }

  // Returns the lowest id with this text, of any type, or kNoToken.
  int32_t Find(std::string_view text) const;
  // Returns the lowest id of a token with this text that is neither special nor a byte token: the
  // encoder may use only these. `text` is in the encoder's form (byte alphabet or space marks).
  int32_t FindPiece(std::string_view text) const;
  // Returns the token of type kByte that stands for this byte, or kNoToken.
  int32_t ByteToken(uint8_t byte) const { return byte_tokens_[byte]; }

  size_t longest_piece_bytes() const { return longest_piece_bytes_; }

 private:
  // A list of strings, stored end to end.
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
  // Keys are views into texts_. Most texts are in `pieces_`; few are in `others_`.
  absl::flat_hash_map<std::string_view, int32_t> pieces_;
  absl::flat_hash_map<std::string_view, int32_t> others_;
  size_t longest_piece_bytes_ = 0;
};

// Returns the byte that a text such as <0x0A> names, or -1 for any other text.
int ParseByteToken(std::string_view text);

}  // namespace trine
