// Values of the right type that make no sense: 400, with the field's name.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tools/server/openai/requests/request_test_util.h"

namespace trine::server {
namespace {

struct Value {
  const char* endpoint;
  const char* pointer;
  const char* value;
  const char* param;  // "": the pointer's path
};

constexpr Value kValues[] = {
    {"chat", "/temperature", "-0.1", ""},
    {"chat", "/temperature", "1e300", ""},
    {"chat", "/top_p", "1.01", ""},
    {"chat", "/n", "0", ""},
    {"chat", "/n", "9", ""},
    {"chat", "/n", "1.5", ""},
    {"chat", "/n", "1e30", ""},
    {"chat", "/n", "99999999999999999999999", ""},
    {"chat", "/max_tokens", "0", ""},
    {"chat", "/max_completion_tokens", "-2", ""},
    {"chat", "/top_logprobs", "21", ""},
    {"chat", "/logprobs", "false", "top_logprobs"},
    {"chat", "/seed", "0.5", ""},
    {"chat", "/stop", "\"\"", ""},
    {"chat", "/stop", "[\"\"]", "stop[0]"},
    {"chat", "/stop", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", ""},
    {"chat", "/mirostat", "1", ""},
    {"chat", "/samplers", "[\"dry\"]", ""},
    {"chat", "/logit_bias", "{\"1000\":1}", "logit_bias.1000"},
    {"chat", "/logit_bias", "{\"x\":1}", "logit_bias.x"},
    {"chat", "/logit_bias", "{\"-1\":1}", "logit_bias.-1"},
    {"chat", "/logit_bias", "{\"1\":true}", "logit_bias.1"},
    {"chat", "/logit_bias", "[[1]]", "logit_bias[0]"},
    {"chat", "/logit_bias", "[[1000,1]]", "logit_bias[0][0]"},
    {"chat", "/messages", "[]", ""},
    {"chat", "/messages", "null", ""},
    {"chat", "/messages/0/role", "\"king\"", ""},
    {"chat", "/messages/0/content", "null", ""},
    {"chat", "/messages/2/tool_calls", "[]", "messages[2].content"},
    {"chat", "/messages/1/content", "[{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]",
     "messages[1].content[0].type"},
    {"chat", "/messages/1/content", "[{\"type\":\"input_audio\"}]", "messages[1].content[0].type"},
    {"chat", "/messages/1/content", "[{\"type\":\"text\"}]", "messages[1].content[0].text"},
    {"chat", "/response_format", "{}", "response_format.type"},
    {"chat", "/response_format", "{\"type\":\"xml\"}", "response_format.type"},
    {"chat", "/response_format", "{\"type\":\"json_object\"}", "tool_choice"},
    {"chat", "/response_format", "{\"type\":\"json_schema\"}", "response_format.json_schema"},
    {"chat", "/response_format", "{\"type\":\"json_schema\",\"json_schema\":{}}",
     "response_format.json_schema.schema"},
    {"chat", "/ignore_eos", "true", ""},
    {"chat", "/tools", "[]", "tool_choice.function.name"},
    {"chat", "/tools/0/type", "\"web_search\"", ""},
    {"chat", "/tools/0/function/name", "\"\"", ""},
    {"chat", "/tools/0/function/name", "\"a b\"", ""},
    {"chat", "/tools/0/function/parameters/type", "\"string\"", ""},
    {"chat", "/tools/1", "{\"type\":\"function\",\"function\":{\"name\":\"look\"}}",
     "tools[1].function.name"},
    {"chat", "/tool_choice", "\"always\"", ""},
    {"chat", "/tool_choice/function/name", "\"other\"", ""},
    {"chat", "/tool_choice/type", "\"allowed_tools\"", ""},
    {"chat", "/functions", "[]", ""},
    {"chat", "/modalities", "[\"text\",\"audio\"]", "modalities[1]"},
    {"completion", "/suffix", "\"end\"", ""},
    {"completion", "/best_of", "3", ""},
    {"completion", "/prompt", "[]", ""},
    {"completion", "/prompt", "[[]]", "prompt[0]"},
    {"completion", "/prompt", "[1,1000]", ""},
    {"completion", "/prompt", "[1,\"a\"]", ""},
    {"completion", "/prompt", "[[1,-1]]", "prompt[0]"},
    {"completion", "/prompt", "null", ""},
    {"completion", "/prompt", "[\"a\",\"b\",\"c\",\"d\",\"e\"]", "n"},
    {"completion", "/json_schema", "{}", "grammar"},
    {"completion", "/logit_bias", "false", ""},
    {"completion", "/logit_bias", "[12, -5]", "logit_bias[0]"},
    {"completion", "/logit_bias", "[[12]]", "logit_bias[0]"},
    {"completion", "/logit_bias", "[[12, -5, 1]]", "logit_bias[0]"},
    {"completion", "/logit_bias", "[[\"12\", -5]]", "logit_bias[0][0]"},
    {"completion", "/logit_bias", "[[12, \"-5\"]]", "logit_bias[0][1]"},
    {"completion", "/logit_bias", "[[12, true]]", "logit_bias[0][1]"},
    {"completion", "/logit_bias", "[[1000, 1]]", "logit_bias[0][0]"},
    {"responses", "/tools", "5", ""},
    {"responses", "/previous_response_id", "\"resp_1\"", ""},
    {"responses", "/conversation", "\"c\"", ""},
    {"responses", "/tools", "[{}]", ""},
    {"responses", "/background", "true", ""},
    {"responses", "/max_output_tokens", "0", ""},
    {"responses", "/n", "2", ""},
    {"responses", "/input", "[]", ""},
    {"responses", "/input/0", "{\"type\":\"function_call_output\"}", "input[0].type"},
    {"responses", "/input/0", "{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}",
     "input[0].content[0].type"},
    {"responses", "/text/format", "{\"type\":\"json_schema\"}", "text.format.schema"},
    {"embedding", "/input", "\"\"", ""},
    {"embedding", "/input", "[\"a\",\"\"]", ""},
    {"embedding", "/input", "[\"a\",\"b\",\"c\",\"d\",\"e\"]", ""},
    {"embedding", "/encoding_format", "\"int8\"", ""},
    {"embedding", "/dimensions", "15", ""},
    {"tokenize", "/content", "null", ""},
    {"detokenize", "/tokens", "[1000]", ""},
    {"detokenize", "/tokens", "[1.5]", ""},
    {"session", "/prompt", "null", ""},
    {"session", "/prompt", "[]", ""},
    {"session", "/prompt", "[\"a\",\"b\"]", ""},
    {"session", "/prompt", "[[1],[2]]", ""},
    {"session", "/prompt", "[1,1000]", ""},
    {"session", "/prompt", "[1,18446744073709551615]", ""},
    {"session", "/messages", "[{\"role\":\"user\",\"content\":\"Hi\"}]", "prompt"},
    {"session", "/n", "2", ""},
    {"session", "/n", "0", ""},
    {"session", "/temperature", "-1", ""},
    {"session", "/seed", "0.5", ""},
    {"session", "/stop", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", ""},
    {"session", "/grammar", "\"root ::= x\"", ""},
    {"session", "/ignore_eos", "true", ""},
    {"session chat", "/messages", "[]", ""},
    {"session chat", "/messages/0/role", "\"king\"", ""},
    {"append", "/prompt", "null", ""},
    {"append", "/prompt", "[]", ""},
    {"append", "/prompt", "[-1]", ""},
    {"append", "/prompt", "[1000]", ""},
    {"append", "/prompt", "[1.5]", ""},
    {"append", "/prompt", "[\"a\",\"b\"]", ""},
    {"continue", "/n", "2", ""},
    {"continue", "/n", "0", ""},
    {"continue", "/max_completion_tokens", "-2", ""},
    {"continue", "/max_completion_tokens", "1e300", ""},
    {"continue", "/logprobs", "-1", ""},
    {"continue", "/logprobs", "21", ""},
    {"regress", "/t", "null", ""},
    {"regress", "/t", "-1", ""},
    {"regress", "/t", "1e300", ""},
    {"regress", "/t", "9223372036854775808", ""},
    {"fork", "/n", "0", ""},
    {"fork", "/n", "9", ""},
    {"fork", "/n", "1.5", ""},
    {"fork", "/seed", "0.5", ""},
    {"fork", "/seed", "1e300", ""},
};

TEST(WrongValuesTest, AreRefusedByName) {
  for (const Value& v : kValues) {
    const Endpoint& endpoint = EndpointOf(v.endpoint);
    Json body = Json::parse(endpoint.full);
    body[Json::json_pointer(v.pointer)] = Json::parse(v.value);
    const absl::Status status = endpoint.parse(body.dump());
    ASSERT_FALSE(status.ok()) << v.endpoint << v.pointer << " " << v.value;
    EXPECT_EQ(HttpStatusOf(status), 400);
    EXPECT_EQ(ParamOf(status), *v.param == 0 ? PathOf(v.pointer) : v.param)
        << v.value << " " << status;
  }
}

// Fields that an endpoint does not know are ignored, whatever they are. (Sessions know the fields
// that they refuse.)
TEST(WrongValuesTest, WhatIsNotKnownIsPassedOver) {
  const std::pair<const char*, const char*> kUnknown[] = {
      {"chat", "/prompt"},          {"chat", "/echo"},
      {"chat", "/store"},           {"completion", "/tools"},
      {"completion", "/messages"},  {"completion", "/tool_choice"},
      {"completion", "/text"},      {"responses", "/messages"},
      {"responses", "/max_tokens"}, {"responses", "/reasoning"},
      {"responses", "/store"},      {"embedding", "/temperature"},
      {"embedding", "/stream"},     {"tokenize", "/model"},
      {"detokenize", "/model"},     {"session", "/tools"},
      {"session", "/unknown"},      {"append", "/unknown"},
      {"continue", "/tools"},       {"checkpoint", "/t"},
      {"checkpoint", "/prompt"},    {"regress", "/n"}};
  for (const auto& [name, pointer] : kUnknown) {
    for (const char* const value : {"5", "\"x\"", "true", "[{}]", "{\"a\":[]}"}) {
      const Endpoint& endpoint = EndpointOf(name);
      Json body = Json::parse(endpoint.full);
      body[Json::json_pointer(pointer)] = Json::parse(value);
      EXPECT_TRUE(endpoint.parse(body.dump()).ok()) << name << pointer << " " << value;
    }
  }
}

}  // namespace
}  // namespace trine::server
