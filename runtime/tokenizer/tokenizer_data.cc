#include "runtime/tokenizer/tokenizer_data.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

std::string Key(std::string_view name) { return std::string(kPrefix).append(name); }

absl::Status ReadModel(const gguf::Metadata& metadata, TokenizerData* data) {
  const auto model = metadata.String(Key("model"));
  if (!model.ok()) return model.status();
  if (*model == "gpt2") {
    data->model = TokenizerModel::kByteLevelBpe;
  } else if (*model == "llama") {
    data->model = TokenizerModel::kSentencePiece;
  } else {
    return absl::UnimplementedError(
        absl::StrCat("unknown tokenizer ", gguf::Quoted(*model),
                     "; the known ones are gpt2 (byte-level BPE) and llama (SentencePiece)"));
  }
  const auto pre = metadata.StringOr(Key("pre"), "");
  if (!pre.ok()) return pre.status();
  data->pre_tokenizer = std::string(*pre);
  return absl::OkStatus();
}

absl::Status ReadTypes(const gguf::Metadata& metadata, TokenizerData* data) {
  if (!metadata.Has(Key("token_type"))) return absl::OkStatus();
  const auto array = metadata.ArrayOf(Key("token_type"));
  if (!array.ok()) return array.status();
  if ((*array)->integers.size() != (*array)->size) {
    return Invalid("'", Key("token_type"), "' is no array of integers");
  }
  data->types.reserve((*array)->integers.size());
  for (const int64_t type : (*array)->integers) {
    if (type < 0 || type > static_cast<int64_t>(TokenType::kByte)) {
      return Invalid("'", Key("token_type"), "' holds the type ", type, " for token ",
                     data->types.size(), ", expected 0 to 6");
    }
    data->types.push_back(static_cast<TokenType>(type));
  }
  return absl::OkStatus();
}

absl::Status ReadScores(const gguf::Metadata& metadata, TokenizerData* data) {
  if (!metadata.Has(Key("scores"))) return absl::OkStatus();
  const auto array = metadata.ArrayOf(Key("scores"));
  if (!array.ok()) return array.status();
  const gguf::Array& scores = **array;
  if (scores.floats.size() == scores.size) {
    data->scores.assign(scores.floats.begin(), scores.floats.end());
  } else if (scores.integers.size() == scores.size) {
    data->scores.assign(scores.integers.begin(), scores.integers.end());
  } else {
    return Invalid("'", Key("scores"), "' is no array of numbers");
  }
  return absl::OkStatus();
}

absl::Status ReadStrings(const gguf::Metadata& metadata, const std::string& key,
                         std::vector<std::string_view>* strings) {
  const auto array = metadata.ArrayOf(key);
  if (!array.ok()) return array.status();
  if ((*array)->strings.size() != (*array)->size) {
    return Invalid("'", key, "' is no array of strings");
  }
  *strings = (*array)->strings;
  return absl::OkStatus();
}

// Reads the id of a special token. An id outside the vocabulary is an error if `required`.
// Otherwise the token counts as missing: many files have such ids for tokens that no text needs,
// padding above all. Most converters write -1 for none, as a 32-bit number of either sign.
absl::Status ReadId(const gguf::Metadata& metadata, std::string_view name, bool required,
                    size_t vocab_size, int32_t* id) {
  const std::string key = Key(name);
  if (!metadata.Has(key)) return absl::OkStatus();
  const auto value = metadata.Integer(key, std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max());
  if (!value.ok()) return value.status();
  *id = kNoToken;
  if (*value >= 0 && *value < static_cast<int64_t>(vocab_size)) {
    *id = static_cast<int32_t>(*value);
  } else if (required && *value != -1 && *value != std::numeric_limits<uint32_t>::max()) {
    return Invalid("'", key, "' is ", *value, ", but the vocabulary has ", vocab_size, " tokens");
  }
  return absl::OkStatus();
}

absl::Status ReadIds(const gguf::Metadata& metadata, TokenizerData* data) {
  if (data->model == TokenizerModel::kSentencePiece) {
    // SentencePiece's own ids; old files leave them out.
    if (data->tokens.size() > 0) data->unk = 0;
    if (data->tokens.size() > 1) data->bos = 1;
    if (data->tokens.size() > 2) data->eos = 2;
  }
  struct {
    const char* name;
    bool required;
    int32_t* id;
  } const ids[] = {
      {"bos_token_id", true, &data->bos},
      {"eos_token_id", true, &data->eos},
      {"eot_token_id", true, &data->eot},
      {"eom_token_id", true, &data->eom},
      {"unknown_token_id", false, &data->unk},
      {"seperator_token_id", false, &data->sep},  // GGUF's spelling
      {"padding_token_id", false, &data->pad},
  };
  for (const auto& id : ids) {
    absl::Status status = ReadId(metadata, id.name, id.required, data->tokens.size(), id.id);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadFlags(const gguf::Metadata& metadata, TokenizerData* data) {
  const bool sentence_piece = data->model == TokenizerModel::kSentencePiece;
  const PreTokenizerRule* rule = FindPreTokenizerRule(data->pre_tokenizer);
  const bool bos_by_default =
      data->bos != kNoToken && (sentence_piece || (rule != nullptr && rule->add_bos));
  const struct {
    const char* name;
    bool fallback;
    bool* flag;
  } flags[] = {
      {"add_bos_token", bos_by_default, &data->add_bos},
      {"add_eos_token", false, &data->add_eos},
      {"add_space_prefix", sentence_piece, &data->add_space_prefix},
  };
  for (const auto& flag : flags) {
    const auto value = metadata.BoolOr(Key(flag.name), flag.fallback);
    if (!value.ok()) return value.status();
    *flag.flag = *value;
  }
  return absl::OkStatus();
}

// GGUF has no key for what Phi-3's tokenizer.json says of its special tokens, so the model can only
// be recognised by its name.
bool IsPhi3(const gguf::Metadata& metadata) {
  const auto value = metadata.StringOr("general.name", "");
  if (!value.ok()) return false;
  std::string name(*value);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("phi-3") != name.npos || name.find("phi3") != name.npos;
}

// Far above any model's numbers. They keep ids and merged symbols within 32 bits.
constexpr size_t kMaxTokens = size_t{1} << 27;
constexpr size_t kMaxMerges = size_t{1} << 28;

absl::Status CheckCounts(const TokenizerData& data) {
  const size_t n = data.tokens.size();
  if (n == 0) return absl::InvalidArgumentError("the tokenizer has no tokens");
  if (n > kMaxTokens) {
    return Invalid("the tokenizer has ", n, " tokens, more than the ", kMaxTokens, " allowed");
  }
  if (data.merges.size() > kMaxMerges) {
    return Invalid("the tokenizer has ", data.merges.size(), " merges, more than the ", kMaxMerges,
                   " allowed");
  }
  if (!data.types.empty() && data.types.size() != n) {
    return Invalid("the tokenizer has ", n, " tokens but ", data.types.size(), " token types");
  }
  if (!data.scores.empty() && data.scores.size() != n) {
    return Invalid("the tokenizer has ", n, " tokens but ", data.scores.size(), " scores");
  }
  return absl::OkStatus();
}

absl::Status CheckIds(const TokenizerData& data) {
  const struct {
    const char* name;
    int32_t id;
  } ids[] = {{"bos", data.bos}, {"eos", data.eos}, {"eot", data.eot}, {"eom", data.eom},
             {"unk", data.unk}, {"sep", data.sep}, {"pad", data.pad}};
  for (const auto& [name, id] : ids) {
    if (id != kNoToken && (id < 0 || static_cast<size_t>(id) >= data.tokens.size())) {
      return Invalid("the tokenizer's ", name, " token is ", id, ", but the vocabulary has ",
                     data.tokens.size(), " tokens");
    }
  }
  if (data.add_bos && data.bos == kNoToken) {
    return absl::InvalidArgumentError("the tokenizer asks for a BOS token but has none");
  }
  if (data.add_eos && data.eos == kNoToken) {
    return absl::InvalidArgumentError("the tokenizer asks for an EOS token but has none");
  }
  return absl::OkStatus();
}

absl::Status CheckTokens(const TokenizerData& data) {
  for (size_t id = 0; id < data.types.size(); ++id) {
    if (data.types[id] < TokenType::kUndefined || data.types[id] > TokenType::kByte) {
      return Invalid("token ", id, " has the unknown type ", static_cast<int32_t>(data.types[id]));
    }
    if (data.types[id] == TokenType::kByte && ParseByteToken(data.tokens[id]) < 0) {
      return Invalid("token ", id, " is of type byte but its text is ",
                     gguf::Quoted(data.tokens[id]), ", expected <0x00> to <0xFF>");
    }
  }
  for (size_t id = 0; id < data.scores.size(); ++id) {
    if (std::isnan(data.scores[id])) return Invalid("the score of token ", id, " is no number");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerData> ReadTokenizerData(const gguf::Metadata& metadata) {
  TokenizerData data;
  absl::Status status = ReadModel(metadata, &data);
  if (status.ok()) status = ReadStrings(metadata, Key("tokens"), &data.tokens);
  if (status.ok()) status = ReadTypes(metadata, &data);
  if (status.ok() && data.model == TokenizerModel::kSentencePiece) {
    status = ReadScores(metadata, &data);
  }
  if (status.ok() && data.model == TokenizerModel::kByteLevelBpe) {
    status = ReadStrings(metadata, Key("merges"), &data.merges);
  }
  if (status.ok()) status = ReadIds(metadata, &data);
  if (status.ok()) status = ReadFlags(metadata, &data);
  if (!status.ok()) return status;
  data.special_strips_right = IsPhi3(metadata);
  return data;
}

absl::Status CheckTokenizerData(const TokenizerData& data) {
  absl::Status status = CheckCounts(data);
  if (status.ok()) status = CheckIds(data);
  if (status.ok()) status = CheckTokens(data);
  return status;
}

}  // namespace trine
