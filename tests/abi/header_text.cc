#include "tests/abi/header_text.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace trine::abi {
namespace {

std::string WithoutComments(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      i = end == std::string::npos ? text.size() : end + 2;
      out += ' ';
    } else {
      out += text[i++];
    }
  }
  return out;
}

bool IsIdentifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Returns the name in a member declaration: f in `void (*f)(int a)`, name in `char name[64]`.
std::string MemberName(const std::string& declaration) {
  std::smatch match;
  if (std::regex_search(declaration, match, std::regex(R"(\(\s*\*\s*(\w+)\s*\))"))) return match[1];
  size_t end = declaration.find('[');
  if (end == std::string::npos) end = declaration.size();
  while (end > 0 && !IsIdentifier(declaration[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && IsIdentifier(declaration[begin - 1])) --begin;
  return declaration.substr(begin, end - begin);
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (std::any_of(part.begin(), part.end(), IsIdentifier)) parts.push_back(part);
  }
  return parts;
}

template <class Visit>
void ForEachMatch(const std::string& text, const char* pattern, Visit visit) {
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) visit(*it);
}

}  // namespace

HeaderText ParseHeader(const std::string& text, const std::vector<std::string>& skip) {
  const std::string code = WithoutComments(text);
  HeaderText header;
  // A macro without a value, like an include guard, has only blanks behind its name.
  ForEachMatch(code, R"(#define[ \t]+(\w+)[ \t]+[^ \t\n])", [&](const std::smatch& match) {
    const std::string name = match[1];
    const bool known = std::find(skip.begin(), skip.end(), name) != skip.end();
    if (!known) header.constants.push_back(name);
  });
  ForEachMatch(code, R"(\benum\s*\{([^}]*)\})", [&](const std::smatch& match) {
    for (const std::string& enumerator : Split(match[1], ',')) {
      header.constants.push_back(MemberName(enumerator.substr(0, enumerator.find('='))));
    }
  });
  ForEachMatch(code, R"(\bstruct\s+(\w+)\s*\{([^}]*)\})", [&](const std::smatch& match) {
    StructText parsed{match[1], {}};
    for (const std::string& member : Split(match[2], ';')) {
      parsed.members.push_back(MemberName(member));
    }
    header.structs.push_back(std::move(parsed));
  });
  return header;
}

std::string LayoutSource(const HeaderText& header) {
  std::ostringstream out;
  out << "#include \"tests/abi/layout.h\"\n#include \"trine/backend.h\"\n\n"
      << "namespace trine::abi {\n\nconst LayoutEntry kLayout[] = {\n";
  for (const std::string& name : header.constants) {
    out << "    Constant(\"" << name << "\", " << name << "),\n";
  }
  for (const StructText& s : header.structs) {
    out << "    Struct(\"" << s.name << "\", sizeof(" << s.name << ")),\n";
    for (const std::string& m : s.members) {
      out << "    Member(\"" << s.name << "\", \"" << m << "\", offsetof(" << s.name << ", " << m
          << "), sizeof(" << s.name << "::" << m << ")),\n";
    }
  }
  out << "};\nconst size_t kLayoutCount = sizeof(kLayout) / sizeof(kLayout[0]);\n\n"
      << "}  // namespace trine::abi\n";
  return out.str();
}

}  // namespace trine::abi
