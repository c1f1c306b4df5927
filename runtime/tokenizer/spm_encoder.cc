#include "runtime/tokenizer/spm_encoder.h"

#include <algorithm>
#include <string>

#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

// Where a space mark follows something else, at `from` or after; text.size() when nowhere.
size_t FindWordEnd(std::string_view text, size_t from) {
  size_t at = from;
  while (text.substr(at, kSpaceMark.size()) == kSpaceMark) at += kSpaceMark.size();
  return std::min(text.find(kSpaceMark, at), text.size());
}

std::string WithSpaceMarks(std::string_view text, bool space_prefix) {
  std::string out;
  out.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
  if (space_prefix) out += kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

SpmEncoder::SpmEncoder(const TokenizerData& data, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), unk_(data.unk), scores_(data.scores) {
  scores_.resize(data.tokens.size());
  for (const std::string_view text : data.tokens) {
    const int32_t id = vocabulary.FindPiece(text);
    if (id != kNoToken && FindWordEnd(text, 0) != text.size()) words_are_apart_ = false;
  }
}

void SpmEncoder::Encode(std::string_view text, bool space_prefix, std::vector<int32_t>* ids) const {
  if (text.empty()) return;
  const std::string marked = WithSpaceMarks(text, space_prefix);
  PairMerger merger;
  for (std::string_view rest = marked; !rest.empty();) {
    const size_t end = words_are_apart_ ? FindWordEnd(rest, 0) : rest.size();
    EncodeWord(rest.substr(0, end), &merger, ids);
    rest.remove_prefix(end);
  }
}

void SpmEncoder::EncodeWord(std::string_view word, PairMerger* merger,
                            std::vector<int32_t>* ids) const {
  std::vector<Symbol>& symbols = merger->symbols();
  symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const Utf8Step step = NextUtf8(word.substr(at));
    const size_t bytes = step.kind == Utf8Step::Kind::kCharacter ? step.bytes : 1;
    symbols.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(bytes), kNoToken});
    at += bytes;
  }
  merger->Merge([this, word](const Symbol& left, const Symbol& right) -> PairMerge {
    const size_t bytes = size_t{left.bytes} + right.bytes;
    if (bytes > vocabulary_.longest_piece_bytes()) return kNoMerge;
    const int32_t id = vocabulary_.FindPiece(word.substr(left.begin, bytes));
    if (id == kNoToken) return kNoMerge;
    return {-double{scores_[id]}, id};
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kNoToken) {
      ids->push_back(symbol.id);
    } else {
      AppendCharacter(word.substr(symbol.begin, symbol.bytes), ids);
    }
  }
}

void SpmEncoder::AppendCharacter(std::string_view character, std::vector<int32_t>* ids) const {
  const int32_t id = vocabulary_.FindPiece(character);
  if (id != kNoToken) {
    ids->push_back(id);
    return;
  }
  const auto has_no_token = [this](char byte) {
    return vocabulary_.ByteToken(static_cast<uint8_t>(byte)) == kNoToken;
  };
  if (std::any_of(character.begin(), character.end(), has_no_token)) {
    if (unk_ != kNoToken) ids->push_back(unk_);
    return;
  }
  for (const char byte : character) {
    ids->push_back(vocabulary_.ByteToken(static_cast<uint8_t>(byte)));
  }
}

}  // namespace trine
