#include "runtime/template/values/text.h"

#include <locale.h>
#include <string.h>
#include <wctype.h>

#include <algorithm>

#include "runtime/tokenizer/utf8.h"

namespace trine::jinja {
namespace {

// Returns the first span that ends after `byte`.
std::vector<Text::Span>::const_iterator FirstBehind(const std::vector<Text::Span>& spans,
                                                    size_t byte) {
  return std::upper_bound(spans.begin(), spans.end(), byte,
                          [](size_t at, const Text::Span& span) { return at < span.end; });
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns a locale that makes case independent of the host's locale. Returns null if the C library
// has no Unicode tables; then letters beyond ASCII are left unchanged.
locale_t UnicodeLocale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

uint32_t ToUpper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  const locale_t locale = UnicodeLocale();
  return locale == nullptr ? c : static_cast<uint32_t>(towupper_l(static_cast<wint_t>(c), locale));
}

uint32_t ToLower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  const locale_t locale = UnicodeLocale();
  return locale == nullptr ? c : static_cast<uint32_t>(towlower_l(static_cast<wint_t>(c), locale));
}

bool IsLetter(uint32_t c) { return ToUpper(c) != c || ToLower(c) != c; }

// The only letter in common use whose upper case has two letters.
constexpr uint32_t kSharpS = 0xDF;

void AppendUpper(uint32_t c, std::string* out) {
  if (c == kSharpS) {
    *out += "SS";
  } else {
    AppendUtf8(ToUpper(c), out);
  }
}

void AppendLower(uint32_t c, std::string* out) { AppendUtf8(ToLower(c), out); }

// Calls append(code_point, out) for every character. Each result keeps the character's mark.
template <class Append>
Text MapCharacters(const Text& text, Append append) {
  Text out;
  std::string character;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = NextUtf8(std::string_view(text.bytes()).substr(at));
    character.clear();
    append(step.code_point, &character);
    out.Append(character, text.ForeignAt(at));
    at += step.bytes;
  }
  return out;
}

}  // namespace

Text::Text(std::string bytes, bool foreign) : bytes_(std::move(bytes)) {
  if (foreign) Mark(0, bytes_.size());
}

void Text::Mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!foreign_.empty() && foreign_.back().end == begin) {
    foreign_.back().end = end;
  } else {
    foreign_.push_back({begin, end});
  }
}

void Text::Append(std::string_view bytes, bool foreign) {
  const size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (foreign) Mark(begin, bytes_.size());
}

void Text::Append(const Text& other, size_t begin, size_t end) {
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto span = FirstBehind(other.foreign_, begin);
       span != other.foreign_.end() && span->begin < end; ++span) {
    Mark(base + std::max(span->begin, begin) - begin, base + std::min(span->end, end) - begin);
  }
}

Text Text::Slice(size_t begin, size_t end) const {
  Text slice;
  slice.Append(*this, begin, end);
  return slice;
}

bool Text::ForeignAt(size_t byte) const {
  const auto span = FirstBehind(foreign_, byte);
  return span != foreign_.end() && span->begin <= byte;
}

size_t CountCharacters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), IsContinuation));
}

size_t Forward(std::string_view text, size_t at, int64_t n) {
  for (; n > 0 && at < text.size(); --n) {
    do {
      ++at;
    } while (at < text.size() && IsContinuation(text[at]));
  }
  return at;
}

size_t Backward(std::string_view text, size_t at, int64_t n) {
  for (; n > 0 && at > 0; --n) {
    do {
      --at;
    } while (at > 0 && IsContinuation(text[at]));
  }
  return at;
}

bool IsSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000 || c == 0xFEFF;
}

size_t LeadingSpace(std::string_view text) {
  size_t n = 0;
  while (n < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(n));
    if (!IsSpace(step.code_point)) break;
    n += step.bytes;
  }
  return n;
}

size_t TrailingSpace(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && IsContinuation(text[begin])) --begin;
    if (!IsSpace(NextUtf8(text.substr(begin)).code_point)) break;
    end = begin;
  }
  return text.size() - end;
}

Text Strip(const Text& text, Side side, const std::string_view* characters) {
  const std::string_view bytes = text.bytes();
  size_t begin = 0, end = bytes.size();
  if (characters == nullptr) {
    if (side != Side::kRight) begin = LeadingSpace(bytes);
    if (side != Side::kLeft && begin < end) end -= TrailingSpace(bytes);
    return text.Slice(begin, end);
  }
  const auto stripped = [&](size_t from, size_t to) {
    return characters->find(bytes.substr(from, to - from)) != std::string_view::npos;
  };
  while (side != Side::kRight && begin < end) {
    const size_t next = begin + NextUtf8(bytes.substr(begin)).bytes;
    if (!stripped(begin, next)) break;
    begin = next;
  }
  while (side != Side::kLeft && begin < end) {
    size_t last = end - 1;
    while (last > begin && IsContinuation(bytes[last])) --last;
    if (!stripped(last, end)) break;
    end = last;
  }
  return text.Slice(begin, end);
}

Text Upper(const Text& text) { return MapCharacters(text, AppendUpper); }
Text Lower(const Text& text) { return MapCharacters(text, AppendLower); }

Text Capitalize(const Text& text) {
  bool first = true;
  return MapCharacters(text, [&](uint32_t c, std::string* out) {
    (first ? AppendUpper : AppendLower)(c, out);
    first = false;
  });
}

Text Title(const Text& text) {
  bool in_word = false;
  return MapCharacters(text, [&](uint32_t c, std::string* out) {
    (in_word ? AppendLower : AppendUpper)(c, out);
    in_word = IsLetter(c);
  });
}

size_t Find(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // memmem is linear; std::string_view::find is not.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace trine::jinja
