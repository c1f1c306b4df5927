// The alphabet in which byte-level BPE vocabularies are written: one printable character for each
// of the 256 bytes (a space is U+0120, a newline U+010A). Pure functions; any thread.
#ifndef TRINE_RUNTIME_TOKENIZER_BYTE_ALPHABET_H_
#define TRINE_RUNTIME_TOKENIZER_BYTE_ALPHABET_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trine {

// The code point that stands for each byte: itself where it prints, else the next from U+0100 on.
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

// Appends the bytes that `text` stands for. False, with what could be read appended, when a
// character of it is not in the alphabet.
bool AppendAlphabetBytes(std::string_view text, std::string* out);

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKENIZER_BYTE_ALPHABET_H_
