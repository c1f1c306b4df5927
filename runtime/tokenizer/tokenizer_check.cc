#include "runtime/tokenizer/tokenizer_check.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/quoted.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

// Far above any model's; keeps ids and merged symbols within 32 bits.
constexpr size_t kMaxTokens = size_t{1} << 27;
constexpr size_t kMaxMerges = size_t{1} << 28;

absl::Status CheckCounts(const TokenizerData& data) {
  const size_t n = data.tokens.size();
  if (n == 0) return absl::InvalidArgumentError("the tokenizer has no tokens");
  if (n > kMaxTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has ", n, " tokens, more than the ", kMaxTokens, " allowed"));
  }
  if (data.merges.size() > kMaxMerges) {
    return absl::InvalidArgumentError(absl::StrCat("the tokenizer has ", data.merges.size(),
                                                   " merges, more than the ", kMaxMerges,
                                                   " allowed"));
  }
  if (!data.types.empty() && data.types.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has ", n, " tokens but ", data.types.size(), " token types"));
  }
  if (!data.scores.empty() && data.scores.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has ", n, " tokens but ", data.scores.size(), " scores"));
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
      return absl::InvalidArgumentError(absl::StrCat("the tokenizer's ", name, " token is ", id,
                                                     ", but the vocabulary has ",
                                                     data.tokens.size(), " tokens"));
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
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " has the unknown type ",
                                                     static_cast<int32_t>(data.types[id])));
    }
    if (data.types[id] == TokenType::kByte && ParseByteToken(data.tokens[id]) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " is of type byte but its text is ",
                       gguf::Quoted(data.tokens[id]), ", expected <0x00> to <0xFF>"));
    }
  }
  for (size_t id = 0; id < data.scores.size(); ++id) {
    if (std::isnan(data.scores[id])) {
      return absl::InvalidArgumentError(absl::StrCat("the score of token ", id, " is no number"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTokenizerData(const TokenizerData& data) {
  absl::Status status = CheckCounts(data);
  if (status.ok()) status = CheckIds(data);
  if (status.ok()) status = CheckTokens(data);
  return status;
}

}  // namespace trine
