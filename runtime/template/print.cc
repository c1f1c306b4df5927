#include "runtime/template/print.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/template/words.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

// Bytes of a string that grow before they are paid for.
constexpr size_t kPaidAtOnce = 4096;

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, bool undefined_is_null, Budget& budget, Text* out)
      : style_(style),
        undefined_is_null_(undefined_is_null),
        budget_(budget),
        out_(*out),
        paid_(out->memory()) {}

  absl::Status Write(const Value& value) {
    if (absl::Status s = WriteAt(0, value); !s.ok()) return s;
    return Pay();
  }

 private:
  absl::Status WriteAt(int depth, const Value& value) {
    if (absl::Status s = budget_.Step(); !s.ok()) return s;
    if (absl::Status s = Pay(); !s.ok()) return s;
    switch (value.kind()) {
      case Kind::kUndefined:
        out_.Append(undefined_is_null_ ? "null" : "undefined", false);
        return absl::OkStatus();
      case Kind::kNone:
        out_.Append("null", false);
        return absl::OkStatus();
      case Kind::kBool:
        out_.Append(value.boolean() ? "true" : "false", false);
        return absl::OkStatus();
      case Kind::kInt:
        out_.Append(Words(value.integer()), false);
        return absl::OkStatus();
      case Kind::kFloat:
        out_.Append(FloatText(value.real()), false);
        return absl::OkStatus();
      case Kind::kString:
        return WriteString(value.text());
      case Kind::kList:
        return WriteList(value.list(), depth);
      case Kind::kDict:
        return WriteDict(value.dict(), depth);
      case Kind::kNamespace:
        return WriteDict(value.members().members, depth);
      case Kind::kFunction:
        break;
    }
    return Wrong("a function can't be written as JSON");
  }

  // Before an item, at `depth`.
  void Break(int depth) {
    if (style_.indent == 0) return;
    out_.Append("\n", false);
    out_.Append(std::string(static_cast<size_t>(style_.indent * depth), ' '), false);
  }
  void Separate() {
    if (style_.custom_separators) {
      out_.Append(style_.item_separator);
    } else {
      out_.Append(style_.indent == 0 ? ", " : ",", false);
    }
  }

  // For what was written since it was called last: shared lists can be written without end.
  absl::Status Pay() {
    const size_t before = paid_;
    paid_ = out_.memory();
    return budget_.Grown(out_, before);
  }

  absl::Status WriteList(const std::vector<Value>& items, int depth) {
    if (depth > kMaxHeight) return TooMuch("a value holds itself");
    out_.Append("[", false);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) Separate();
      Break(depth + 1);
      if (absl::Status s = WriteAt(depth + 1, items[i]); !s.ok()) return s;
    }
    if (!items.empty()) Break(depth);
    out_.Append("]", false);
    return absl::OkStatus();
  }

  absl::Status WriteDict(const Dict& dict, int depth) {
    if (depth > kMaxHeight) return TooMuch("a value holds itself");
    std::vector<const Dict::Entry*> entries;
    int64_t key_bytes = 0;
    for (const Dict::Entry& entry : dict.entries()) {
      entries.push_back(&entry);
      key_bytes += static_cast<int64_t>(entry.key.size());
    }
    if (style_.sort_keys) {
      // Each key is compared about as often as the number of keys has bits.
      const int64_t times = std::bit_width(entries.size());
      if (absl::Status s = budget_.Work(key_bytes * times); !s.ok()) return s;
      std::sort(entries.begin(), entries.end(), [](const Dict::Entry* a, const Dict::Entry* b) {
        return a->key.bytes() < b->key.bytes();
      });
    }
    out_.Append("{", false);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) Separate();
      Break(depth + 1);
      if (absl::Status s = WriteString(entries[i]->key); !s.ok()) return s;
      if (style_.custom_separators) {
        out_.Append(style_.key_separator);
      } else {
        out_.Append(": ", false);
      }
      if (absl::Status s = WriteAt(depth + 1, entries[i]->value); !s.ok()) return s;
    }
    if (!entries.empty()) Break(depth);
    out_.Append("}", false);
    return absl::OkStatus();
  }

  absl::Status WriteString(const Text& text) {
    out_.Append("\"", false);
    std::string escaped;
    size_t paid_for = out_.size();
    size_t plain = 0;  // from here on nothing needs an escape
    const std::string_view bytes = text.bytes();
    for (size_t at = 0; at < bytes.size();) {
      const Utf8Step step = NextUtf8(bytes.substr(at));
      escaped.clear();
      Escape(step.code_point, &escaped);
      if (!escaped.empty()) {
        out_.Append(text, plain, at);
        out_.Append(escaped, text.ForeignAt(at));
        plain = at + step.bytes;
        if (out_.size() - paid_for > kPaidAtOnce) {
          if (absl::Status s = Pay(); !s.ok()) return s;
          paid_for = out_.size();
        }
      }
      at += step.bytes;
    }
    out_.Append(text, plain, bytes.size());
    out_.Append("\"", false);
    return Pay();
  }

  // Nothing, for a character that stands for itself.
  void Escape(uint32_t c, std::string* escaped) const {
    constexpr std::string_view kCharacters = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    if (c < 0x80 && kCharacters.find(static_cast<char>(c)) != std::string_view::npos) {
      *escaped = {'\\', kLetters[kCharacters.find(static_cast<char>(c))]};
    } else if (c < 0x20 || (style_.ascii && c >= 0x7F)) {
      if (c >= 0x10000) {
        AppendUnit(0xD800 + ((c - 0x10000) >> 10), escaped);
        AppendUnit(0xDC00 + ((c - 0x10000) & 0x3FF), escaped);
      } else {
        AppendUnit(c, escaped);
      }
    }
  }
  static void AppendUnit(uint32_t unit, std::string* out) {
    absl::StrAppend(out, "\\u", absl::Hex(unit, absl::kZeroPad4));
  }

  const JsonStyle& style_;
  const bool undefined_is_null_;
  Budget& budget_;
  Text& out_;
  size_t paid_;  // of its memory
};

}  // namespace

absl::Status AppendJson(const Value& value, const JsonStyle& style, Budget& budget, Text* out) {
  return JsonWriter(style, true, budget, out).Write(value);
}

absl::Status AppendPrinted(const Value& value, Budget& budget, Text* out) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return absl::OkStatus();
    case Kind::kString:
      out->Append(value.text());
      return absl::OkStatus();
    case Kind::kFunction:
      return Wrong("a function can't be printed: is a () missing?");
    default:
      return JsonWriter({}, false, budget, out).Write(value);
  }
}

absl::StatusOr<Text> Printed(const Value& value, Budget& budget) {
  Text text;
  if (absl::Status s = AppendPrinted(value, budget, &text); !s.ok()) return s;
  return text;
}

std::string FloatText(double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  // Numbers of a size people write come out without an exponent.
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-6 && size < 1e21);
  char buffer[400];
  const auto end =
      plain ? std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed)
            : std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace trine::jinja
