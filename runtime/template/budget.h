// What one rendering may cost. A template comes with the model file, from anybody: whatever it
// says, it ends, and in the memory it was given.
#ifndef TRINE_RUNTIME_TEMPLATE_BUDGET_H_
#define TRINE_RUNTIME_TEMPLATE_BUDGET_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/value.h"
#include "runtime/template/words.h"

namespace trine::jinja {

struct Limits {
  int64_t steps = 5'000'000;   // expressions and statements evaluated, and bytes gone over
  int64_t memory = 256 << 20;  // bytes made, whether or not they are kept
  int64_t output = 64 << 20;   // bytes of the result
  int depth = 400;             // expressions in statements in macros in ...
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  absl::Status Step() {
    if (++steps_ <= limits_.steps) return absl::OkStatus();
    return TooMuch("the template takes more than ", limits_.steps, " steps");
  }
  // Going over `n` bytes or items.
  absl::Status Work(int64_t n) {
    steps_ += n / kBytesPerStep;
    return Step();
  }
  absl::Status Allocate(int64_t bytes) {
    memory_ += bytes;
    if (bytes <= limits_.memory && memory_ <= limits_.memory) return absl::OkStatus();
    return TooMuch("the template makes more than ", limits_.memory, " bytes");
  }
  // A text that is being made grew from `before`, as its memory() tells.
  absl::Status Grown(const Text& text, size_t before) {
    return Allocate(static_cast<int64_t>(text.memory() - before));
  }
  // A text that is written grew to `size`, by `added`.
  absl::Status Output(size_t size, size_t added) {
    if (static_cast<int64_t>(size) > limits_.output) {
      return TooMuch("the template writes more than ", limits_.output, " bytes");
    }
    if (absl::Status s = Allocate(static_cast<int64_t>(added)); !s.ok()) return s;
    return Work(static_cast<int64_t>(added));
  }

  // Into an expression, a block, a filter called by a filter. RESOURCE_EXHAUSTED where that is too
  // deep; else Leave() must follow.
  absl::Status Enter() {
    if (depth_ >= limits_.depth) {
      return TooMuch("the template goes more than ", limits_.depth, " levels deep");
    }
    ++depth_;
    return absl::OkStatus();
  }
  void Leave() { --depth_; }

  // Values that hold something, paid for.
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
  // The entries were paid for by Set.
  absl::StatusOr<Value> OfDict(Dict dict) {
    if (absl::Status s = Allocate(kValueBytes); !s.ok()) return s;
    return NotTooHigh(Value::OfDict(std::move(dict)));
  }
  absl::StatusOr<Value> OfNamespace(std::shared_ptr<Namespace> members) {
    if (absl::Status s = Allocate(kValueBytes); !s.ok()) return s;
    return Value::OfNamespace(std::move(members));
  }
  // `height`: of what the function holds.
  absl::StatusOr<Value> OfFunction(Function function, int height = 0) {
    if (absl::Status s = Allocate(2 * kValueBytes); !s.ok()) return s;
    return NotTooHigh(Value::OfFunction(std::move(function), height));
  }
  // An entry of a dict that is being made. Nothing is copied before it is paid for.
  absl::Status Set(const Text& key, Value value, Dict* dict) {
    const int64_t bytes = 2 * static_cast<int64_t>(key.memory());  // once in the index
    if (absl::Status s = Work(bytes); !s.ok()) return s;
    if (absl::Status s = Allocate(kValueBytes + bytes); !s.ok()) return s;
    dict->Set(key, std::move(value));
    return absl::OkStatus();
  }

  const Limits& limits() const { return limits_; }

 private:
  static constexpr int64_t kBytesPerStep = 32;
  // What an object takes, and what an item of a list does, with the room vectors grow into.
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

#endif  // TRINE_RUNTIME_TEMPLATE_BUDGET_H_
