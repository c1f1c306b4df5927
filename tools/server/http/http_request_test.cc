#include "tools/server/http/http_request.h"

#include <gtest/gtest.h>

namespace trine::server {
namespace {

TEST(HttpRequestTest, FindsHeadersOfAnyCase) {
  const HttpRequest request = {.headers = {{"Content-Type", "a"}, {"content-type", "b"}}};
  EXPECT_EQ(request.Header("CONTENT-TYPE"), "a");
  EXPECT_FALSE(request.Header("Content").has_value());
}

TEST(HttpRequestTest, DecodesTheQuery) {
  const HttpRequest request = {.query = "a=1&b=x%26y+z&&empty=&flag&a=2&bad=%zz&k%3d=v"};
  EXPECT_EQ(request.QueryValue("a"), "1");
  EXPECT_EQ(request.QueryValue("b"), "x&y z");
  EXPECT_EQ(request.QueryValue("empty"), "");
  EXPECT_EQ(request.QueryValue("flag"), "");
  EXPECT_EQ(request.QueryValue("k="), "v");
  EXPECT_FALSE(request.QueryValue("bad").has_value());
  EXPECT_FALSE(request.QueryValue("c").has_value());
}

TEST(HttpRequestTest, TakesTargetsApart) {
  struct Case {
    const char *target, *path, *query;
  };
  for (const Case& c :
       {Case{"/", "/", ""}, Case{"/a/b?c=d?e", "/a/b", "c=d?e"},
        Case{"/v1/models/org%2Fname", "/v1/models/org/name", ""}, Case{"/a+b", "/a+b", ""},
        Case{"http://h:1/x?y", "/x", "y"}, Case{"http://h", "/", ""}, Case{"http://h?q", "/", "q"},
        Case{"*", "*", ""}, Case{"/u?next=http://h/", "/u", "next=http://h/"}}) {
    HttpRequest request;
    ASSERT_TRUE(SetTarget(c.target, &request)) << c.target;
    EXPECT_EQ(request.path, c.path);
    EXPECT_EQ(request.query, c.query);
  }
  HttpRequest request;
  for (const char* bad : {"a", "%", "/%4", "/%g0", "/%00", "/a%0Ab", "host:443"}) {
    EXPECT_FALSE(SetTarget(bad, &request)) << bad;
  }
}

}  // namespace
}  // namespace trine::server
