// Reads lines from standard input. On a terminal the user can edit them.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/terminal/line_buffer.h"

namespace trine {

class LineReader {
 public:
  // `wake_file`: a file whose input ends the reader's own, for signals; -1: none.
  explicit LineReader(int wake_file = -1);

  enum class Outcome {
    kLine,
    kInterrupted,  // Ctrl-C
    kEnd,          // Ctrl-D, the end of the input, or input of the wake file
  };
  // Reads a line. Shows `prompt` only on a terminal, where it takes `columns` columns.
  Outcome Read(const std::string& prompt, int columns, std::string* line);

  bool terminal() const { return terminal_; }

 private:
  using Edit = void (LineBuffer::*)();
  Outcome EditLine(const std::string& prompt, int columns, std::string* line);
  bool ReadPiped(std::string* line);
  // Wait for input. Return false at its end.
  bool ReadByte(char* byte) const;
  bool Wait() const;
  std::string ReadCharacter(char first) const;
  Edit ReadEscape() const;
  void Draw(const std::string& prompt, int columns) const;

  const int wake_file_;
  const bool terminal_;
  LineBuffer buffer_;
  std::string piped_;  // input of a pipe that has been read, and that no line had yet
};

}  // namespace trine
