// Formats columns of text for a terminal. Each column but the last is as wide as its widest cell.
#pragma once

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

// Formats a number of bytes, such as "23.4 GiB", "512 MiB" or "17 B".
std::string FormatBytes(uint64_t bytes);

}  // namespace trine
