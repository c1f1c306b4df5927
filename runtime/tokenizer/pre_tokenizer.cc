#include "runtime/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace trine {
namespace {

using Pattern = std::string_view;

// The expressions of the models' own tokenizer.json. An expression that could take more than linear
// time is written in another way with the same matches.

constexpr Pattern kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr Pattern kThreeDigits = "[0-9][0-9][0-9]";
constexpr Pattern kOneNumber = R"(\p{N})";

constexpr Pattern kDefault[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", kThreeDigits};
constexpr Pattern kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words, kThreeDigits};
constexpr Pattern kGpt2[] = {kGpt2Words};
constexpr Pattern kStarcoder[] = {kOneNumber, kGpt2Words};

constexpr Pattern kLlama3[] = {
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kJais2[] = {
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|)"
    R"(\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"};
constexpr Pattern kQwen2[] = {
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kQwen35[] = {
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kMinicpm5[] = {
    R"(\p{N}{1,3})",
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kBailingMoe[] = {
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Pattern kSeedCoder[] = {
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kTekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kGpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kOneLineBreak = R"([\r\n])";
constexpr Pattern kDeepseekCjk = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr Pattern kDeepseekLlm[] = {
    kOneLineBreak,
    // Letters of scripts with two cases.
    R"(\s?[A-Za-z)"
    R"(\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-\x{01BF})"
    R"(\x{01C4}-\x{0293}\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}\x{0377}\x{037B}-\x{037D})"
    R"(\x{037F}\x{0386}\x{0388}-\x{038A}\x{038C}\x{038E}-\x{03A1}\x{03A3}-\x{03F5})"
    R"(\x{03F7}-\x{0481}\x{048A}-\x{052F}\x{0531}-\x{0556}\x{10A0}-\x{10C5})"
    R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"
    R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"
    R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B})"
    R"(\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    // Spaces at the end. The look-behind keeps a long run of spaces elsewhere from being tried
    // again from each of its positions.
    R"((?<!\s)\s++\z)", kDeepseekCjk, R"(\p{N}+)"};
constexpr Pattern kDeepseekCoder[] = {kOneLineBreak, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk,
                                      kOneNumber};
constexpr Pattern kDeepseekV3[] = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kBloomWords =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";
constexpr Pattern kBloom[] = {kBloomWords};
constexpr Pattern kViking[] = {kBloomWords, kOneNumber};
constexpr Pattern kChameleon[] = {"<sentinel:[0-9]+>",       "IMGIMG[A-I]{1,4}Z",
                                  R"([\t\n]|    |  )",       kOneNumber,
                                  R"([\p{P}!-/:-@\[-`{-~])", kGpt2Words};

struct NamedRule {
  std::string_view name;
  PreTokenizerRule rule;
};

constexpr bool kWholeWords = true;
constexpr bool kAddBos = true;

constexpr NamedRule kRules[] = {
    {"default", {kDefault}},
    {"gpt-2", {kGpt2}},
    {"llama-bpe", {kLlama3, kWholeWords, kAddBos}},
    {"llama3", {kLlama3, kWholeWords, kAddBos}},
    {"llama-v3", {kLlama3, kWholeWords, kAddBos}},
    {"qwen2", {kQwen2}},
    {"deepseek-llm", {kDeepseekLlm}},
    {"deepseek-coder", {kDeepseekCoder}},
    {"deepseek-v3", {kDeepseekV3}},
    {"deepseek-r1-qwen", {kQwen2}},
    {"falcon", {kFalcon}},
    {"starcoder", {kStarcoder}},
    {"refact", {kStarcoder}},
    {"mpt", {kGpt2}},
    {"tekken", {kTekken, kWholeWords, kAddBos}},
    {"smollm", {kStarcoder}},
    // Other names of these rules, and rules made of the same expressions.
    {"a.x-4.0", {kGpt2}},
    {"bailingmoe", {kBailingMoe}},
    {"bailingmoe2", {kBailingMoe}},
    {"bloom", {kBloom}},
    {"chameleon", {kChameleon, !kWholeWords, kAddBos}},
    {"chatglm-bpe", {kLlama3}},
    {"codeshell", {kStarcoder}},
    {"command-r", {kStarcoder}},
    {"dbrx", {kLlama3}},
    {"exaone", {kStarcoder}},
    {"exaone4", {kGpt2}},
    {"f2llmv2", {kQwen2}},
    {"falcon-h1", {kLlama3, kWholeWords, kAddBos}},
    {"falcon3", {kLlama3, kWholeWords, kAddBos}},
    {"gigachat", {kGpt2}},
    {"glm4", {kLlama3}},
    {"gpt-4o", {kGpt4o}},
    {"gpt3-finnish", {kBloom}},
    {"granite-docling", {kGpt2}},
    {"grok-2", {kQwen2}},
    {"hunyuan", {kQwen2}},
    {"hunyuan-dense", {kDeepseekV3}},
    {"jais", {kGpt2}},
    {"jais-2", {kJais2}},
    {"jina-de", {kGpt2}},
    {"jina-es", {kGpt2}},
    {"joyai-llm", {kDeepseekV3}},
    {"kanana2", {kGpt4o}},
    {"kormo", {kQwen2}},
    {"lfm2", {kLlama3, kWholeWords, kAddBos}},
    {"llada-moe", {kBailingMoe}},
    {"llama4", {kGpt4o}},
    {"megrez", {kQwen2}},
    {"mellum", {kGpt2}},
    {"mellum2", {kStarcoder}},
    {"midm-2.0", {kLlama3, kWholeWords, kAddBos}},
    {"minerva-7b", {kStarcoder}},
    {"minicpm5", {kMinicpm5, kWholeWords}},
    {"minimax-m2", {kGpt4o}},
    {"olmo", {kGpt2}},
    {"phi-2", {kGpt2}},
    {"pixtral", {kLlama3, kWholeWords, kAddBos}},
    {"poro-chat", {kBloom}},
    {"qwen35", {kQwen35}},
    {"seed-coder", {kSeedCoder}},
    {"smaug-bpe", {kLlama3}},
    {"solar-open", {kQwen2}},
    {"stablelm2", {kQwen2}},
    {"talkie", {kGpt4o}},
    {"trillion", {kGpt2}},
    {"viking", {kViking}},
};

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;

// PCRE2's \s also matches U+180E, which is not White_Space since Unicode 6.3.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Replaces \s and \S by explicit classes.
std::string ExpandWhiteSpace(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\') {
      if (c == '[' && !in_class) in_class = true;
      if (c == ']' && in_class) in_class = false;
      out += c;
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's') {
      if (!in_class) out += '[';
      out += kWhiteSpace;
      if (!in_class) out += ']';
    } else if (escaped == 'S') {
      out += "[^";
      out += kWhiteSpace;
      out += ']';
    } else {
      out += c;
      out += escaped;
    }
  }
  return out;
}

std::string ErrorText(int code) {
  PCRE2_UCHAR8 text[256];
  if (pcre2_get_error_message(code, text, sizeof(text)) < 0) return absl::StrCat("error ", code);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

const PreTokenizerRule* FindPreTokenizerRule(std::string_view name) {
  if (name.empty()) name = "default";
  for (const NamedRule& named : kRules) {
    if (named.name == name) return &named.rule;
  }
  return nullptr;
}

std::string PreTokenizerNames() {
  std::string names;
  for (const NamedRule& named : kRules) names.append(names.empty() ? "" : ", ").append(named.name);
  return names;
}

class PreTokenizer::Expression {
 public:
  static absl::StatusOr<std::unique_ptr<const Expression>> Create(std::string_view pattern,
                                                                  bool allow_jit) {
    auto expression = std::make_unique<Expression>();
    const std::string expanded = ExpandWhiteSpace(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    expression->code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(expanded.data()),
                                          expanded.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset,
                                          nullptr));
    if (expression->code_ == nullptr) {
      return absl::InternalError(absl::StrCat("the pre-tokenizer's expression '", expanded,
                                              "' is wrong at offset ", offset, ": ",
                                              ErrorText(error)));
    }
    // If the system forbids making code (a hardened one), the interpreter does the same, slower.
    expression->jit_ =
        allow_jit && pcre2_jit_compile(expression->code_.get(), PCRE2_JIT_COMPLETE) == 0;
    return std::unique_ptr<const Expression>(std::move(expression));
  }

  // Matches in the `bytes` bytes of `text`, from `from` on, as if there were no other text. Stores
  // the place in `data` and returns PCRE2's result.
  int Match(const char* text, size_t bytes, size_t from, pcre2_match_data* data,
            pcre2_match_context* context) const {
    const auto subject = reinterpret_cast<PCRE2_SPTR8>(text);
    if (jit_) {
      const int result = pcre2_jit_match(code_.get(), subject, bytes, from, 0, data, context);
      if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
    }
    return pcre2_match(code_.get(), subject, bytes, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                       context);
  }

 private:
  Code code_;
  bool jit_ = false;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;

absl::StatusOr<std::unique_ptr<const PreTokenizer>> PreTokenizer::Create(
    const PreTokenizerRule& rule, bool allow_jit) {
  auto pre_tokenizer = std::unique_ptr<PreTokenizer>(new PreTokenizer());
  for (const std::string_view pattern : rule.patterns) {
    auto expression = Expression::Create(pattern, allow_jit);
    if (!expression.ok()) return expression.status();
    pre_tokenizer->expressions_.push_back(*std::move(expression));
  }
  return std::unique_ptr<const PreTokenizer>(std::move(pre_tokenizer));
}

absl::Status PreTokenizer::Split(std::string_view text, std::vector<uint32_t>* ends) const {
  ends->clear();
  if (text.empty()) return absl::OkStatus();
  MatchData data(pcre2_match_data_create(1, nullptr));
  MatchContext context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) {
    return absl::ResourceExhaustedError("no memory to cut a text into words");
  }
  // The project's rules backtrack over a run of spaces at most once. More is a bug, which must not
  // look like a hang.
  pcre2_set_match_limit(context.get(), static_cast<uint32_t>(std::min<uint64_t>(
                                           UINT32_MAX, 1000 + 64 * uint64_t{text.size()})));

  ends->push_back(static_cast<uint32_t>(text.size()));
  std::vector<uint32_t> pieces;
  for (const auto& expression : expressions_) {
    pieces.swap(*ends);
    ends->clear();
    ends->reserve(pieces.size() + (expressions_.size() == 1 ? text.size() / 4 : 0));
    uint32_t begin = 0;
    for (const uint32_t end : pieces) {
      const char* const piece = text.data() + begin;
      const size_t bytes = end - begin;
      size_t done = 0;
      while (done < bytes) {
        const int result = expression->Match(piece, bytes, done, data.get(), context.get());
        if (result == PCRE2_ERROR_NOMATCH) break;
        if (result < 0) {
          return absl::InternalError(absl::StrCat("cutting a text of ", text.size(),
                                                  " bytes into words failed: ", ErrorText(result)));
        }
        const PCRE2_SIZE* match = pcre2_get_ovector_pointer(data.get());
        if (match[1] <= done) break;  // an empty match cuts nothing
        if (match[0] > done) ends->push_back(static_cast<uint32_t>(begin + match[0]));
        ends->push_back(static_cast<uint32_t>(begin + match[1]));
        done = match[1];
      }
      if (done < bytes) ends->push_back(end);
      begin = end;
    }
  }
  return absl::OkStatus();
}

}  // namespace trine
