// Right requests of /v1/sessions, and bodies that are not requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/requests/request_test_util.h"

namespace trine::server {
namespace {

using testing::ElementsAre;

constexpr const char* kEndpoints[] = {"session",    "session chat", "append", "continue",
                                      "checkpoint", "regress",      "fork"};

std::string Repeated(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

TEST(SessionRequestTest, TakesEveryField) {
  const auto r = ParseSessionRequest(kFullSession, TestDefaults());
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ(r->prompt.plain.size(), 1u);
  EXPECT_EQ(std::get<std::string>(r->prompt.plain[0]), "Once");
  EXPECT_FALSE(r->prompt.chat);
  EXPECT_FLOAT_EQ(r->sampler.temp, 0.7f);
  EXPECT_EQ(r->sampler.top_k, 20);
  EXPECT_EQ(r->sampler.mirostat, 2);
  EXPECT_EQ(r->sampler.logit_bias.size(), 2u);
  EXPECT_EQ(r->seed, 7u);
  EXPECT_THAT(r->stop, ElementsAre("END", "x"));
  EXPECT_EQ(r->constraint.kind, ConstraintText::Kind::kJsonSchema);
  EXPECT_EQ(r->max_tokens, 0);  // the prompt is only read
  EXPECT_EQ(r->n, 1);
}

TEST(SessionRequestTest, TakesTokensTextOrMessages) {
  const auto prompt = [](std::string_view body) {
    const auto r = ParseSessionRequest(body, TestDefaults());
    EXPECT_TRUE(r.ok()) << r.status();
    return r.ok() ? r->prompt : GenerationRequest().prompt;
  };
  EXPECT_THAT(std::get<std::vector<int32_t>>(prompt(R"({"prompt": [0, 999]})").plain[0]),
              ElementsAre(0, 999));
  EXPECT_EQ(std::get<std::string>(prompt(R"({"prompt": ["one"]})").plain[0]), "one");
  EXPECT_TRUE(prompt(kFullSessionChat).chat);
  EXPECT_TRUE(prompt(kFullSessionChat).plain.empty());
  const auto r = ParseSessionRequest(R"({"prompt": "x"})", TestDefaults());
  ASSERT_TRUE(r.ok());
  EXPECT_FLOAT_EQ(r->sampler.temp, 0.5f);  // the server's default
  EXPECT_FALSE(r->seed);
}

TEST(SessionRequestTest, WhatGoesOnSaysHowFar) {
  const auto r = ParseContinueRequest(kFullContinue);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->max_tokens, 6);
  EXPECT_EQ(r->top_logprobs, 3);
  EXPECT_TRUE(r->stream && r->include_usage);
  ASSERT_EQ(r->prompt.plain.size(), 1u);
  EXPECT_TRUE(std::get<std::vector<int32_t>>(r->prompt.plain[0]).empty());
  const auto none = ParseContinueRequest("");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->max_tokens);
  EXPECT_FALSE(ParseContinueRequest(R"({"max_tokens": -1})")->max_tokens);
  EXPECT_EQ(ParseContinueRequest(R"({"max_tokens": 0})")->max_tokens, 0);
}

TEST(SessionRequestTest, WhereNothingIsNeededNothingMayBeThere) {
  EXPECT_TRUE(ParseCheckpointRequest("").ok());
  EXPECT_TRUE(ParseContinueRequest("").ok());
  EXPECT_TRUE(ParseForkRequest("", TestDefaults()).ok());
  for (const char* const name : {"session", "append", "regress"}) {
    EXPECT_FALSE(EndpointOf(name).parse("").ok()) << name;
    EXPECT_EQ(ErrorOf(EndpointOf(name).parse("{}"))["code"], "missing_required_parameter") << name;
  }
}

TEST(SessionRequestTest, NumbersAtTheirEnds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*ParseRegressRequest(R"({"t": 0})"), 0);
  EXPECT_EQ(*ParseRegressRequest(absl::StrCat(R"({"t": )", kMost, "}")), kMost);
  const auto fork = [](std::string_view body) { return *ParseForkRequest(body, TestDefaults()); };
  EXPECT_EQ(fork(R"({"n": 8})").n, 8);
  EXPECT_EQ(fork("{}").n, 1);
  EXPECT_FALSE(fork("{}").seed);
  EXPECT_FALSE(fork(R"({"seed": -1})").seed);
  EXPECT_TRUE(fork(R"({"seed": -1})").any_seed);
  EXPECT_FALSE(fork("{}").any_seed || fork(R"({"seed": 3})").any_seed);
  EXPECT_EQ(fork(R"({"seed": 18446744073709551615})").seed, std::numeric_limits<uint64_t>::max());
}

TEST(SessionRequestTest, WhatIsNoObjectIsRefused) {
  const std::string deep = Repeated("[", 100) + Repeated("]", 100);
  const std::string deep_objects = Repeated("{\"a\":", 100) + "1" + Repeated("}", 100);
  const std::string bodies[] = {" ",
                                "{",
                                "[]",
                                "null",
                                "7",
                                "\"x\"",
                                "{\"a\":1,}",
                                "{\"t\":0,\"n\":1,\"prompt\":\"x\"}{}",
                                "{\"t\":0,\"t\":1,\"prompt\":\"x\"}",
                                "{\"prompt\":\"\xff\",\"t\":0}",
                                "{\"prompt\":\"x\",\"t\":0,\"unknown\":" + deep + "}",
                                "{\"prompt\":\"x\",\"t\":0,\"unknown\":" + deep_objects + "}",
                                Repeated("[", 200'000),
                                Repeated("{\"a\":", 200'000)};
  for (const char* const name : kEndpoints) {
    for (const std::string& body : bodies) {
      const absl::Status status = EndpointOf(name).parse(body);
      ASSERT_FALSE(status.ok()) << name << " " << body.substr(0, 100);
      EXPECT_EQ(HttpStatusOf(status), 400) << status;
      EXPECT_EQ(ErrorOf(status)["type"], "invalid_request_error");
    }
  }
}

// wrong_fields_test.cc tests which fields belong elsewhere. false counts as absent.
TEST(SessionRequestTest, WhatAsksForNothingIsNoHarm) {
  EXPECT_TRUE(ParseSessionRequest(R"({"prompt": "x", "stream": false})", TestDefaults()).ok());
  EXPECT_TRUE(ParseAppendRequest(R"({"prompt": "x", "stream": false})", TestDefaults()).ok());
  EXPECT_TRUE(ParseForkRequest(R"({"ignore_eos": false})", TestDefaults()).ok());
}

TEST(SessionRequestTest, ASessionHasOneText) {
  for (const char* const name : {"session", "continue"}) {
    for (const char* const n : {"0", "2", "9", "-1", "1.5", "\"1\""}) {
      Json body = Json::parse(EndpointOf(name).full);
      body["n"] = Json::parse(n);
      EXPECT_THAT(std::string(EndpointOf(name).parse(body.dump()).message()),
                  testing::HasSubstr("can be forked"))
          << name << " " << n;
    }
  }
}

TEST(SessionRequestTest, AsDeepAsItMayBeIsPassedOver) {
  const std::string unknown = Repeated("[", 60) + Repeated("]", 60);
  for (const char* const name : kEndpoints) {
    Json body = Json::parse(EndpointOf(name).full);
    body["unknown"] = Json::parse(unknown);
    EXPECT_TRUE(EndpointOf(name).parse(body.dump()).ok()) << name;
  }
}

}  // namespace
}  // namespace trine::server
