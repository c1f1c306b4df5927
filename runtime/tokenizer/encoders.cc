#include "runtime/tokenizer/encoders.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"
#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

// Replaces bytes outside of characters while words are cut: no letter, digit, space or mark.
constexpr char kNoCharacter = '\x01';

uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Returns `text` with invalid UTF-8 masked, in the same length; "" if there is none.
std::string MaskInvalidUtf8(std::string_view text) {
  std::string masked;
  for (size_t at = FindInvalidUtf8(text); at < text.size();) {
    if (masked.empty()) masked = text;
    const size_t bytes = NextUtf8(text.substr(at)).bytes;
    masked.replace(at, bytes, bytes, kNoCharacter);
    at += bytes;
    at += FindInvalidUtf8(text.substr(at));
  }
  return masked;
}

// Returns where, from `from` on, a space mark first follows another character, or text.size().
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

absl::StatusOr<std::unique_ptr<const BpeEncoder>> BpeEncoder::Create(const TokenizerData& data,
                                                                     const Vocabulary& vocabulary) {
  auto encoder = std::unique_ptr<BpeEncoder>(new BpeEncoder(vocabulary));
  const PreTokenizerRule* rule = FindPreTokenizerRule(data.pre_tokenizer);
  if (rule == nullptr) {
    return absl::UnimplementedError(absl::StrCat("unknown pre-tokenizer ",
                                                 gguf::Quoted(data.pre_tokenizer),
                                                 "; the known ones are ", PreTokenizerNames()));
  }
  auto pre_tokenizer = PreTokenizer::Create(*rule);
  if (!pre_tokenizer.ok()) return pre_tokenizer.status();
  encoder->pre_tokenizer_ = *std::move(pre_tokenizer);
  encoder->whole_words_ = rule->whole_words;
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    AppendUtf8(kByteAlphabet[byte], &character);
    encoder->byte_symbols_[byte] = encoder->Intern(character);
  }
  if (absl::Status status = encoder->ReadMerges(data); !status.ok()) return status;
  if (data.unk != kNoToken) {
    encoder->missing_byte_ = {data.unk};
  } else {
    PairMerger merger;
    std::vector<int32_t> ids;
    encoder->EncodeWord(kReplacementCharacter, &merger, &ids);
    encoder->missing_byte_ = std::move(ids);
  }
  return std::unique_ptr<const BpeEncoder>(std::move(encoder));
}

// The merges bound the number of symbols, and CheckTokenizerData bounds the merges.
int32_t BpeEncoder::Intern(std::string_view text) {
  const int32_t id = vocabulary_.FindPiece(text);
  if (id != kNoToken) return id;
  const int32_t next = vocabulary_.size() + static_cast<int32_t>(extra_symbols_.size());
  return extra_symbols_.try_emplace(std::string(text), next).first->second;
}

absl::Status BpeEncoder::ReadMerges(const TokenizerData& data) {
  merges_.reserve(data.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == merge.npos || space + 1 == merge.size()) {
      return Invalid("merge ", rank, " of the tokenizer is ", gguf::Quoted(merge),
                     ", not two texts with a space between them");
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    // The first of equal merges counts.
    merges_.try_emplace(PairKey(Intern(left), Intern(right)),
                        Merge{static_cast<int32_t>(rank), Intern(joined)});
  }
  return absl::OkStatus();
}

absl::Status BpeEncoder::Encode(std::string_view text, std::vector<int32_t>* ids) const {
  const std::string masked = MaskInvalidUtf8(text);
  std::vector<uint32_t> ends;
  absl::Status status = pre_tokenizer_->Split(masked.empty() ? text : masked, &ends);
  if (!status.ok()) return status;
  PairMerger merger;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    EncodeWord(text.substr(begin, end - begin), &merger, ids);
    begin = end;
  }
  return absl::OkStatus();
}

void BpeEncoder::EncodeWord(std::string_view word, PairMerger* merger,
                            std::vector<int32_t>* ids) const {
  if (whole_words_ && word.size() <= vocabulary_.longest_piece_bytes()) {
    std::string text;
    AppendAlphabet(word, &text);
    const int32_t id = vocabulary_.FindPiece(text);
    if (id != kNoToken) {
      ids->push_back(id);
      return;
    }
  }
  std::vector<Symbol>& symbols = merger->symbols();
  symbols.resize(word.size());
  for (uint32_t i = 0; i < word.size(); ++i) {
    symbols[i] = {i, 1, byte_symbols_[static_cast<uint8_t>(word[i])]};
  }
  merger->Merge([this](const Symbol& left, const Symbol& right) -> PairMerge {
    const auto it = merges_.find(PairKey(left.id, right.id));
    if (it == merges_.end()) return kNoMerge;
    return {static_cast<double>(it->second.rank), it->second.symbol};
  });
  for (const Symbol& symbol : symbols) AppendSymbol(symbol, word, ids);
}

void BpeEncoder::AppendSymbol(const Symbol& symbol, std::string_view word,
                              std::vector<int32_t>* ids) const {
  if (symbol.id < vocabulary_.size()) {
    ids->push_back(symbol.id);
    return;
  }
  // The symbol is not a token: appends the tokens of its bytes.
  for (const char c : word.substr(symbol.begin, symbol.bytes)) {
    const uint8_t byte = static_cast<uint8_t>(c);
    int32_t id = byte_symbols_[byte];
    if (id >= vocabulary_.size()) id = vocabulary_.ByteToken(byte);
    if (id != kNoToken) {
      ids->push_back(id);
    } else {
      ids->insert(ids->end(), missing_byte_.begin(), missing_byte_.end());
    }
  }
}

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
