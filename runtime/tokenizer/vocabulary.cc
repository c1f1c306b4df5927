#include "runtime/tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

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

std::string WithSpaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t mark; (mark = text.find(kSpaceMark)) != text.npos;) {
    out.append(text.substr(0, mark)).push_back(' ');
    text.remove_prefix(mark + kSpaceMark.size());
  }
  out.append(text);
  return out;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

int32_t FindIn(const absl::flat_hash_map<std::string_view, int32_t>& map, std::string_view text) {
  const auto it = map.find(text);
  return it == map.end() ? kNoToken : it->second;
}

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

int ParseByteToken(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  const int high = HexDigit(text[3]), low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Vocabulary::Vocabulary(const TokenizerData& data, std::vector<TokenType> types)
    : types_(std::move(types)) {
  size_t chars = 0;
  for (const std::string_view text : data.tokens) chars += text.size();
  texts_.Reserve(data.tokens.size(), chars);
  bytes_.Reserve(data.tokens.size(), chars);
  for (const std::string_view text : data.tokens) texts_.Add(text);

  byte_tokens_.fill(kNoToken);
  pieces_.reserve(data.tokens.size());
  for (int32_t id = 0; id < size(); ++id) {
    const std::string_view text = Text(id);
    if (AddBytes(data.model, types_[id], text)) {
      pieces_.try_emplace(text, id);
      longest_piece_bytes_ = std::max(longest_piece_bytes_, text.size());
    } else {
      others_.try_emplace(text, id);
    }
    const int byte = types_[id] == TokenType::kByte ? ParseByteToken(text) : -1;
    if (byte >= 0 && byte_tokens_[byte] == kNoToken) byte_tokens_[byte] = id;
  }
}

// Adds the bytes of the next token. Returns whether text may be encoded to it.
bool Vocabulary::AddBytes(TokenizerModel model, TokenType type, std::string_view text) {
  switch (type) {
    case TokenType::kUnknown:
    case TokenType::kControl:
    case TokenType::kUnused:
      bytes_.Add("");
      return false;
    case TokenType::kByte: {
      const char byte = static_cast<char>(ParseByteToken(text));
      bytes_.Add(std::string_view(&byte, 1));
      return false;
    }
    case TokenType::kUserDefined:
    case TokenType::kUndefined:
    case TokenType::kNormal:
      break;
  }
  std::string bytes;
  bool readable = true;
  if (model == TokenizerModel::kSentencePiece) {
    bytes = WithSpaces(text);
  } else if (!AppendAlphabetBytes(text, &bytes)) {
    bytes = text;
    readable = false;
  }
  // A user-defined token is searched for in the plain text, before any encoding.
  if (type == TokenType::kUserDefined) {
    readable = readable && bytes == text;
    bytes = text;
  }
  bytes_.Add(bytes);
  return readable && !text.empty();
}

int32_t Vocabulary::Find(std::string_view text) const {
  const int32_t piece = FindIn(pieces_, text), other = FindIn(others_, text);
  if (piece == kNoToken || other == kNoToken) return std::max(piece, other);
  return std::min(piece, other);
}

int32_t Vocabulary::FindPiece(std::string_view text) const { return FindIn(pieces_, text); }

}  // namespace trine
