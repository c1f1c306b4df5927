#include "tools/server/openai/tools/answer_reader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/server/openai/tools/call_text.h"

namespace trine::server {
namespace {

using Kind = AnswerPiece::Kind;

constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kFunctions = "functions.";
constexpr std::string_view kHeaderBegins[] = {kStart, kChannel, kMessage, "<|constrain|>", "to="};
constexpr std::string_view kBodyEnds[] = {"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
constexpr size_t kMaxHeaderBytes = 1024;

std::string_view WithoutSpace(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  return text;
}

// Returns the word after `key`; "": there is none.
std::string_view WordBehind(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == header.npos) return "";
  const std::string_view rest = header.substr(at + key.size());
  const auto end =
      std::find_if(rest.begin(), rest.end(), [](char c) { return IsSpace(c) || c == '<'; });
  return rest.substr(0, static_cast<size_t>(end - rest.begin()));
}

// Returns whether the text begins a header, or may do so when more of it has come.
bool MayBeHeader(std::string_view text) {
  text = WithoutSpace(text);
  return text.empty() || BeginsMark(text, kHeaderBegins) || FindMark(text, kHeaderBegins).at == 0;
}

class ContentReader : public AnswerReader {
 public:
  void Push(std::string_view text, std::vector<AnswerPiece>* out) override {
    if (text.empty()) return;
    out->push_back({.kind = Kind::kContent, .text = std::string(text), .call = {}});
  }
  void Finish(std::vector<AnswerPiece>*) override {}
};

// Reads the channels of gpt-oss: analysis is reasoning, messages to functions are calls, and the
// rest is content.
class HarmonyReader : public AnswerReader {
 public:
  HarmonyReader(bool may_call, const AnswerStart& start)
      : may_call_(may_call), in_body_(start.kind != AnswerStart::Kind::kFree), name_(start.name) {
    if (start.kind == AnswerStart::Kind::kArguments) kind_ = Kind::kCall;
  }

  void Push(std::string_view text, std::vector<AnswerPiece>* out) override {
    rest_ += text;
    for (bool more = true; more && !rest_.empty();) more = in_body_ ? ReadBody(out) : ReadHeader();
  }

  void Finish(std::vector<AnswerPiece>* out) override {
    // A header without its message is dropped.
    if (!in_body_ && WithoutSpace(rest_).starts_with("<|")) rest_.clear();
    // So is half a mark after a call's arguments.
    if (kind_ == Kind::kCall) rest_.erase(rest_.size() - HeldBytes(rest_, kBodyEnds));
    AddToBody(std::exchange(rest_, {}), out);
    EndBody(/*cut=*/true, out);
  }

 private:
  // Each takes what it can from the front of rest_. Returns true if there may be more to do without
  // further text.
  bool ReadHeader() {
    const size_t end = rest_.find(kMessage);
    const size_t bytes = std::min(end, rest_.size());
    if (!MayBeHeader(rest_) || bytes > kMaxHeaderBytes) {
      BeginBody("");
      return true;
    }
    if (end == rest_.npos) return false;
    const std::string header = rest_.substr(0, end);
    rest_.erase(0, end + kMessage.size());
    BeginBody(header);
    return true;
  }

  bool ReadBody(std::vector<AnswerPiece>* out) {
    const FoundMark end = FindMark(rest_, kBodyEnds);
    if (end.at == std::string::npos) {
      const size_t shown = rest_.size() - HeldBytes(rest_, kBodyEnds);
      AddToBody(rest_.substr(0, shown), out);
      rest_.erase(0, shown);
      return false;
    }
    AddToBody(rest_.substr(0, end.at), out);
    EndBody(/*cut=*/false, out);
    // These two also begin the next header.
    const bool begins = end.mark == kStart || end.mark == kChannel;
    rest_.erase(0, end.at + (begins ? 0 : end.mark.size()));
    return true;
  }

  void BeginBody(std::string_view header) {
    in_body_ = true;
    kind_ = WordBehind(header, kChannel) == "analysis" ? Kind::kReasoning : Kind::kContent;
    const std::string_view recipient = WordBehind(header, "to=");
    if (!may_call_ || !recipient.starts_with(kFunctions)) return;
    name_ = recipient.substr(kFunctions.size());
    if (!name_.empty()) kind_ = Kind::kCall;
  }

  void AddToBody(std::string_view text, std::vector<AnswerPiece>* out) {
    if (kind_ == Kind::kCall) {
      arguments_ += text;
    } else if (!text.empty()) {
      out->push_back({.kind = kind_, .text = std::string(text), .call = {}});
    }
  }

  // `cut`: the text ended before the body did.
  void EndBody(bool cut, std::vector<AnswerPiece>* out) {
    in_body_ = false;
    if (std::exchange(kind_, Kind::kContent) != Kind::kCall) return;
    const std::string text = std::exchange(arguments_, {});
    std::string arguments = ReadArguments(text);
    if (arguments.empty() && !cut) return AddToBody(text, out);
    ToolCall call{NewCallId(ToolFamily::kHarmony), std::exchange(name_, {}), std::move(arguments)};
    // An empty text reads as no arguments, but here its arguments have yet to come.
    call.cut = cut && (call.arguments.empty() || WithoutSpace(text).empty());
    if (call.cut) call.arguments = text;
    out->push_back({.kind = Kind::kCall, .text = "", .call = std::move(call)});
  }

  const bool may_call_;
  bool in_body_;
  AnswerPiece::Kind kind_ = AnswerPiece::Kind::kContent;  // the body's kind
  std::string name_;                                      // the name of the called function
  std::string arguments_;
  std::string rest_;
};

}  // namespace

bool NeedsAnswerReader(ToolFamily family, const GenerationRequest& request) {
  return family == ToolFamily::kHarmony || request.tool_choice.kind != ToolChoice::Kind::kNone;
}

std::unique_ptr<AnswerReader> NewAnswerReader(ToolFamily family, const GenerationRequest& request,
                                              const AnswerStart& start) {
  if (!NeedsAnswerReader(family, request)) return std::make_unique<ContentReader>();
  const bool in_call = start.kind == AnswerStart::Kind::kCall;
  if (family != ToolFamily::kHarmony || in_call) {
    if (start.kind == AnswerStart::Kind::kContent) return std::make_unique<ContentReader>();
    return NewCallReader(family, request.tools, in_call);
  }
  const bool may_call = request.tool_choice.kind != ToolChoice::Kind::kNone;
  return std::make_unique<HarmonyReader>(may_call, start);
}

}  // namespace trine::server
