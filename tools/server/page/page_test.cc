#include "tools/server/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace trine::server {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns all matches of the group in `pattern`.
std::set<std::string> Captures(std::string_view text, const char* pattern) {
  const std::string copy(text);
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(copy.begin(), copy.end(), regex), end; it != end; ++it) {
    found.insert((*it)[1].str());
  }
  return found;
}

TEST(PageTest, HoldsEveryFileByteForByte) {
  size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(TRINE_PAGE_FOLDER)) {
    const std::string name = entry.path().filename().string();
    if (name == "package.json" || name == "README.md") continue;  // for Node and for people
    ++files;
    const PageFile* file = FindPageFile(name == "index.html" ? "/" : "/page/" + name);
    ASSERT_NE(file, nullptr) << name << " is not embedded";
    EXPECT_EQ(file->content, ReadFile(entry.path())) << name;
  }
  EXPECT_EQ(files, PageFiles().size());
  EXPECT_EQ(PageFiles().front().path, "/");
}

TEST(PageTest, FindsNothingElse) {
  EXPECT_EQ(FindPageFile(""), nullptr);
  EXPECT_EQ(FindPageFile("/page/"), nullptr);
  EXPECT_EQ(FindPageFile("/page/../page/main.js"), nullptr);
  EXPECT_EQ(FindPageFile("/v1/models"), nullptr);
}

TEST(PageTest, HeadersAreFitForUse) {
  std::set<std::string_view> etags;
  for (const PageFile& file : PageFiles()) {
    EXPECT_THAT(std::string(file.etag), testing::MatchesRegex("\"[0-9a-f]{16}\"")) << file.path;
    EXPECT_TRUE(etags.insert(file.etag).second) << file.path;
    const bool script = file.path.ends_with(".js");
    EXPECT_EQ(script, file.content_type == "text/javascript; charset=utf-8") << file.path;
  }
  EXPECT_EQ(FindPageFile("/")->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(FindPageFile("/page/look.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(FindPageFile("/page/icon.svg")->content_type, "image/svg+xml");
}

// If a file that others name were not embedded, the page would not start.
TEST(PageTest, WhatFilesReferToIsThere) {
  for (const std::string& name :
       Captures(FindPageFile("/")->content, R"re((?:src|href)="([^"#]+)")re")) {
    EXPECT_NE(FindPageFile("/" + name), nullptr) << name;
  }
  for (const PageFile& file : PageFiles()) {
    for (const std::string& name : Captures(file.content, R"re(from "\./([^"]+)")re")) {
      EXPECT_NE(FindPageFile("/page/" + name), nullptr) << file.path << " imports " << name;
    }
  }
}

// The security policy forbids them, so they would not work.
TEST(PageTest, HasNoInlineScriptOrStyle) {
  const std::string_view html = FindPageFile("/")->content;
  EXPECT_THAT(Captures(html, R"re((<style|\sstyle=|\son\w+=|javascript:))re"), testing::IsEmpty());
  EXPECT_THAT(Captures(html, R"re((<script)(?![^>]*\ssrc=))re"), testing::IsEmpty());
  for (const PageFile& file : PageFiles()) {
    EXPECT_THAT(Captures(file.content, R"re((innerHTML|outerHTML|insertAdjacentHTML|\beval\())re"),
                testing::IsEmpty())
        << file.path;
  }
}

}  // namespace
}  // namespace trine::server
