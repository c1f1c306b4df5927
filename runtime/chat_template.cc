#include "runtime/chat_template.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class Writer {
 public:
  Writer& Mark(std::string text) {
    pieces_.push_back({std::move(text), false});
    return *this;
  }
  Writer& Content(std::string text) {
    pieces_.push_back({std::move(text), true});
    return *this;
  }
  std::vector<ChatPiece> Take() { return std::move(pieces_); }

 private:
  std::vector<ChatPiece> pieces_;
};

std::string Trimmed(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

// <|im_start|>role\ncontent<|im_end|>\n
std::vector<ChatPiece> ChatMl(const std::vector<ChatMessage>& messages) {
  Writer w;
  for (const ChatMessage& m : messages) {
    w.Mark(absl::StrCat("<|im_start|>", m.role, "\n")).Content(m.content).Mark("<|im_end|>\n");
  }
  return w.Mark("<|im_start|>assistant\n").Take();
}

// <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>
std::vector<ChatPiece> Llama3(const std::vector<ChatMessage>& messages) {
  Writer w;
  for (const ChatMessage& m : messages) {
    w.Mark(absl::StrCat("<|start_header_id|>", m.role, "<|end_header_id|>\n\n"))
        .Content(Trimmed(m.content))
        .Mark("<|eot_id|>");
  }
  return w.Mark("<|start_header_id|>assistant<|end_header_id|>\n\n").Take();
}

// <|role|>\ncontent<|end|>\n
std::vector<ChatPiece> Phi3(const std::vector<ChatMessage>& messages) {
  Writer w;
  for (const ChatMessage& m : messages) {
    w.Mark(absl::StrCat("<|", m.role, "|>\n")).Content(m.content).Mark("<|end|>\n");
  }
  return w.Mark("<|assistant|>\n").Take();
}

// <|role|>\ncontent</s>\n
std::vector<ChatPiece> Zephyr(const std::vector<ChatMessage>& messages) {
  Writer w;
  for (const ChatMessage& m : messages) {
    w.Mark(absl::StrCat("<|", m.role, "|>\n")).Content(m.content).Mark("</s>\n");
  }
  return w.Mark("<|assistant|>\n").Take();
}

// [INST] content [/INST] answer</s>, a system message inside the first turn.
std::vector<ChatPiece> Inst(const std::vector<ChatMessage>& messages, bool sys_marks) {
  Writer w;
  std::string system;
  bool first = true;
  for (const ChatMessage& m : messages) {
    if (m.role == "system") {
      system = m.content;
    } else if (m.role == "user") {
      w.Mark(first ? "[INST] " : "<s>[INST] ");
      if (!system.empty()) {
        w.Mark(sys_marks ? "<<SYS>>\n" : "")
            .Content(system)
            .Mark(sys_marks ? "\n<</SYS>>\n\n" : "\n\n");
        system.clear();
      }
      w.Content(Trimmed(m.content)).Mark(" [/INST]");
      first = false;
    } else {
      w.Mark(" ").Content(Trimmed(m.content)).Mark(sys_marks ? " </s>" : "</s>");
    }
  }
  return w.Take();
}

}  // namespace

absl::StatusOr<std::vector<ChatPiece>> ApplyChatTemplate(const gguf::Metadata& metadata,
                                                         const std::vector<ChatMessage>& messages) {
  const auto found = metadata.StringOr("tokenizer.chat_template", "");
  if (!found.ok()) return found.status();
  const std::string_view text = *found;
  if (text.empty()) {
    return absl::FailedPreconditionError(
        "the model has no chat template (tokenizer.chat_template): use it without --chat");
  }
  for (const ChatMessage& m : messages) {
    if (m.role != "system" && m.role != "user" && m.role != "assistant") {
      return absl::InvalidArgumentError(
          absl::StrCat("a message has the role \"", m.role, "\": system, user or assistant"));
    }
  }
  if (Contains(text, "<|im_start|>")) return ChatMl(messages);
  if (Contains(text, "<|start_header_id|>")) return Llama3(messages);
  if (Contains(text, "<|user|>") && Contains(text, "<|end|>")) return Phi3(messages);
  if (Contains(text, "<|user|>") && Contains(text, "eos_token")) return Zephyr(messages);
  if (Contains(text, "[INST]")) return Inst(messages, Contains(text, "<<SYS>>"));
  return absl::UnimplementedError(
      absl::StrCat("the chat template is of no known family (ChatML, Llama 2, Llama 3, Mistral, "
                   "Phi 3, Zephyr); it begins: ",
                   std::string(text.substr(0, 60))));
}

absl::StatusOr<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer,
                                                const std::vector<ChatPiece>& pieces) {
  std::vector<std::string> control;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const TokenType type = tokenizer.Type(id);
    if (type != TokenType::kControl && type != TokenType::kUnknown) continue;
    const std::string text(tokenizer.TokenText(id));
    if (text.size() > 1) control.push_back(text);
  }
  // The text is one run, so that tokens form across the borders of pieces, but for cuts inside
  // whatever a message says that reads like a control token.
  std::vector<std::string> runs(1);
  for (const ChatPiece& piece : pieces) {
    if (!piece.from_message) {
      runs.back() += piece.text;
      continue;
    }
    std::vector<size_t> cuts;
    for (const std::string& mark : control) {
      for (size_t at = piece.text.find(mark); at != std::string::npos;
           at = piece.text.find(mark, at + 1)) {
        cuts.push_back(at + 1);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    size_t begin = 0;
    for (size_t cut : cuts) {
      if (cut <= begin) continue;
      runs.back() += piece.text.substr(begin, cut - begin);
      runs.emplace_back();
      begin = cut;
    }
    runs.back() += piece.text.substr(begin);
  }
  std::vector<int32_t> tokens;
  if (tokenizer.adds_bos()) tokens.push_back(tokenizer.bos());
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto ids = tokenizer.Encode(
        runs[i], {.add_special = false, .parse_special = true, .at_start = i == 0});
    if (!ids.ok()) return ids.status();
    tokens.insert(tokens.end(), ids->begin(), ids->end());
  }
  return tokens;
}

}  // namespace trine
