#include "runtime/tokenizer/bpe_encoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/quoted.h"
#include "runtime/tokenizer/byte_alphabet.h"
#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

// Stands for a byte outside any character while words are cut: no letter, digit, space or mark.
constexpr char kNoCharacter = '\x01';

uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// `text`, with bytes that are no UTF-8 masked; the same length. Empty when nothing had to be.
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

// The number of symbols is bounded by that of the merges: CheckTokenizerData keeps both in range.
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
      return absl::InvalidArgumentError(absl::StrCat("merge ", rank, " of the tokenizer is ",
                                                     gguf::Quoted(merge),
                                                     ", not two texts with a space between them"));
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    // Of two equal merges the first counts.
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
  // No token: its bytes, each by itself.
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

}  // namespace trine
