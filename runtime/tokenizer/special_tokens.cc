#include "runtime/tokenizer/special_tokens.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace trine {
namespace {

// Nobody writes these as text.
constexpr std::string_view kEndMarkers[] = {
    "<|eot_id|>",      "<|im_end|>", "<|end|>",  "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|eom_id|>", "<|call|>", "<|return|>",    "<｜end▁of▁sentence｜>",
};
// These end a generation only where the file itself says that they are special.
constexpr std::string_view kSpecialEndMarkers[] = {
    "<EOT>",        "_<EOT>",
    "▁<EOT>",       "[EOT]",
    "[EOS]",        "<eos>",
    "</s>",         "<|fim_pad|>",
    "<fim-pad>",    "<fim_pad>",
    "<PAD>",        "[PAD]",
    "<|fim_repo|>", "<|repo_name|>",
    "<reponame>",   "<fim-repo>",
    "<REPO>",       "<|file_sep|>",
    "[e~[",         "<|flush|>",
    "<|calls|>",    "<end_of_utterance>",
};
// By which a turn ends, the first that is there.
constexpr std::string_view kTurnEnds[] = {
    "<|eot_id|>",         "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",    "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
};
constexpr std::string_view kMessageEnds[] = {"<|eom_id|>"};

bool IsSpecial(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUserDefined;
}

template <size_t kCount>
int32_t FirstControl(const Vocabulary& vocabulary, const std::string_view (&texts)[kCount]) {
  for (const std::string_view text : texts) {
    const int32_t id = vocabulary.Find(text);
    if (id != kNoToken && vocabulary.Type(id) == TokenType::kControl) return id;
  }
  return kNoToken;
}

}  // namespace

std::vector<TokenType> ResolveTypes(const TokenizerData& data) {
  std::vector<TokenType> types = data.types;
  if (types.empty()) {
    types.assign(data.tokens.size(), TokenType::kNormal);
    if (data.model == TokenizerModel::kSentencePiece) {
      for (size_t id = 0; id < types.size(); ++id) {
        if (ParseByteToken(data.tokens[id]) >= 0) types[id] = TokenType::kByte;
      }
    }
    for (const int32_t id : {data.bos, data.eos, data.eot, data.eom, data.pad, data.sep}) {
      if (id != kNoToken) types[id] = TokenType::kControl;
    }
    if (data.unk != kNoToken) types[data.unk] = TokenType::kUnknown;
  }
  for (size_t id = 0; id < types.size(); ++id) {
    if (std::find(std::begin(kEndMarkers), std::end(kEndMarkers), data.tokens[id]) !=
        std::end(kEndMarkers)) {
      types[id] = TokenType::kControl;
    }
  }
  return types;
}

EndTokens FindEndTokens(const TokenizerData& data, const Vocabulary& vocabulary) {
  EndTokens end;
  end.eot = data.eot != kNoToken ? data.eot : FirstControl(vocabulary, kTurnEnds);
  end.eom = data.eom != kNoToken ? data.eom : FirstControl(vocabulary, kMessageEnds);
  for (const int32_t id : {data.eos, end.eot, end.eom}) {
    if (id != kNoToken) end.all.push_back(id);
  }
  for (const std::string_view text : kEndMarkers) {
    const int32_t id = vocabulary.Find(text);
    if (id != kNoToken) end.all.push_back(id);
  }
  for (const std::string_view text : kSpecialEndMarkers) {
    const int32_t id = vocabulary.Find(text);
    if (id != kNoToken && IsSpecial(vocabulary.Type(id))) end.all.push_back(id);
  }
  // Where turns end with <|return|> or <|call|>, <|end|> only parts the messages of one.
  if (vocabulary.Find("<|return|>") != kNoToken && vocabulary.Find("<|call|>") != kNoToken) {
    const int32_t part = vocabulary.Find("<|end|>");
    end.all.erase(std::remove(end.all.begin(), end.all.end(), part), end.all.end());
  }
  std::sort(end.all.begin(), end.all.end());
  end.all.erase(std::unique(end.all.begin(), end.all.end()), end.all.end());
  return end;
}

}  // namespace trine
