#include "tools/cli/terminal/line_buffer.h"

#include <cstdint>
#include <utility>

#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

struct Range {
  uint32_t first, last;
};
// Characters that take no column (combining marks) or two (some scripts and symbols). The lists are
// good enough for a prompt.
constexpr Range kNoColumn[] = {
    {0x300, 0x36F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};
constexpr Range kTwoColumns[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                 {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                 {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};

template <size_t N>
bool In(const Range (&ranges)[N], uint32_t c) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

}  // namespace

size_t CharacterBefore(std::string_view text, size_t at) {
  if (at > 0) --at;
  while (at > 0 && IsContinuation(text[at])) --at;
  return at;
}

size_t CharacterAfter(std::string_view text, size_t at) {
  if (at < text.size()) ++at;
  while (at < text.size() && IsContinuation(text[at])) ++at;
  return at;
}

void LineBuffer::Insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineBuffer::Left() { cursor_ = CharacterBefore(text_, cursor_); }
void LineBuffer::Right() { cursor_ = CharacterAfter(text_, cursor_); }

void LineBuffer::WordLeft() {
  while (cursor_ > 0 && text_[cursor_ - 1] == ' ') --cursor_;
  while (cursor_ > 0 && text_[cursor_ - 1] != ' ') --cursor_;
}

void LineBuffer::WordRight() {
  while (cursor_ < text_.size() && text_[cursor_] == ' ') ++cursor_;
  while (cursor_ < text_.size() && text_[cursor_] != ' ') ++cursor_;
}

void LineBuffer::Backspace() {
  const size_t begin = CharacterBefore(text_, cursor_);
  text_.erase(begin, cursor_ - begin);
  cursor_ = begin;
}

void LineBuffer::Delete() { text_.erase(cursor_, CharacterAfter(text_, cursor_) - cursor_); }

void LineBuffer::DeleteWord() {
  const size_t end = cursor_;
  WordLeft();
  text_.erase(cursor_, end - cursor_);
}

void LineBuffer::DeleteToEnd() { text_.erase(cursor_); }

void LineBuffer::DeleteToHome() {
  text_.erase(0, cursor_);
  cursor_ = 0;
}

void LineBuffer::Show(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void LineBuffer::Older() {
  if (shown_ == 0) return;
  if (shown_ == history_.size()) typed_ = text_;
  Show(history_[--shown_]);
}

void LineBuffer::Newer() {
  if (shown_ == history_.size()) return;
  ++shown_;
  Show(shown_ == history_.size() ? typed_ : history_[shown_]);
}

std::string LineBuffer::Take() {
  std::string line = text_;
  if (!line.empty() && (history_.empty() || history_.back() != line)) history_.push_back(line);
  Clear();
  return line;
}

void LineBuffer::Clear() {
  text_.clear();
  typed_.clear();
  cursor_ = 0;
  shown_ = history_.size();
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    text.remove_prefix(step.bytes);
    if (In(kNoColumn, step.code_point)) continue;
    width += In(kTwoColumns, step.code_point) ? 2 : 1;
  }
  return width;
}

}  // namespace trine
