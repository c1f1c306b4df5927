// Lines from standard input: edited on a terminal, read as they are from anything else.
#ifndef TRINE_TOOLS_CLI_LINE_READER_H_
#define TRINE_TOOLS_CLI_LINE_READER_H_

#include <string>

#include "tools/cli/line_buffer.h"

namespace trine {

class LineReader {
 public:
  LineReader();

  enum class Outcome {
    kLine,
    kInterrupted,  // Ctrl-C
    kEnd,          // Ctrl-D, or the end of the input
  };
  // `prompt` is shown on a terminal alone; `columns` of it are seen.
  Outcome Read(const std::string& prompt, int columns, std::string* line);

  bool terminal() const { return terminal_; }

 private:
  Outcome ReadPlain(std::string* line);
  Outcome Edit(const std::string& prompt, int columns, std::string* line);
  // What a key that begins with Escape means.
  void EscapeKey();
  void Draw(const std::string& prompt, int columns) const;

  bool terminal_;
  LineBuffer buffer_;
};

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_LINE_READER_H_
