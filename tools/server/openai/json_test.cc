#include "tools/server/openai/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/requests/request_test_util.h"

namespace trine::server {
namespace {

using testing::HasSubstr;

std::string Why(std::string_view text) {
  const auto json = ParseJson(text);
  return json.ok() ? "" : std::string(json.status().message());
}

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonTest, ReadsAndWritesTheSame) {
  for (const char* const text :
       {"{}", "[]", "null", "true", R"("a\u0000b")", R"({"z":1,"a":[1.5,-2,{"b":null}]})",
        R"(["é","😀"])", "18446744073709551615", "-9223372036854775808"}) {
    const auto json = ParseJson(text);
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(Dump(*json), text);
  }
}

TEST(JsonTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Why(""), HasSubstr("is not JSON"));
  EXPECT_THAT(Why("{\"a\":\n  x}"), HasSubstr("line 2, column 3"));
  EXPECT_THAT(Why("{} {}"), HasSubstr("is not JSON"));
  EXPECT_THAT(Why("{\"a\":1,}"), HasSubstr("column 8"));
  EXPECT_THAT(Why("NaN"), HasSubstr("is not JSON"));
  EXPECT_THAT(Why("[1e999]"), HasSubstr("number overflow"));
  EXPECT_THAT(Why("[\"\xff\"]"), HasSubstr("offset 2"));
  EXPECT_THAT(Why("[\"\\ud800\"]"), HasSubstr("surrogate"));
  EXPECT_THAT(Why(R"({"a":1,"b":{"c":1,"c":2}})"), HasSubstr("two members \"c\""));
  EXPECT_LT(Why("[" + std::string(100000, '7') + "x").size(), 400u);
}

TEST(JsonTest, DepthIsLimited) {
  EXPECT_EQ(Why(Nested(kMaxJsonDepth)), "");
  EXPECT_THAT(Why(Nested(kMaxJsonDepth + 1)), HasSubstr("deeper than 64"));
  EXPECT_THAT(Why(std::string(5'000'000, '[')), HasSubstr("deeper than 64"));
}

// The library's own reader takes a minute for this text.
TEST(JsonTest, ManyMembersAreReadInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 300000; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"", i, "\":0");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Why(text + "}"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(JsonTest, WhatIsNoTextOrNumberIsMended) {
  EXPECT_EQ(Dump(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(Dump(Json(std::numeric_limits<double>::infinity())), "null");
}

TEST(ApiErrorTest, Shapes) {
  const auto body = [](const absl::Status& status) { return ErrorBody(status); };
  EXPECT_EQ(body(ParamError("n", "'n' is 0")),
            R"({"error":{"message":"'n' is 0","type":"invalid_request_error","param":"n",)"
            R"("code":null}})");
  EXPECT_EQ(body(absl::OutOfRangeError("too long")),
            R"({"error":{"message":"too long","type":"invalid_request_error","param":null,)"
            R"("code":"context_length_exceeded"}})");
  EXPECT_EQ(body(absl::ResourceExhaustedError("full")),
            R"({"error":{"message":"full","type":"rate_limit_error","param":null,)"
            R"("code":"rate_limit_exceeded"}})");
  EXPECT_EQ(body(absl::UnavailableError("loading")),
            R"({"error":{"message":"loading","type":"unavailable","param":null,)"
            R"("code":"unavailable"}})");
  EXPECT_EQ(body(absl::InternalError("oh")),
            R"({"error":{"message":"oh","type":"server_error","param":null,)"
            R"("code":"internal_error"}})");
  EXPECT_EQ(ErrorOf(absl::UnauthenticatedError("no"))["type"], "authentication_error");
  EXPECT_EQ(ErrorOf(absl::NotFoundError("no"))["type"], "not_found_error");
  EXPECT_TRUE(Json::accept(body(absl::InternalError("\xff"))));
}

TEST(ApiErrorTest, HttpStatus) {
  EXPECT_EQ(HttpStatusOf(absl::OkStatus()), 200);
  EXPECT_EQ(HttpStatusOf(absl::InvalidArgumentError("")), 400);
  EXPECT_EQ(HttpStatusOf(absl::OutOfRangeError("")), 400);
  EXPECT_EQ(HttpStatusOf(absl::UnauthenticatedError("")), 401);
  EXPECT_EQ(HttpStatusOf(absl::PermissionDeniedError("")), 403);
  EXPECT_EQ(HttpStatusOf(absl::NotFoundError("")), 404);
  EXPECT_EQ(HttpStatusOf(absl::ResourceExhaustedError("")), 429);
  EXPECT_EQ(HttpStatusOf(absl::CancelledError("")), 499);
  EXPECT_EQ(HttpStatusOf(absl::DataLossError("")), 500);
  EXPECT_EQ(HttpStatusOf(absl::UnavailableError("")), 503);
  EXPECT_EQ(HttpStatusOf(absl::DeadlineExceededError("")), 504);
  for (const int number : {400, 401, 403, 404, 405, 408, 413, 429, 499, 500, 503, 504}) {
    const absl::Status status = HttpError(number, "x");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(HttpStatusOf(status), number);
  }
  EXPECT_EQ(ErrorOf(HttpError(413, "big"))["code"], "request_too_large");
  EXPECT_EQ(ErrorOf(HttpError(404, "no", "model_not_found"))["code"], "model_not_found");
}

TEST(ApiErrorTest, ParamMayComeLater) {
  EXPECT_EQ(ParamOf(WithParam(absl::InvalidArgumentError("x"), "grammar")), "grammar");
  EXPECT_EQ(ParamOf(WithParam(ParamError("a", "x"), "b")), "a");
  EXPECT_TRUE(WithParam(absl::OkStatus(), "b").ok());
}

// Whatever is done to a request, it is answered, and with 400 if it is wrong.
TEST(HostileRequestTest, MutationsAreAnswered) {
  std::mt19937 random(1);
  const std::string_view kBits[] = {"{",   "}",     "[",   "]",    ",",    ":",     "\"",
                                    "1",   "-",     "1e9", "null", "true", "\\u12", "\xff",
                                    "0.5", "\"a\"", "{}",  "[1]",  "[[]]", "\n",    "\\"};
  for (const Endpoint& endpoint : Endpoints()) {
    int right = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string body = endpoint.full;
      for (uint32_t change = 0; change <= random() % 4; ++change) {
        const size_t at = random() % body.size();
        const std::string_view bit = kBits[random() % std::size(kBits)];
        const size_t erased = random() % 3 == 0 ? random() % 20 : random() % 2;
        body.replace(at, std::min(erased, body.size() - at), bit);
      }
      const absl::Status status = endpoint.parse(body);
      if (status.ok()) {
        ++right;
      } else {
        EXPECT_EQ(HttpStatusOf(status), 400) << status;
        EXPECT_TRUE(Json::accept(ErrorBody(status)));
      }
    }
    EXPECT_LT(right, 3000) << endpoint.name;
  }
}

// Replaces a random value of a request with another of its values.
void Shuffle(std::mt19937* random, Json* json) {
  std::vector<Json*> places = {json};
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i]->is_structured()) continue;
    for (Json& item : *places[i]) places.push_back(&item);
  }
  Json& target = *places[1 + (*random)() % (places.size() - 1)];
  const Json source = *places[(*random)() % places.size()];
  target = source;
}

TEST(HostileRequestTest, ShuffledValuesAreAnswered) {
  std::mt19937 random(2);
  for (const Endpoint& endpoint : Endpoints()) {
    for (int round = 0; round < 1500; ++round) {
      Json json = Json::parse(endpoint.full);
      for (uint32_t change = 0; change <= random() % 3; ++change) Shuffle(&random, &json);
      const absl::Status status = endpoint.parse(json.dump());
      if (!status.ok()) {
        EXPECT_EQ(HttpStatusOf(status), 400) << status;
        EXPECT_TRUE(!ParamOf(status).empty() ||
                    status.message().find("deeper") != std::string::npos)
            << status;
      }
    }
  }
}

TEST(HostileRequestTest, BodiesThatAreNoObject) {
  for (const Endpoint& endpoint : Endpoints()) {
    for (const char* const body : {"", "[]", "null", "1", "\"a\"", "{", "\xff", "{}"}) {
      const bool empty = *body == 0 || std::string_view(body) == "{}";
      if (endpoint.needs_nothing && empty) continue;
      const absl::Status status = endpoint.parse(body);
      EXPECT_EQ(HttpStatusOf(status), 400) << body;
      EXPECT_NE(status.message(), "") << body;
    }
  }
}

}  // namespace
}  // namespace trine::server
