// A line of UTF-8 that is being edited, and its history. Independent of any terminal.
#pragma once

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
  // Show the previous or the next line of the history. After the newest line comes the line that
  // was being typed.
  void Older();
  void Newer();

  // Returns the line and begins a new one. Adds the line to the history, unless it is empty or
  // equal to the newest line there.
  std::string Take();
  void Clear();

  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // in bytes, between characters

 private:
  void Show(std::string text);

  std::string text_;
  size_t cursor_ = 0;
  std::vector<std::string> history_;
  size_t shown_ = 0;   // index into history_; its size: the line being typed
  std::string typed_;  // the line that was being typed, while an older one is shown
};

// Return where the character before `at` begins, and where the character after it ends.
size_t CharacterBefore(std::string_view text, size_t at);
size_t CharacterAfter(std::string_view text, size_t at);

// Returns the number of columns that the text takes on a terminal.
int DisplayWidth(std::string_view text);

}  // namespace trine
