// Limits one rendering. A template comes with a model file from anywhere, so whatever it contains,
// its rendering must end and stay within the memory that it is given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/values/value.h"

namespace trine::jinja {

// Joins parts of a message. absl::StrCat does not take std::string_view everywhere, because an
// Abseil built for C++14 has its own string view.
template <class... Parts>
std::string Words(const Parts&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_arithmetic_v<Part>) {
      text += std::to_string(part);
    } else if constexpr (std::is_convertible_v<Part, std::string_view>) {
      text += std::string_view(part);
    } else {
      text.append(part.data(), part.size());
    }
  };
  (add(parts), ...);
  return text;
}

// Returns INVALID_ARGUMENT: the template or its variables are invalid.
template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(Words(parts...));
}

// Returns RESOURCE_EXHAUSTED: a limit was exceeded.
template <class... Parts>
absl::Status TooMuch(const Parts&... parts) {
  return absl::ResourceExhaustedError(Words(parts...));
}

// The most that one rendering may use.
struct Limits {
  int64_t steps = 5'000'000;   // expressions and statements evaluated, and bytes read
  int64_t memory = 256 << 20;  // bytes allocated, kept or not
  int64_t output = 64 << 20;   // bytes of the result
  int depth = 400;             // nesting of expressions, statements and macros
};

// Counts what a rendering has used, and makes the values that hold memory. Its functions fail with
// RESOURCE_EXHAUSTED beyond a limit.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  // Pays for one step.
  absl::Status Step() {
    if (++steps_ <= limits_.steps) return absl::OkStatus();
    return TooMuch("the template takes more than ", limits_.steps, " steps");
  }
  // Pays for reading `n` bytes or items.
  absl::Status Work(int64_t n) {
    steps_ += n / kBytesPerStep;
    return Step();
  }
  // Pays for memory. Freed memory is not given back to the budget.
  absl::Status Allocate(int64_t bytes) {
    memory_ += bytes;
    if (bytes <= limits_.memory && memory_ <= limits_.memory) return absl::OkStatus();
    return TooMuch("the template makes more than ", limits_.memory, " bytes");
  }
  // Pays for the growth of a text whose memory() was `before`.
  absl::Status Grown(const Text& text, size_t before) {
    return Allocate(static_cast<int64_t>(text.memory() - before));
  }
  // Pays for `added` bytes of output, which then has `size` bytes.
  absl::Status Output(size_t size, size_t added) {
    if (static_cast<int64_t>(size) > limits_.output) {
      return TooMuch("the template writes more than ", limits_.output, " bytes");
    }
    if (absl::Status s = Allocate(static_cast<int64_t>(added)); !s.ok()) return s;
    return Work(static_cast<int64_t>(added));
  }

  // Enters an expression, a block, or a filter called by a filter. Fails with RESOURCE_EXHAUSTED if
  // that is too deep; otherwise Leave() must follow.
  absl::Status Enter() {
    if (depth_ >= limits_.depth) {
      return TooMuch("the template goes more than ", limits_.depth, " levels deep");
    }
    ++depth_;
    return absl::OkStatus();
  }
  void Leave() { --depth_; }

  // Make values that hold memory, and pay for them.
  absl::StatusOr<Value> String(Text text) {
    if (absl::Status s = Allocate(kValueBytes + static_cast<int64_t>(text.memory())); !s.ok()) {
      return s;
    }
    return Value::String(std::move(text));
  }
  absl::StatusOr<Value> OfList(std::vector<Value> items) {
    const int64_t bytes = kValueBytes + kItemBytes * static_cast<int64_t>(items.size());
    if (absl::Status s = Allocate(bytes); !s.ok()) return s;
    return NotTooHigh(Value::OfList(std::move(items)));
  }
  // Pays only for the dict itself: Set has paid for the entries.
  absl::StatusOr<Value> OfDict(Dict dict) {
    if (absl::Status s = Allocate(kValueBytes); !s.ok()) return s;
    return NotTooHigh(Value::OfDict(std::move(dict)));
  }
  absl::StatusOr<Value> OfNamespace(std::shared_ptr<Namespace> members) {
    if (absl::Status s = Allocate(kValueBytes); !s.ok()) return s;
    return Value::OfNamespace(std::move(members));
  }
  // `height`: the largest height of the values that the function holds.
  absl::StatusOr<Value> OfFunction(Function function, int height = 0) {
    if (absl::Status s = Allocate(2 * kValueBytes); !s.ok()) return s;
    return NotTooHigh(Value::OfFunction(std::move(function), height));
  }
  // Adds an entry to a dict that is being made. Copies nothing before it is paid for.
  absl::Status Set(const Text& key, Value value, Dict* dict) {
    const int64_t bytes = 2 * static_cast<int64_t>(key.memory());  // the index has a copy
    if (absl::Status s = Work(bytes); !s.ok()) return s;
    if (absl::Status s = Allocate(kValueBytes + bytes); !s.ok()) return s;
    dict->Set(key, std::move(value));
    return absl::OkStatus();
  }

  const Limits& limits() const { return limits_; }

 private:
  static constexpr int64_t kBytesPerStep = 32;
  // Bytes of an object and of a list item, with the spare room of vectors.
  static constexpr int64_t kValueBytes = 128;
  static constexpr int64_t kItemBytes = 48;

  static absl::StatusOr<Value> NotTooHigh(Value value) {
    if (value.height() <= kMaxHeight) return value;
    return TooMuch("the template nests lists more than ", kMaxHeight, " deep");
  }

  Limits limits_;
  int64_t steps_ = 0;
  int64_t memory_ = 0;
  int depth_ = 0;
};

}  // namespace trine::jinja
