// Takes any bytes as text for small vocabularies of both kinds, as a vocabulary, or as a model
// file. Text must come back as it was; vocabularies are refused with a message or give ids that
// exist.
//
// The first byte chooses; see LLVMFuzzerTestOneInput.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

std::string Alphabet(std::string_view bytes) {
  std::string text;
  AppendAlphabet(bytes, &text);
  return text;
}

// Encodes text to ids that must exist, and decodes them to whole characters, in pieces of any size.
std::vector<int32_t> Exercise(const std::shared_ptr<const Tokenizer>& tokenizer,
                              std::string_view text, const EncodeOptions& options) {
  const auto ids = tokenizer->Encode(text, options);
  Require(ids.ok());
  for (const int32_t id : *ids) Require(id >= 0 && id < tokenizer->vocab_size());
  const std::string bytes = tokenizer->Decode(*ids);
  std::string whole;
  if (AppendValidUtf8(bytes, &whole) < bytes.size()) whole += kReplacementCharacter;
  Detokenizer detokenizer(tokenizer, {.at_start = true});
  std::string joined;
  for (const int32_t id : *ids) {
    const std::string piece = detokenizer.Push(id);
    Require(FindInvalidUtf8(piece) == piece.size());
    joined += piece;
  }
  joined += detokenizer.Flush();
  Require(joined == whole);
  return *ids;
}

std::shared_ptr<const Tokenizer> MakeBpe(const std::string& pre_tokenizer) {
  std::vector<std::string> tokens, merges;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    tokens.push_back(Alphabet(std::string_view(&c, 1)));
  }
  const std::string_view pairs[][2] = {
      {"a", "a"}, {"aa", "aa"}, {" ", " "},  {"  ", "  "},     {" ", "a"},          {"b", "a"},
      {"1", "2"}, {"\n", "\n"}, {"ba", "b"}, {"\xE2", "\x82"}, {"\xE2\x82", "\xAC"}};
  for (const auto& [left, right] : pairs) {
    merges.push_back(Alphabet(left) + " " + Alphabet(right));
    tokens.push_back(Alphabet(std::string(left).append(right)));
  }
  TokenizerData data = {.pre_tokenizer = pre_tokenizer,
                        .tokens = {tokens.begin(), tokens.end()},
                        .merges = {merges.begin(), merges.end()}};
  data.types.resize(data.tokens.size(), TokenType::kNormal);
  for (const std::string_view special : {"<|im_end|>", "<|", "|><|"}) {
    data.tokens.push_back(special);
    data.types.push_back(TokenType::kControl);
  }
  data.tokens.push_back("<t>");
  data.types.push_back(TokenType::kUserDefined);
  auto tokenizer = Tokenizer::Create(data);
  Require(tokenizer.ok());
  return *std::move(tokenizer);
}

std::shared_ptr<const Tokenizer> MakeSpm() {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kHex[] = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
  }
  const size_t plain = tokens.size();
  for (const char* piece : {"\u2581", "a", "b", "aa", "ab", "\u2581a", "\u2581\u2581", "<", "s",
                            "<s", "s>", "aaaa", "\u20AC", "0x"}) {
    tokens.push_back(piece);
  }
  TokenizerData data = {.model = TokenizerModel::kSentencePiece,
                        .tokens = {tokens.begin(), tokens.end()}};
  data.types.resize(tokens.size(), TokenType::kNormal);
  data.types[0] = TokenType::kUnknown;
  data.types[1] = data.types[2] = TokenType::kControl;
  for (size_t id = 3; id < plain; ++id) data.types[id] = TokenType::kByte;
  for (size_t id = 0; id < tokens.size(); ++id) {
    data.scores.push_back(-static_cast<float>(id % 7));
  }
  data.unk = 0;
  data.bos = 1;
  data.eos = 2;
  data.add_bos = data.add_space_prefix = true;
  auto tokenizer = Tokenizer::Create(data);
  Require(tokenizer.ok());
  return *std::move(tokenizer);
}

void EncodeText(std::string_view text, uint8_t which) {
  static const std::vector<std::string> names = absl::StrSplit(PreTokenizerNames(), ", ");
  static std::map<std::string, std::shared_ptr<const Tokenizer>> by_name;
  static const std::shared_ptr<const Tokenizer> spm = MakeSpm();
  const std::string& name = names[which % names.size()];
  std::shared_ptr<const Tokenizer>& bpe = by_name[name];
  if (bpe == nullptr) bpe = MakeBpe(name);
  for (const auto& tokenizer : {bpe, spm}) {
    const std::vector<int32_t> ids = Exercise(tokenizer, text, {});
    // SentencePiece can't tell a space mark in the text from a space, and adds a space after a
    // token found in the text.
    const bool has_mark = tokenizer == spm && text.find("\u2581") != text.npos;
    Require(has_mark || tokenizer->Decode(ids) == text);
    for (size_t i = tokenizer->adds_bos() ? 1 : 0; i < ids.size(); ++i) {
      Require(tokenizer->Type(ids[i]) != TokenType::kControl);
    }
    Exercise(tokenizer, text, {.parse_special = true});
  }
}

// Takes bytes and short strings off the front.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::string_view String() {
    const size_t length = Byte() % 32;
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(text.size());
    return text;
  }
  float Float() {
    float value = 0;
    char bytes[sizeof(value)];
    for (char& byte : bytes) byte = static_cast<char>(Byte());
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

void UseVocabulary(std::string_view bytes) {
  Taker take(bytes);
  TokenizerData data;
  const uint8_t flags = take.Byte();
  data.model = flags & 1 ? TokenizerModel::kSentencePiece : TokenizerModel::kByteLevelBpe;
  data.add_bos = flags & 2;
  data.add_eos = flags & 4;
  data.add_space_prefix = flags & 8;
  data.special_strips_right = flags & 16;
  const bool has_types = flags & 32, has_scores = flags & 64;
  data.pre_tokenizer = flags & 128 ? "llama-bpe" : "";
  for (int32_t* id : {&data.bos, &data.eos, &data.eot, &data.unk, &data.pad}) {
    *id = static_cast<int8_t>(take.Byte());
  }
  for (int n = take.Byte(); n > 0; --n) {
    data.tokens.push_back(take.String());
    if (has_types) data.types.push_back(static_cast<TokenType>(take.Byte() % 8));
    if (has_scores) data.scores.push_back(take.Float());
  }
  for (int n = take.Byte(); n > 0; --n) data.merges.push_back(take.String());
  const auto tokenizer = Tokenizer::Create(data);
  if (!tokenizer.ok()) {
    Require(!tokenizer.status().message().empty());
    return;
  }
  for (int32_t id = -1; id <= (*tokenizer)->vocab_size(); ++id) {
    (void)(*tokenizer)->IsEndOfGeneration(id);
    const int32_t found = (*tokenizer)->FindToken((*tokenizer)->TokenText(id));
    if (id >= 0 && id < (*tokenizer)->vocab_size()) Require(found >= 0 && found <= id);
  }
  Exercise(*tokenizer, take.rest(), {});
  Exercise(*tokenizer, take.rest(), {.parse_special = true});
}

void UseFile(std::string_view bytes) {
  const auto file = gguf::File::FromMemory(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
  if (!file.ok()) return;
  const auto data = ReadTokenizerData((*file)->metadata());
  if (!data.ok()) {
    Require(!data.status().message().empty());
    return;
  }
  const auto tokenizer = Tokenizer::Create(*data);
  if (tokenizer.ok()) Exercise(*tokenizer, "Once upon a time<s> \xFF", {.parse_special = true});
}

}  // namespace
}  // namespace trine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  switch (data[0] % 4) {
    case 0:
    case 1:
      trine::EncodeText(bytes.substr(2), data[1]);
      break;
    case 2:
      trine::UseVocabulary(bytes.substr(1));
      break;
    default:
      trine::UseFile(bytes.substr(1));
  }
  return 0;
}
