// trine tokenize: shows a text as the model's tokens, or tokens as text.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/quoted.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/read_input.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeArguments {
  std::string model;
  PromptSource source;
  std::string detokenize;
  bool has_detokenize = false;
  bool ids = false;
  bool json = false;
  bool no_bos = false;
  bool no_parse_special = false;
};

// Reads only the tokenizer, so that it works for models that are too large for the machine.
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path) {
  const auto file = gguf::File::Open(path);
  if (!file.ok()) return file.status();
  const auto data = ReadTokenizerData((*file)->metadata());
  absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer =
      data.ok() ? Tokenizer::Create(*data) : data.status();
  if (tokenizer.ok()) return tokenizer;
  return About(path, tokenizer.status());
}

// Parses "1 2 3", "1,2,3" or "[1, 2, 3]", which --ids prints.
absl::StatusOr<std::vector<int32_t>> ParseIds(const std::string& text, int32_t vocab_size) {
  std::vector<int32_t> ids;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar("[], \t\r\n"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(gguf::Quoted({word.data(), word.size()}), " is no token id"));
    }
    if (id < 0 || id >= vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no token ", id, ": the vocabulary goes from 0 to ", vocab_size - 1));
    }
    ids.push_back(id);
  }
  return ids;
}

void PrintText(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<int32_t>& ids,
               bool json) {
  Detokenizer detokenizer(tokenizer, {.special = SpecialText::kShow, .at_start = true});
  std::string text;
  for (const int32_t id : ids) detokenizer.Push(id, &text);
  text += detokenizer.Flush();
  if (json) text = Json{{"text", text}}.dump(2);
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// A token can be part of a character. Then the JSON has its bytes, too.
Json DescribeToken(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes = tokenizer.TokenBytes(id, SpecialText::kShow);
  const bool whole = FindInvalidUtf8(bytes) == bytes.size();
  std::string text;
  if (AppendValidUtf8(bytes, &text) < bytes.size()) text += kReplacementCharacter;
  Json token = {{"id", id}, {"text", text}};
  if (!whole) token["bytes"] = std::vector<uint8_t>(bytes.begin(), bytes.end());
  if (tokenizer.Type(id) == TokenType::kControl) token["control"] = true;
  return token;
}

void PrintTokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                 const TokenizeArguments& arguments) {
  if (arguments.json) {
    Json tokens = Json::array();
    for (const int32_t id : ids) tokens.push_back(DescribeToken(tokenizer, id));
    std::printf("%s\n", Json{{"count", ids.size()}, {"tokens", std::move(tokens)}}.dump(2).c_str());
  } else if (arguments.ids) {
    std::printf("[%s]\n", absl::StrJoin(ids, ", ").c_str());
  } else {
    for (const int32_t id : ids) {
      std::printf("%6d -> '%s'\n", id,
                  gguf::Printable(tokenizer.TokenBytes(id, SpecialText::kShow)).c_str());
    }
  }
}

absl::Status Tokenize(const TokenizeArguments& arguments) {
  const auto tokenizer =
      LoadTokenizer(arguments.model.empty() ? DefaultModelPath() : arguments.model);
  if (!tokenizer.ok()) return tokenizer.status();
  if (arguments.has_detokenize) {
    const auto ids = ParseIds(arguments.detokenize, (*tokenizer)->vocab_size());
    if (!ids.ok()) return ids.status();
    PrintText(*tokenizer, *ids, arguments.json);
    return absl::OkStatus();
  }
  const bool from_input = !arguments.source.has_text && arguments.source.file.empty();
  const auto text = from_input ? ReadWholeFile("-") : ReadPrompt(arguments.source);
  if (!text.ok()) return text.status();
  if (absl::Status status = ValidateUtf8(*text, "the text"); !status.ok()) return status;
  const auto ids = (*tokenizer)
                       ->Encode(*text, {.add_special = !arguments.no_bos,
                                        .parse_special = !arguments.no_parse_special});
  if (!ids.ok()) return ids.status();
  PrintTokens(**tokenizer, *ids, arguments);
  return absl::OkStatus();
}

}  // namespace

void AddTokenizeCommand(Command app, Run* run) {
  const auto act = [](const TokenizeArguments& a) { return Complain(Tokenize(a)); };
  auto [command, a] = NewCommand<TokenizeArguments>(
      app, run, act, "tokenize",
      "Show a text as the model's tokens, or tokens as text. Without -p and -f the text "
      "is read from standard input");
  command
      .AddOption("-m,--model", a->model,
                 "The GGUF file whose tokenizer to use; without it the shipped model's")
      .Check(NotEmpty);
  AddPromptOptions(command, "The text to take apart", &a->source);
  command.AddFlag("--ids", a->ids, "Print the ids alone, as [1, 2, 3]");
  command.AddFlag("--json", a->json, "Print JSON");
  command.AddFlag("--no-bos", a->no_bos,
                  "Don't add the tokens (BOS, EOS) that the model asks for around a text");
  command.AddFlag("--no-parse-special", a->no_parse_special,
                  "Text such as <|im_end|> is text, not that token");
  command
      .AddParsed(
          "--detokenize",
          [a = a](const std::string& ids) {
            a->detokenize = ids;
            a->has_detokenize = true;
            return std::string();
          },
          "Print the text of these ids: 1,2,3")
      .ValueName("IDS")
      .Excludes({"--prompt", "--file", "--ids"});
}

}  // namespace trine
