#include "runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "runtime/base/invalid.h"
#include "runtime/tokenizer/encoders.h"
#include "runtime/tokenizer/special_tokens.h"
#include "runtime/tokenizer/utf8.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

// Offsets have 32 bits, and SentencePiece triples the length of text that is all spaces.
constexpr size_t kMaxTextBytes = (size_t{1} << 30) - 1;

// Returns false for Phi-3's exceptions.
bool StripsRight(std::string_view text) {
  return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

std::vector<SpecialSplitter::Special> ListSpecials(const Vocabulary& vocabulary, bool strip,
                                                   bool user_defined_only) {
  std::vector<SpecialSplitter::Special> specials;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.Type(id);
    const bool listed =
        type == TokenType::kUserDefined ||
        (!user_defined_only && (type == TokenType::kControl || type == TokenType::kUnknown));
    if (listed) specials.push_back({id, strip && StripsRight(vocabulary.Text(id))});
  }
  return specials;
}

}  // namespace

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Create(const TokenizerData& data) {
  if (absl::Status status = CheckTokenizerData(data); !status.ok()) return status;
  auto tokenizer = std::shared_ptr<Tokenizer>(new Tokenizer());
  tokenizer->model_ = data.model;
  tokenizer->vocabulary_ = std::make_unique<const Vocabulary>(data, ResolveTypes(data));
  const Vocabulary& vocabulary = *tokenizer->vocabulary_;
  if (data.model == TokenizerModel::kByteLevelBpe) {
    auto bpe = BpeEncoder::Create(data, vocabulary);
    if (!bpe.ok()) return bpe.status();
    tokenizer->bpe_ = *std::move(bpe);
    tokenizer->pre_tokenizer_ = data.pre_tokenizer.empty() ? "default" : data.pre_tokenizer;
  } else {
    tokenizer->spm_ = std::make_unique<const SpmEncoder>(data, vocabulary);
    tokenizer->add_space_prefix_ = data.add_space_prefix;
  }
  const bool strip = data.special_strips_right;
  tokenizer->user_defined_ =
      std::make_unique<const SpecialSplitter>(vocabulary, ListSpecials(vocabulary, strip, true));
  tokenizer->all_special_ =
      std::make_unique<const SpecialSplitter>(vocabulary, ListSpecials(vocabulary, strip, false));

  EndTokens end = FindEndTokens(data, vocabulary);
  tokenizer->end_of_generation_ = std::move(end.all);
  tokenizer->eot_ = end.eot;
  tokenizer->eom_ = end.eom;
  tokenizer->bos_ = data.bos;
  tokenizer->eos_ = data.eos;
  tokenizer->unk_ = data.unk;
  tokenizer->pad_ = data.pad;
  tokenizer->sep_ = data.sep;
  tokenizer->add_bos_ = data.add_bos;
  tokenizer->add_eos_ = data.add_eos;
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                                       const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return Invalid("a text of ", text.size(),
                   " bytes is too long to tokenize at once, the "
                   "limit is ",
                   kMaxTextBytes, " bytes");
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 2);
  if (options.add_special && add_bos_) ids.push_back(bos_);
  // Text counts as a beginning at the start, and again after each special token.
  bool at_start = options.at_start;
  const SpecialSplitter& splitter = options.parse_special ? *all_special_ : *user_defined_;
  for (const Fragment& fragment : splitter.Split(text)) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
      at_start = true;
      continue;
    }
    if (bpe_ != nullptr) {
      if (absl::Status s = bpe_->Encode(fragment.text, &ids); !s.ok()) return s;
    } else {
      spm_->Encode(fragment.text, add_space_prefix_ && at_start, &ids);
    }
    at_start = false;
  }
  if (options.add_special && add_eos_) ids.push_back(eos_);
  return ids;
}

std::string_view Tokenizer::TokenBytes(int32_t id, SpecialText special) const {
  if (!vocabulary_->Has(id)) return {};
  const TokenType type = vocabulary_->Type(id);
  const bool hidden = type == TokenType::kControl || type == TokenType::kUnknown;
  return hidden && special == SpecialText::kShow ? vocabulary_->Text(id) : vocabulary_->Bytes(id);
}

std::string_view Tokenizer::NextBytes(int32_t id, SpecialText special, bool* strip_space) const {
  std::string_view bytes = TokenBytes(id, special);
  // The encoder puts no space before a special token, even if the token is shown as text.
  if (*strip_space && !TokenBytes(id).empty()) {
    *strip_space = false;
    if (bytes.front() == ' ' && Type(id) != TokenType::kUserDefined) bytes.remove_prefix(1);
  }
  return bytes;
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids, SpecialText special) const {
  std::string bytes;
  bool strip_space = add_space_prefix_;
  for (const int32_t id : ids) bytes += NextBytes(id, special, &strip_space);
  return bytes;
}

std::string_view Tokenizer::TokenText(int32_t id) const {
  return vocabulary_->Has(id) ? vocabulary_->Text(id) : std::string_view();
}

TokenType Tokenizer::Type(int32_t id) const {
  return vocabulary_->Has(id) ? vocabulary_->Type(id) : TokenType::kUndefined;
}

int32_t Tokenizer::FindToken(std::string_view text) const { return vocabulary_->Find(text); }

bool Tokenizer::IsEndOfGeneration(int32_t id) const {
  return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

const std::vector<int32_t>& Tokenizer::end_of_generation() const { return end_of_generation_; }

int32_t Tokenizer::vocab_size() const { return vocabulary_->size(); }

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                         const DetokenizerOptions& options)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      strip_space_(options.at_start && tokenizer_->adds_space_prefix()) {}

void Detokenizer::Push(int32_t id, std::string* text) {
  const std::string_view bytes = tokenizer_->NextBytes(id, options_.special, &strip_space_);
  held_.append(bytes);
  held_.erase(0, AppendValidUtf8(held_, text));
}

std::string Detokenizer::Push(int32_t id) {
  std::string text;
  Push(id, &text);
  return text;
}

std::string Detokenizer::Flush() {
  std::string text;
  if (!held_.empty()) text = kReplacementCharacter;
  held_.clear();
  strip_space_ = options_.at_start && tokenizer_->adds_space_prefix();
  return text;
}

}  // namespace trine
