#include "runtime/make_model/vocabulary.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

constexpr std::string_view kLetters = "etaoinshrdlcumwfgypbvkjxqz";
constexpr int64_t kBytes = 256;

constexpr std::string_view kTextEnd = "<|endoftext|>";
constexpr std::string_view kTurnStart = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>";
constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

struct Word {
  std::string text;
  size_t left_bytes = 0;  // the merge of that many bytes and a letter; 0: a single symbol
};

// Returns a space and the letters, then each word so far followed by each letter. No text comes
// twice, and both halves of a word come before it.
std::vector<Word> MakeWords(std::string_view space, size_t count) {
  std::vector<Word> words;
  words.push_back({std::string(space)});
  for (const char letter : kLetters) words.push_back({std::string(1, letter)});
  for (size_t left = 0; words.size() < count; ++left) {
    for (size_t i = 0; i < kLetters.size() && words.size() < count; ++i) {
      const std::string& text = words[left].text;
      const size_t left_bytes = text.size();
      words.push_back({text + kLetters[i], left_bytes});
    }
  }
  return words;
}

class VocabularyMaker {
 public:
  VocabularyMaker(const ModelShape& shape, gguf::Builder* builder)
      : shape_(shape), builder_(*builder) {}

  void Make() {
    if (shape_.vocabulary.kind == VocabularyKind::kByteLevelBpe) {
      MakeBpe();
    } else {
      MakeSentencePiece();
    }
    builder_.SetBool("tokenizer.ggml.add_bos_token", shape_.vocabulary.add_bos);
    builder_.SetString("tokenizer.chat_template", kChatTemplate);
  }

 private:
  void MakeBpe() {
    for (int byte = 0; byte < kBytes; ++byte) {
      const char c = static_cast<char>(byte);
      std::string text;
      AppendAlphabet({&c, 1}, &text);
      Add(std::move(text), TokenType::kNormal);
    }
    std::string space;
    AppendAlphabet(" ", &space);
    std::vector<std::string> merges;
    const size_t symbols = 1 + kLetters.size();  // are bytes, which exist already
    const size_t count = symbols + static_cast<size_t>(shape_.vocab) - kBytes - 3;
    const std::vector<Word> words = MakeWords(space, count);
    for (size_t i = symbols; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      const size_t left = words[i].left_bytes;
      merges.push_back(absl::StrCat(text.substr(0, left), " ", text.substr(left)));
      Add(words[i].text, TokenType::kNormal);
    }
    const uint32_t text_end = Add(kTextEnd, TokenType::kControl);
    Add(kTurnStart, TokenType::kControl);
    const uint32_t turn_end = Add(kTurnEnd, TokenType::kControl);

    builder_.SetString("tokenizer.ggml.model", "gpt2");
    builder_.SetString("tokenizer.ggml.pre", shape_.vocabulary.pre);
    SetTokens();
    builder_.SetStrings("tokenizer.ggml.merges", merges);
    SetIds({{"bos", text_end}, {"eos", turn_end}, {"eot", turn_end}, {"padding", text_end}});
  }

  void MakeSentencePiece() {
    const uint32_t unknown = Add("<unk>", TokenType::kUnknown);
    const uint32_t begin = Add("<s>", TokenType::kControl);
    const uint32_t end = Add("</s>", TokenType::kControl);
    for (int byte = 0; byte < kBytes; ++byte) {
      Add(absl::StrFormat("<0x%02X>", byte), TokenType::kByte);
    }
    std::vector<float> scores(tokens_.size(), 0.0f);
    const size_t count = static_cast<size_t>(shape_.vocab) - tokens_.size() - 3;
    for (const Word& word : MakeWords("\u2581", count)) {
      scores.push_back(-static_cast<float>(tokens_.size()));  // earlier words are more frequent
      Add(word.text, TokenType::kNormal);
    }
    const uint32_t text_end = Add(kTextEnd, TokenType::kControl);
    Add(kTurnStart, TokenType::kControl);
    const uint32_t turn_end = Add(kTurnEnd, TokenType::kControl);
    scores.resize(tokens_.size(), 0.0f);

    builder_.SetString("tokenizer.ggml.model", "llama");
    builder_.SetString("tokenizer.ggml.pre", "default");
    SetTokens();
    builder_.SetFloat32s("tokenizer.ggml.scores", scores);
    SetIds({{"bos", begin},
            {"eos", end},
            {"eot", turn_end},
            {"unknown", unknown},
            {"padding", text_end}});
    builder_.SetBool("tokenizer.ggml.add_space_prefix", shape_.vocabulary.add_space_prefix);
  }

  uint32_t Add(std::string_view text, TokenType type) {
    tokens_.emplace_back(text);
    types_.push_back(static_cast<int32_t>(type));
    return static_cast<uint32_t>(tokens_.size() - 1);
  }

  void SetTokens() {
    builder_.SetStrings("tokenizer.ggml.tokens", tokens_);
    builder_.SetInt32s("tokenizer.ggml.token_type", types_);
  }

  void SetIds(std::initializer_list<std::pair<const char*, uint32_t>> ids) {
    for (const auto& [name, id] : ids) {
      builder_.SetUint32(absl::StrCat("tokenizer.ggml.", name, "_token_id"), id);
    }
  }

  const ModelShape& shape_;
  gguf::Builder& builder_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
};

}  // namespace

void SetVocabulary(const ModelShape& shape, gguf::Builder* builder) {
  VocabularyMaker(shape, builder).Make();
}

}  // namespace trine
