#include "runtime/tokenizer/byte_alphabet.h"

#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

constexpr int kAlphabetEnd = 0x100 + 68;  // 188 bytes print, 68 don't

constexpr std::array<int16_t, kAlphabetEnd> MakeByteOf() {
  std::array<int16_t, kAlphabetEnd> byte_of{};
  for (int16_t& byte : byte_of) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_of[kByteAlphabet[byte]] = static_cast<int16_t>(byte);
  }
  return byte_of;
}
constexpr std::array<int16_t, kAlphabetEnd> kByteOf = MakeByteOf();
static_assert(kByteAlphabet[' '] == 0x120 && kByteAlphabet[0xAD] == kAlphabetEnd - 1);

}  // namespace

void AppendAlphabet(std::string_view bytes, std::string* out) {
  for (const char byte : bytes) AppendUtf8(kByteAlphabet[static_cast<uint8_t>(byte)], out);
}

bool AppendAlphabetBytes(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    if (step.kind != Utf8Step::Kind::kCharacter || step.code_point >= kAlphabetEnd ||
        kByteOf[step.code_point] < 0) {
      return false;
    }
    out->push_back(static_cast<char>(kByteOf[step.code_point]));
    text.remove_prefix(step.bytes);
  }
  return true;
}

}  // namespace trine
