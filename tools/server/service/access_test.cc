#include "tools/server/service/access.h"

#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"

namespace trine::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HttpRequest With(HttpHeaders headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  request.peer = "10.0.0.7";
  request.network = "10.0.0.7";
  return request;
}

TEST(AccessTest, WithoutKeysEverybodyMay) {
  const Access access({});
  EXPECT_TRUE(access.CheckKey(With({})).ok());
  EXPECT_TRUE(access.CheckKey(With({{"Authorization", "Bearer anything"}})).ok());
  EXPECT_EQ(access.ClientOf(With({})), "10.0.0.7");
}

TEST(AccessTest, KeysAreComparedWhole) {
  const Access access({.keys = {"secret", "other"}});
  EXPECT_TRUE(access.CheckKey(With({{"Authorization", "Bearer secret"}})).ok());
  EXPECT_TRUE(access.CheckKey(With({{"authorization", "bearer other"}})).ok());
  EXPECT_TRUE(access.CheckKey(With({{"X-Api-Key", "secret"}})).ok());
  for (const char* wrong : {"", "secre", "secretx", "secretsecret", "Secret", "secret "}) {
    const absl::Status s =
        access.CheckKey(With({{"Authorization", std::string("Bearer ") + wrong}}));
    EXPECT_TRUE(absl::IsUnauthenticated(s)) << wrong;
    EXPECT_THAT(std::string(s.message()), ::testing::Not(HasSubstr("secret"))) << wrong;
  }
  EXPECT_TRUE(absl::IsUnauthenticated(access.CheckKey(With({}))));
  EXPECT_TRUE(absl::IsUnauthenticated(access.CheckKey(With({{"Authorization", "Basic secret"}}))));
}

TEST(AccessTest, NothingIsSharedBetweenKeys) {
  const Access access({.keys = {"one", "two"}});
  const auto one = With({{"Authorization", "Bearer one"}});
  const auto two = With({{"Authorization", "Bearer two"}});
  EXPECT_NE(access.SpaceOf(one), access.SpaceOf(two));
  EXPECT_NE(access.ClientOf(one), access.ClientOf(two));
  EXPECT_EQ(access.SpaceOf(one), access.SpaceOf(With({{"X-Api-Key", "one"}})));
  EXPECT_THAT(access.SpaceOf(one), ::testing::Not(HasSubstr("one")));
}

TEST(AccessTest, PagesOfOtherSitesMayNotAskUnlessNamed) {
  const HttpHeaders same = {{"Host", "localhost:8080"}, {"Origin", "http://localhost:8080"}};
  const HttpHeaders other = {{"Host", "localhost:8080"}, {"Origin", "https://example.org"}};
  const Access closed({});
  EXPECT_TRUE(closed.CheckOrigin(With(same)).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(closed.CheckOrigin(With(other))));
  EXPECT_TRUE(absl::IsPermissionDenied(
      closed.CheckOrigin(With({{"Host", "localhost"}, {"Origin", "null"}}))));
  EXPECT_THAT(closed.CorsHeaders(With(other)), IsEmpty());
  const Access open({.cors_origins = {"https://example.org"}});
  EXPECT_TRUE(open.CheckOrigin(With(other)).ok());
  EXPECT_EQ(open.CorsHeaders(With(other))[0].second, "https://example.org");
  EXPECT_THAT(open.CorsHeaders(With(same)), IsEmpty());
  const Access all({.cors_origins = {"*"}});
  EXPECT_TRUE(all.CheckOrigin(With(other)).ok());
}

// DNS rebinding: a page whose host name resolves to this machine.
TEST(AccessTest, OtherNamesOfThisMachineAreRefusedWhereNoKeyProtectsIt) {
  const Access local({.loopback = true});
  for (const char* host : {"localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]:8080", "LOCALHOST",
                           "trine.localhost:8080"}) {
    EXPECT_TRUE(local.CheckOrigin(With({{"Host", host}})).ok()) << host;
  }
  for (const char* host : {"evil.example:8080", "localhost.evil.example", "10.0.0.1",
                           "127.evil.example:80", "127.0.0.1.evil.example", "127.1", "[::2]:80"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(local.CheckOrigin(With({{"Host", host}})))) << host;
  }
  EXPECT_TRUE(Access({.keys = {"k"}, .loopback = true}).CheckOrigin(With({{"Host", "a.b"}})).ok());
  EXPECT_TRUE(Access({.loopback = false}).CheckOrigin(With({{"Host", "a.b"}})).ok());
}

TEST(AccessTest, KeysFromAFile) {
  const std::string path = ::testing::TempDir() + "keys.txt";
  std::ofstream(path) << "# ours\n\n  one \ntwo\r\n";
  const auto keys = ReadKeyFile(path);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_THAT(*keys, ElementsAre("one", "two"));
  std::ofstream(path) << "# none\n";
  EXPECT_TRUE(absl::IsInvalidArgument(ReadKeyFile(path).status()));
  std::remove(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(ReadKeyFile(path).status()));
}

}  // namespace
}  // namespace trine::server
