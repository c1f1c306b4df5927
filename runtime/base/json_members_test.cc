#include "runtime/base/json_members.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using Json = JsonMembers::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JsonMembersTest, ReadsEachKind) {
  const Json json = {{"text", "x"},          {"integer", -3},       {"unsigned", ~uint64_t{0}},
                     {"count", 7u},          {"flag", true},        {"hash", HashText(0x1234abcd)},
                     {"number", 1.5},        {"numbers", {1, 2.5}}, {"texts", {"a", "b"}},
                     {"object", {{"in", 1}}}};
  absl::Status status;
  JsonMembers r(json, &status);
  EXPECT_EQ(r.Text("text"), "x");
  EXPECT_EQ(r.Integer("integer"), -3);
  EXPECT_EQ(r.Unsigned("unsigned"), ~uint64_t{0});
  EXPECT_EQ(r.Count("count", 7), 7);
  EXPECT_TRUE(r.Flag("flag"));
  EXPECT_EQ(r.Hash("hash"), 0x1234abcdu);
  EXPECT_EQ(r.Number("number"), 1.5);
  EXPECT_THAT(r.Numbers("numbers"), ElementsAre(1, 2.5));
  EXPECT_THAT(r.Texts("texts"), ElementsAre("a", "b"));
  EXPECT_EQ(JsonMembers(r.Object("object"), &status).Integer("in"), 1);
  EXPECT_EQ(r.List("texts").size(), 2u);
  EXPECT_FALSE(r.Has("other"));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(JsonMembersTest, TheFirstErrorIsKept) {
  const Json json = {
      {"text", 1}, {"integer", ~uint64_t{0}}, {"count", 0u}, {"hash", "12"}, {"list", {1, "x"}}};
  const auto message = [&](auto read) {
    absl::Status status;
    JsonMembers r(json, &status);
    read(r);
    r.Text("missing");
    return std::string(status.message());
  };
  EXPECT_EQ(message([](JsonMembers& r) { EXPECT_EQ(r.Text("text"), ""); }), "\"text\" is no text");
  EXPECT_EQ(message([](JsonMembers& r) { EXPECT_EQ(r.Integer("integer"), 0); }),
            "\"integer\" is no whole number");
  EXPECT_EQ(message([](JsonMembers& r) { r.Count("count", 9); }), "\"count\" is not from 1 to 9");
  EXPECT_EQ(message([](JsonMembers& r) { r.Hash("hash"); }),
            "\"hash\" is not 16 hexadecimal digits");
  EXPECT_EQ(message([](JsonMembers& r) { EXPECT_THAT(r.Numbers("list"), IsEmpty()); }),
            "\"list\" has something that is no number");
  EXPECT_EQ(message([](JsonMembers& r) { r.List("text"); }), "\"text\" is no list");
  EXPECT_EQ(message([](JsonMembers& r) { r.Object("none"); }), "\"none\" is missing");
  EXPECT_EQ(message([](JsonMembers&) {}), "\"missing\" is missing");
  absl::Status status;
  const Json list = Json::array();
  EXPECT_EQ(JsonMembers(list, &status).Text("x"), "");
  EXPECT_EQ(status.message(), "\"x\" is missing");
}

TEST(ReadSmallFileTest, EveryErrorNamesTheFile) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("small_file." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "file").string();
  const auto message = [](const std::string& of, uint64_t most) {
    return std::string(ReadSmallFile(of, most, "a head").status().message());
  };
  EXPECT_TRUE(absl::IsNotFound(ReadSmallFile(path, 9, "a head").status()));
  EXPECT_EQ(message(path, 9), path + ": there is no such file");
  EXPECT_EQ(message(folder.string(), 9), folder.string() + ": it is no file");
  std::ofstream(path) << "text";
  EXPECT_EQ(message(path, 3), path + ": it is too large for a head");
  EXPECT_EQ(*ReadSmallFile(path, 4, "a head"), "text");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trine
