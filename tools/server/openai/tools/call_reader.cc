#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tools/server/openai/tools/answer_reader.h"
#include "tools/server/openai/tools/call_text.h"

namespace trine::server {
namespace {

// The most bytes between a mark and the arguments.
constexpr size_t kMaxHeadBytes = 512;

bool IsWord(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n\"\\<>{}[]") == text.npos;
}

std::string Trimmed(std::string_view text) {
  return std::string(absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())));
}

// The text between a mark and the arguments: name[ARGS], with or without an id; or DeepSeek's type,
// separator and name, or its name and separator.
struct CallHead {
  std::string name;
  bool ended = false;   // the name is complete
  bool may_be = false;  // it is a head, or may become one
};

CallHead HeadOf(ToolFamily family, std::string_view text) {
  CallHead head;
  if (family == ToolFamily::kMistral) {
    const size_t bracket = text.find('[');
    head.name = Trimmed(text.substr(0, bracket));
    head.ended = bracket != text.npos;
    head.may_be = IsWord(head.name);
    return head;
  }
  if (family != ToolFamily::kDeepSeek) return head;
  constexpr std::string_view kBegin = "<｜tool▁call▁begin｜>", kSeparator = "<｜tool▁sep｜>";
  const std::string_view marks[] = {kBegin, kSeparator};
  if (text.starts_with(kBegin)) text.remove_prefix(kBegin.size());
  const size_t separator = text.find(kSeparator);
  const std::string before = Trimmed(text.substr(0, separator));
  if (separator == text.npos) {
    head.may_be = IsWord(before.substr(0, before.size() - HeldBytes(before, marks))) ||
                  BeginsMark(before, marks) || before.empty();
    return head;
  }
  const std::string_view after = text.substr(separator + kSeparator.size());
  const size_t line = after.find('\n');
  const std::string name = Trimmed(after.substr(0, line));
  // V3 has "function" before the separator and the name after it. V3.1 has the name before it, and
  // nothing after it.
  head.name = name.empty() ? before : name;
  head.ended = name.empty() ? before != "function" : line != after.npos;
  head.may_be = IsWord(before) && (name.empty() || IsWord(name));
  return head;
}

class CallReader : public AnswerReader {
 public:
  // `behind_mark`: the text begins within a call.
  CallReader(ToolFamily family, const std::vector<Tool>& tools, bool behind_mark)
      : family_(family),
        tools_(tools),
        state_(behind_mark ? State::kMark : State::kText),
        marked_(behind_mark) {}

  void Push(std::string_view text, std::vector<AnswerPiece>* out) override {
    rest_ += text;
    for (bool more = true; more && !rest_.empty();) {
      switch (state_) {
        case State::kText:
          more = ReadText(out);
          break;
        case State::kMark:
          more = ReadMark(out);
          break;
        case State::kJson:
          more = ReadJson(out);
          break;
        case State::kFunction:
          more = ReadFunctionText(out);
          break;
        case State::kAfter:
          more = ReadAfter();
          break;
      }
    }
  }

  void Finish(std::vector<AnswerPiece>* out) override {
    const bool in_call = state_ != State::kText && state_ != State::kAfter;
    if (in_call && EndInCall(out)) return;
    // After a call, the beginning of a mark is a mark that was cut.
    if (after_call_ &&
        (BeginsMark(rest_, CallEnds(family_)) || BeginsMark(rest_, CallMarks(family_))))
      rest_.clear();
    const std::string left = std::exchange(raw_, {}) + std::exchange(rest_, {});
    if (!left.empty() || !after_call_) Content(left, out);
    state_ = State::kText;
  }

 private:
  enum class State {
    kText,      // content
    kMark,      // after a mark: white space, or a name before the JSON
    kJson,      // within a call
    kFunction,  // within a call of Qwen3-Coder
    kAfter,     // after a call: an end mark, another call, or content
  };

  // Each takes what it can from the front of rest_. Returns true if there may be more to do without
  // further text.
  bool ReadText(std::vector<AnswerPiece>* out) {
    if (at_begin_) {
      SkipSpace();
      if (rest_.empty()) return false;
      if (CallsWithoutMark(family_) && (rest_[0] == '{' || rest_[0] == '[')) {
        marked_ = false;
        mark_bytes_ = 0;
        return BeginJson("");
      }
    }
    const std::span<const std::string_view> marks = CallMarks(family_);
    const FoundMark found = FindMark(rest_, marks);
    if (found.at == std::string::npos) {
      const size_t shown = rest_.size() - HeldBytes(rest_, marks);
      if (shown > 0) Content(rest_.substr(0, shown), out);
      rest_.erase(0, shown);
      return false;
    }
    if (found.at > 0) Content(rest_.substr(0, found.at), out);
    // The beginning of a function is read again, as what follows a mark.
    const bool inner = found.mark == kFunctionBegin;
    rest_.erase(0, found.at + (inner ? 0 : found.mark.size()));
    raw_ = inner ? "" : found.mark;
    mark_bytes_ = found.mark.size();
    marked_ = true;
    state_ = State::kMark;
    return true;
  }

  bool ReadMark(std::vector<AnswerPiece>* out) {
    const size_t begin =
        static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), IsSpace) - rest_.begin());
    raw_ += rest_.substr(0, begin);
    rest_.erase(0, begin);
    if (rest_.empty()) return false;
    if (rest_[0] == '{' || rest_[0] == '[') return BeginJson("");
    if (family_ == ToolFamily::kCoder) {
      const std::string_view function[] = {kFunctionBegin};
      if (BeginsMark(rest_, function)) return false;
      if (!rest_.starts_with(kFunctionBegin)) return GiveUp(out);
      json_at_ = raw_.size();
      state_ = State::kFunction;
      return true;
    }
    return ReadHead(out);
  }

  bool ReadJson(std::vector<AnswerPiece>* out) {
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (!extent_.Push(rest_[i])) continue;
      raw_ += rest_.substr(0, i + 1);
      rest_.erase(0, i + 1);
      return EndCall(out);
    }
    raw_ += std::exchange(rest_, {});
    return false;
  }

  // Checks for a call only where it may end, because an argument may be a long text.
  bool ReadFunctionText(std::vector<AnswerPiece>* out) {
    const size_t known = raw_.size();
    raw_ += std::exchange(rest_, {});
    size_t from = std::max(json_at_, known - std::min(known, kFunctionEnd.size() - 1));
    for (size_t at; (at = raw_.find(kFunctionEnd, from)) != raw_.npos; from = at + 1) {
      const size_t end = at + kFunctionEnd.size();
      FunctionText read =
          ReadFunction(std::string_view(raw_).substr(json_at_, end - json_at_), tools_);
      if (read.state == FunctionText::State::kCut) continue;  // the end mark was part of a value
      if (read.state == FunctionText::State::kWrong) return GiveUp(out);
      rest_ = raw_.substr(end);
      read.call.id = NewCallId(family_);
      std::vector<ToolCall> calls;
      calls.push_back(std::move(read.call));
      GiveCalls(std::move(calls), out);
      state_ = State::kAfter;
      return true;
    }
    return false;
  }

  // Reads a name before the JSON.
  bool ReadHead(std::vector<AnswerPiece>* out) {
    if (family_ != ToolFamily::kMistral && family_ != ToolFamily::kDeepSeek) return GiveUp(out);
    const size_t brace = rest_.find('{');
    if (brace == std::string::npos && rest_.size() <= kMaxHeadBytes) return false;
    const std::string head = rest_.substr(0, brace);
    const CallHead read = HeadOf(family_, head);
    if (brace > kMaxHeadBytes || !IsWord(read.name)) return GiveUp(out);
    raw_ += head;
    rest_.erase(0, brace);
    return BeginJson(read.name);
  }
  bool ReadAfter() {
    SkipSpace();
    if (rest_.empty()) return false;
    const std::span<const std::string_view> ends = CallEnds(family_);
    const FoundMark found = FindMark(rest_, ends);
    if (found.at != 0 && BeginsMark(rest_, ends)) return false;
    if (found.at == 0) {
      rest_.erase(0, found.mark.size());
      space_.clear();
      // DeepSeek's calls have several end marks.
      if (family_ == ToolFamily::kDeepSeek) return true;
    }
    state_ = State::kText;
    return true;
  }

  // Llama puts a semicolon between several calls.
  void SkipSpace() {
    const bool semicolons = after_call_ && CallsWithoutMark(family_);
    size_t n = 0;
    while (n < rest_.size() && (IsSpace(rest_[n]) || (semicolons && rest_[n] == ';'))) ++n;
    space_ += rest_.substr(0, n);
    rest_.erase(0, n);
  }

  bool BeginJson(std::string_view name) {
    name_ = name;
    json_at_ = raw_.size();
    extent_ = JsonExtent();
    state_ = State::kJson;
    return true;
  }

  bool EndCall(std::vector<AnswerPiece>* out) {
    const std::string_view json = std::string_view(raw_).substr(json_at_);
    std::vector<ToolCall> calls;
    if (name_.empty()) {
      calls = ReadCalls(json, family_);
    } else if (std::string arguments = ReadArguments(json); !arguments.empty()) {
      calls.push_back({NewCallId(family_), name_, std::move(arguments)});
    }
    // Without a mark it could be an answer in JSON that has a member `name`.
    if (calls.empty() || (!marked_ && !IsKnown(calls))) return GiveUp(out);
    GiveCalls(std::move(calls), out);
    state_ = State::kAfter;
    return true;
  }

  // Ends what was not a call. Reads what follows the mark again, because there may be another mark
  // in it.
  bool GiveUp(std::vector<AnswerPiece>* out) {
    const size_t shown = marked_ ? mark_bytes_ : 1;
    rest_ = raw_.substr(std::min(shown, raw_.size())) + rest_;
    const std::string head = raw_.substr(0, shown);
    raw_.clear();
    state_ = State::kText;
    at_begin_ = false;
    if (!head.empty()) Content(head, out);
    return true;
  }
  // Ends a call that the end of the text cuts short. Returns false if it seems to be no call.
  bool EndInCall(std::vector<AnswerPiece>* out) {
    std::vector<ToolCall> calls;
    if (state_ == State::kMark && family_ == ToolFamily::kCoder) {
      const std::string_view function[] = {kFunctionBegin};
      if (!rest_.empty() && !BeginsMark(rest_, function)) return false;
    } else if (state_ == State::kFunction) {
      FunctionText read = ReadFunction(std::string_view(raw_).substr(json_at_), tools_);
      if (read.state != FunctionText::State::kCut) return false;
      read.call.id = NewCallId(family_);
      if (!read.call.name.empty()) calls.push_back(std::move(read.call));
    } else if (state_ == State::kMark) {
      // The name is complete once something follows it.
      const CallHead head = HeadOf(family_, rest_);
      if (!rest_.empty() && !head.may_be) return false;
      if (head.ended) calls.push_back({NewCallId(family_), head.name, "", /*cut=*/true});
    } else if (const auto json = std::string_view(raw_).substr(json_at_); name_.empty()) {
      calls = ReadCutCalls(json, family_);
    } else {
      calls.push_back({NewCallId(family_), name_, std::string(json), /*cut=*/true});
    }
    if (!marked_ && (calls.empty() || !IsKnown(calls))) return false;
    GiveCalls(std::move(calls), out);
    rest_.clear();
    state_ = State::kText;
    return true;
  }

  void GiveCalls(std::vector<ToolCall> calls, std::vector<AnswerPiece>* out) {
    for (ToolCall& call : calls) {
      out->push_back({.kind = AnswerPiece::Kind::kCall, .text = "", .call = std::move(call)});
    }
    raw_.clear();
    space_.clear();
    at_begin_ = after_call_ = true;
  }

  void Content(std::string_view text, std::vector<AnswerPiece>* out) {
    std::string content = std::exchange(space_, {});
    content += text;
    at_begin_ = after_call_ = false;
    if (content.empty()) return;
    out->push_back({.kind = AnswerPiece::Kind::kContent, .text = std::move(content), .call = {}});
  }

  bool IsKnown(const std::vector<ToolCall>& calls) const {
    return std::all_of(calls.begin(), calls.end(), [this](const ToolCall& call) {
      return std::any_of(tools_.begin(), tools_.end(),
                         [&call](const Tool& tool) { return tool.name == call.name; });
    });
  }

  const ToolFamily family_;
  const std::vector<Tool> tools_;
  State state_;
  std::string rest_;         // not read yet, or undecided
  std::string raw_;          // the current call, from its mark on
  size_t mark_bytes_ = 0;    // the length of the mark at the beginning of raw_
  size_t json_at_ = 0;       // the place of the JSON in raw_
  std::string name_;         // the call's name, if it stands before the JSON
  JsonExtent extent_;        // finds the end of the JSON
  bool marked_;              // the current call has a mark
  bool at_begin_ = true;     // no content since the beginning or the last call
  bool after_call_ = false;  // no content since the last call
  std::string space_;        // at_begin_: dropped if a call follows
};

}  // namespace

std::unique_ptr<AnswerReader> NewCallReader(ToolFamily family, const std::vector<Tool>& tools,
                                            bool behind_mark) {
  return std::make_unique<CallReader>(family, tools, behind_mark);
}

}  // namespace trine::server
