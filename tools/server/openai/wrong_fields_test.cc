// Every field of every endpoint with every type it must not have: 400, and the field's name.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/server/openai/request_test_util.h"

namespace trine::server {
namespace {

// "/messages/0/content" as "messages[0].content".
std::string PathOf(const std::string& pointer) {
  std::string path;
  for (const std::string& step : std::vector<std::string>(absl::StrSplit(pointer, '/'))) {
    if (step.empty()) continue;
    const bool index = std::all_of(step.begin(), step.end(), ::isdigit);
    // A token in logit_bias is a name, and reads like a number.
    if (index && path != "logit_bias") {
      absl::StrAppend(&path, "[", step, "]");
    } else {
      absl::StrAppend(&path, path.empty() ? "" : ".", step);
    }
  }
  return path;
}

struct Case {
  const char* endpoint;
  const char* pointer;
  const char* right;  // letters of types it may have: s n b a o
};

constexpr Case kCases[] = {
    {"chat", "/model", "s"},
    {"chat", "/user", "s"},
    {"chat", "/temperature", "n"},
    {"chat", "/top_p", "n"},
    {"chat", "/top_k", "n"},
    {"chat", "/min_p", "n"},
    {"chat", "/typical_p", "n"},
    {"chat", "/repeat_last_n", "n"},
    {"chat", "/repeat_penalty", "n"},
    {"chat", "/frequency_penalty", "n"},
    {"chat", "/presence_penalty", "n"},
    {"chat", "/mirostat", "n"},
    {"chat", "/mirostat_tau", "n"},
    {"chat", "/mirostat_eta", "n"},
    {"chat", "/min_keep", "n"},
    {"chat", "/samplers", "sa"},
    {"chat", "/samplers/0", "s"},
    {"chat", "/logit_bias", "oa"},
    {"chat", "/logit_bias/12", "n"},
    {"chat", "/seed", "n"},
    {"chat", "/stop", "sa"},
    {"chat", "/stop/1", "s"},
    {"chat", "/n", "n"},
    {"chat", "/max_tokens", "n"},
    {"chat", "/max_completion_tokens", "n"},
    {"chat", "/n_predict", "n"},
    {"chat", "/logprobs", "b"},
    {"chat", "/top_logprobs", "n"},
    {"chat", "/ignore_eos", "b"},
    {"chat", "/stream", "b"},
    {"chat", "/stream_options", "o"},
    {"chat", "/stream_options/include_usage", "b"},
    {"chat", "/parallel_tool_calls", "b"},
    {"chat", "/response_format", "o"},
    {"chat", "/response_format/type", "s"},
    {"chat", "/json_schema", "ob"},
    {"chat", "/grammar", "s"},
    {"chat", "/chat_template_kwargs", "o"},
    {"chat", "/reasoning_effort", "s"},
    {"chat", "/modalities", "a"},
    {"chat", "/modalities/0", "s"},
    {"chat", "/messages", "a"},
    {"chat", "/messages/1", "o"},
    {"chat", "/messages/0/role", "s"},
    {"chat", "/messages/0/content", "sa"},
    {"chat", "/messages/1/content/0", "o"},
    {"chat", "/messages/1/content/0/type", "s"},
    {"chat", "/messages/1/content/1/text", "s"},
    {"chat", "/messages/1/name", "s"},
    {"chat", "/messages/2/tool_calls", "a"},
    {"chat", "/messages/2/tool_calls/0", "o"},
    {"chat", "/messages/2/tool_calls/0/id", "s"},
    {"chat", "/messages/2/tool_calls/0/type", "s"},
    {"chat", "/messages/2/tool_calls/0/function", "o"},
    {"chat", "/messages/2/tool_calls/0/function/name", "s"},
    {"chat", "/messages/2/tool_calls/0/function/arguments", "so"},
    {"chat", "/messages/3/tool_call_id", "s"},
    {"chat", "/tools", "a"},
    {"chat", "/tools/0", "o"},
    {"chat", "/tools/0/type", "s"},
    {"chat", "/tools/0/function", "o"},
    {"chat", "/tools/0/function/name", "s"},
    {"chat", "/tools/0/function/description", "s"},
    {"chat", "/tools/0/function/strict", "b"},
    {"chat", "/tools/0/function/parameters", "o"},
    {"chat", "/tools/0/function/parameters/type", ""},
    {"chat", "/tool_choice", "so"},
    {"chat", "/tool_choice/type", "s"},
    {"chat", "/tool_choice/function", "o"},
    {"chat", "/tool_choice/function/name", "s"},
    {"completion", "/prompt", "sa"},
    {"completion", "/prompt/1", "sa"},
    {"completion", "/best_of", "n"},
    {"completion", "/echo", "b"},
    {"completion", "/logprobs", "n"},
    {"completion", "/max_tokens", "n"},
    {"completion", "/suffix", "s"},
    {"completion", "/stop", "sa"},
    {"completion", "/seed", "n"},
    {"completion", "/logit_bias", "oa"},
    {"completion", "/grammar", "s"},
    {"completion", "/temperature", "n"},
    {"completion", "/stream_options", "o"},
    {"responses", "/model", "s"},
    {"responses", "/instructions", "s"},
    {"responses", "/max_output_tokens", "n"},
    {"responses", "/temperature", "n"},
    {"responses", "/top_p", "n"},
    {"responses", "/stream", "b"},
    {"responses", "/metadata", "o"},
    {"responses", "/tools", "a"},
    {"responses", "/background", "b"},
    {"responses", "/text", "o"},
    {"responses", "/text/format", "o"},
    {"responses", "/text/format/type", "s"},
    {"responses", "/text/format/name", "s"},
    {"responses", "/text/format/strict", "b"},
    {"responses", "/text/format/schema", "ob"},
    {"responses", "/input", "sa"},
    {"responses", "/input/0", "o"},
    {"responses", "/input/1/type", "s"},
    {"responses", "/input/0/role", "s"},
    {"responses", "/input/0/content", "sa"},
    {"responses", "/input/1/content/0", "o"},
    {"responses", "/input/1/content/0/text", "s"},
    {"embedding", "/model", "s"},
    {"embedding", "/user", "s"},
    {"embedding", "/input", "sa"},
    {"embedding", "/input/1", "sa"},
    {"embedding", "/encoding_format", "s"},
    {"embedding", "/dimensions", "n"},
    {"tokenize", "/content", "s"},
    {"tokenize", "/add_special", "b"},
    {"tokenize", "/parse_special", "b"},
    {"tokenize", "/with_pieces", "b"},
    {"detokenize", "/tokens", "a"},
};

const Endpoint& EndpointOf(std::string_view name) {
  return *std::find_if(Endpoints().begin(), Endpoints().end(),
                       [name](const Endpoint& endpoint) { return endpoint.name == name; });
}

TEST(WrongFieldsTest, FullRequestsAreRight) {
  for (const Endpoint& endpoint : Endpoints()) {
    EXPECT_TRUE(endpoint.parse(endpoint.full).ok()) << endpoint.parse(endpoint.full);
  }
}

TEST(WrongFieldsTest, WrongTypesAreRefusedByName) {
  const std::pair<char, Json> kWrong[] = {{'s', Json("x")},
                                          {'n', Json(0.25)},
                                          {'b', Json(true)},
                                          {'a', Json::parse("[[{}]]")},
                                          {'o', Json::parse(R"({"x": {}})")}};
  for (const Case& c : kCases) {
    const Endpoint& endpoint = EndpointOf(c.endpoint);
    for (const auto& [letter, value] : kWrong) {
      if (std::string_view(c.right).find(letter) != std::string_view::npos) continue;
      Json body = Json::parse(endpoint.full);
      body[Json::json_pointer(c.pointer)] = value;
      const absl::Status status = endpoint.parse(body.dump());
      ASSERT_FALSE(status.ok()) << c.endpoint << c.pointer << " " << value;
      EXPECT_EQ(HttpStatusOf(status), 400);
      EXPECT_EQ(ParamOf(status), PathOf(c.pointer)) << status;
      EXPECT_EQ(ErrorOf(status)["type"], "invalid_request_error");
    }
  }
}

TEST(WrongFieldsTest, NullIsAbsent) {
  for (const Case& c : kCases) {
    const Endpoint& endpoint = EndpointOf(c.endpoint);
    Json null = Json::parse(endpoint.full), absent = null;
    const Json::json_pointer pointer(c.pointer);
    null[pointer] = nullptr;
    if (absent[pointer.parent_pointer()].is_array()) continue;
    absent[pointer.parent_pointer()].erase(pointer.back());
    const absl::Status with_null = endpoint.parse(null.dump());
    EXPECT_EQ(with_null, endpoint.parse(absent.dump())) << c.endpoint << c.pointer;
    if (!with_null.ok()) {
      EXPECT_NE(ParamOf(with_null), "") << with_null;
    }
  }
}

struct Value {
  const char* endpoint;
  const char* pointer;
  const char* value;
  const char* param;  // "": as the pointer
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
};

TEST(WrongFieldsTest, WrongValuesAreRefusedByName) {
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

}  // namespace
}  // namespace trine::server
