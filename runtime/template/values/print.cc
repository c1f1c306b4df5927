#include "runtime/template/values/print.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer/utf8.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

// A string may grow by this many bytes before they are paid for.
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

  // Breaks the line before an item at `depth`.
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

  // Pays for the text since the last call, because nested lists that share parts can be endless.
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
      // Each key is compared about log2 of the number of keys times.
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
    size_t plain = 0;  // no byte from here to `at` needs an escape
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

  // Sets `escaped`; leaves it empty for a character that needs no escape.
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
  size_t paid_;  // part of the memory of out_
};

// Builds values while the JSON is read. A stack holds lists and dicts that are not complete yet.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view what) : what_(what) {}

  bool null() override { return Put(Value::None()); }
  bool boolean(bool value) override { return Put(Value::Bool(value)); }
  bool number_integer(int64_t value) override { return Put(Value::Int(value)); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Put(Value::Float(static_cast<double>(value)));
    }
    return Put(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string&) override { return Put(Value::Float(value)); }
  bool string(std::string& value) override { return Put(Value::String(value, true)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(true); }
  bool start_array(size_t) override { return Open(false); }
  bool key(std::string& key) override {
    open_.back().key = Text(key, true);
    return true;
  }
  bool end_object() override {
    Dict dict = std::move(open_.back().dict);
    open_.pop_back();
    return Put(Given::OfDict(std::move(dict)));
  }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return Put(Given::OfList(std::move(items)));
  }
  bool parse_error(size_t place, const std::string&, const nlohmann::json::exception&) override {
    status_ = Wrong(what_, " can't be read as JSON, from byte ", place, " on");
    return false;
  }

  absl::StatusOr<Value> Take() {
    if (!status_.ok()) return status_;
    return std::move(result_);
  }

 private:
  struct Container {
    bool object = false;
    Text key;
    Dict dict;
    std::vector<Value> items;
  };

  bool Open(bool object) {
    if (open_.size() >= static_cast<size_t>(kMaxHeight)) {
      status_ = TooMuch(what_, " nests lists more than ", kMaxHeight, " deep");
      return false;
    }
    open_.push_back({object, {}, {}, {}});
    return true;
  }
  bool Put(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().object) {
      open_.back().dict.Set(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  const std::string_view what_;
  std::vector<Container> open_;
  Value result_;
  absl::Status status_;
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
  // Prints numbers of everyday size without an exponent.
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

absl::StatusOr<Value> ParseJson(std::string_view json, std::string_view what) {
  Builder builder(what);
  nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return builder.Take();
}

}  // namespace trine::jinja
