// Reads lines from standard input. On a terminal the user can edit them.
#pragma once

#include <string>

#include "tools/cli/terminal/line_buffer.h"

namespace trine {

class LineReader {
 public:
  LineReader();

  enum class Outcome {
    kLine,
    kInterrupted,  // Ctrl-C
    kEnd,          // Ctrl-D, or the end of the input
  };
  // Reads a line. Shows `prompt` only on a terminal, where it takes `columns` columns.
  Outcome Read(const std::string& prompt, int columns, std::string* line);

  bool terminal() const { return terminal_; }

 private:
  Outcome EditLine(const std::string& prompt, int columns, std::string* line);
  void Draw(const std::string& prompt, int columns) const;

  bool terminal_;
  LineBuffer buffer_;
};

}  // namespace trine
