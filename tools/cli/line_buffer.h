// A line of UTF-8 being edited, and the lines before it. Knows no terminal.
#ifndef TRINE_TOOLS_CLI_LINE_BUFFER_H_
#define TRINE_TOOLS_CLI_LINE_BUFFER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trine {

class LineBuffer {
 public:
  void Insert(std::string_view text);
  void Left();
  void Right();
  void WordLeft();
  void WordRight();
  void Home() { cursor_ = 0; }
  void End() { cursor_ = text_.size(); }
  void Backspace();
  void Delete();
  void DeleteWord();  // before the cursor
  void DeleteToEnd();
  void DeleteToHome();
  // The line before in the history; the one after, or in the end what was being typed.
  void Older();
  void Newer();

  // The line is done: it goes into the history, unless it is empty or there already, and a new one
  // begins.
  std::string Take();
  void Clear();

  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte, between characters

 private:
  void Show(std::string text);

  std::string text_;
  size_t cursor_ = 0;
  std::vector<std::string> history_;
  size_t shown_ = 0;  // history_.size(): the line being typed
  std::string typed_;
};

// Where the character before, and behind, a place between characters begins, and ends.
size_t CharacterBefore(std::string_view text, size_t at);
size_t CharacterAfter(std::string_view text, size_t at);

// Columns of a terminal the text takes.
int DisplayWidth(std::string_view text);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_LINE_BUFFER_H_
