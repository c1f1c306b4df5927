// Columns of text for a terminal: as wide as their widest cell, the last one free to run on.
#ifndef TRINE_TOOLS_REPORT_TEXT_TABLE_H_
#define TRINE_TOOLS_REPORT_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace trine {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string Format(const std::string& indent = "  ") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "23.4 GiB", "512 MiB", "17 B".
std::string FormatBytes(uint64_t bytes);

}  // namespace trine

#endif  // TRINE_TOOLS_REPORT_TEXT_TABLE_H_
