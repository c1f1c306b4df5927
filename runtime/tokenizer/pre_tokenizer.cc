#include "runtime/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace trine {
namespace {

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

// PCRE2's \s also takes U+180E, which is no White_Space since Unicode 6.3.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Writes out \s and \S.
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
    // Without the right to make code (a hardened system) the interpreter does the same, slower.
    expression->jit_ =
        allow_jit && pcre2_jit_compile(expression->code_.get(), PCRE2_JIT_COMPLETE) == 0;
    return std::unique_ptr<const Expression>(std::move(expression));
  }

  // A match in text[begin, end), which is looked at as if it were all there is: its place is in
  // `data`. PCRE2's result.
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
  // The rules are ours and backtrack over a run of spaces at most once: more is a bug, which must
  // not look like a hang.
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
