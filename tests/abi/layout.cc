#include "tests/abi/layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace trine::abi {
namespace {

// Splits "struct NAME SIZE" into name and size; returns false for other lines.
bool ParseStruct(const std::string& line, std::string* name, size_t* size) {
  std::istringstream stream(line);
  std::string kind;
  return stream >> kind >> *name >> *size && kind == "struct";
}

}  // namespace

std::string Line(const LayoutEntry& entry) {
  std::ostringstream out;
  switch (entry.kind) {
    case LayoutEntry::Kind::kConstant:
      out << "const " << entry.name << ' ' << entry.value;
      break;
    case LayoutEntry::Kind::kStruct:
      out << "struct " << entry.name << ' ' << entry.size;
      break;
    case LayoutEntry::Kind::kMember:
      out << "member " << entry.name << '.' << entry.member << ' ' << entry.value << ' '
          << entry.size;
      break;
  }
  return out.str();
}

std::string FindGap(const std::vector<LayoutEntry>& layout) {
  for (size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].kind != LayoutEntry::Kind::kStruct) continue;
    size_t end = 0, next = i + 1;
    for (; next < layout.size() && layout[next].kind == LayoutEntry::Kind::kMember; ++next) {
      if (layout[next].value != static_cast<long long>(end)) {
        return std::string("bytes before ") + layout[next].name + "." + layout[next].member +
               " belong to no listed member";
      }
      end += layout[next].size;
    }
    if (end != layout[i].size) {
      return std::string("bytes at the end of ") + layout[i].name + " belong to no listed member";
    }
  }
  return "";
}

Difference Compare(const std::vector<std::string>& golden, const std::vector<std::string>& now) {
  const std::set<std::string> before(golden.begin(), golden.end()), after(now.begin(), now.end());
  Difference difference;
  for (const std::string& line : golden) {
    if (after.count(line) == 0) difference.lost.push_back(line);
  }
  for (const std::string& line : now) {
    if (before.count(line) == 0) difference.added.push_back(line);
  }
  return difference;
}

std::vector<std::string> BrokenPromises(const std::vector<std::string>& older,
                                        const std::vector<std::string>& now) {
  std::map<std::string, size_t> sizes;
  std::string name;
  size_t size = 0;
  for (const std::string& line : now) {
    if (ParseStruct(line, &name, &size)) sizes[name] = size;
  }
  std::vector<std::string> broken;
  for (const std::string& line : Compare(older, now).lost) {
    const bool version = line.rfind("const TRINE_ABI_MINOR ", 0) == 0 ||
                         line.rfind("const TRINE_ABI_VERSION ", 0) == 0;
    // trine_error has no struct_size, so it must not grow.
    const bool grown =
        ParseStruct(line, &name, &size) && name != "trine_error" && sizes[name] >= size;
    if (!version && !grown) broken.push_back(line);
  }
  return broken;
}

std::vector<std::string> GoldenLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

}  // namespace trine::abi
