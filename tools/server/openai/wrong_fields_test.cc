// Every field of every endpoint with every type it must not have: 400, and the field's name.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "tools/server/openai/request_test_util.h"

namespace trine::server {
namespace {

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
    {"session", "/model", "s"},
    {"session", "/user", "s"},
    {"session", "/prompt", "sa"},
    {"session", "/temperature", "n"},
    {"session", "/top_p", "n"},
    {"session", "/top_k", "n"},
    {"session", "/min_p", "n"},
    {"session", "/typical_p", "n"},
    {"session", "/repeat_last_n", "n"},
    {"session", "/repeat_penalty", "n"},
    {"session", "/frequency_penalty", "n"},
    {"session", "/presence_penalty", "n"},
    {"session", "/mirostat", "n"},
    {"session", "/mirostat_tau", "n"},
    {"session", "/mirostat_eta", "n"},
    {"session", "/min_keep", "n"},
    {"session", "/samplers", "sa"},
    {"session", "/samplers/0", "s"},
    {"session", "/logit_bias", "oa"},
    {"session", "/logit_bias/12", "n"},
    {"session", "/seed", "n"},
    {"session", "/stop", "sa"},
    {"session", "/stop/1", "s"},
    {"session", "/n", "n"},
    {"session", "/ignore_eos", "b"},
    {"session", "/stream", "b"},
    {"session", "/response_format", "o"},
    {"session", "/response_format/type", "s"},
    {"session", "/response_format/json_schema", "o"},
    {"session", "/response_format/json_schema/name", "s"},
    {"session", "/response_format/json_schema/schema", "ob"},
    {"session", "/json_schema", "ob"},
    {"session", "/grammar", "s"},
    {"session chat", "/messages", "a"},
    {"session chat", "/messages/0", "o"},
    {"session chat", "/messages/0/role", "s"},
    {"session chat", "/messages/0/content", "sa"},
    {"session chat", "/chat_template_kwargs", "o"},
    {"session chat", "/reasoning_effort", "s"},
    {"append", "/prompt", "sa"},
    {"continue", "/model", "s"},
    {"continue", "/user", "s"},
    {"continue", "/n", "n"},
    {"continue", "/max_tokens", "n"},
    {"continue", "/max_completion_tokens", "n"},
    {"continue", "/n_predict", "n"},
    {"continue", "/stream", "b"},
    {"continue", "/stream_options", "o"},
    {"continue", "/stream_options/include_usage", "b"},
    {"continue", "/logprobs", "n"},
    {"continue", "/temperature", ""},
    {"continue", "/top_p", ""},
    {"continue", "/top_k", ""},
    {"continue", "/min_p", ""},
    {"continue", "/typical_p", ""},
    {"continue", "/repeat_penalty", ""},
    {"continue", "/repeat_last_n", ""},
    {"continue", "/frequency_penalty", ""},
    {"continue", "/presence_penalty", ""},
    {"continue", "/mirostat", ""},
    {"continue", "/mirostat_tau", ""},
    {"continue", "/mirostat_eta", ""},
    {"continue", "/min_keep", ""},
    {"continue", "/samplers", ""},
    {"continue", "/logit_bias", ""},
    {"continue", "/seed", ""},
    {"continue", "/stop", ""},
    {"continue", "/ignore_eos", ""},
    {"continue", "/response_format", ""},
    {"continue", "/json_schema", ""},
    {"continue", "/grammar", ""},
    {"continue", "/prompt", ""},
    {"continue", "/messages", ""},
    {"regress", "/t", "n"},
    {"fork", "/n", "n"},
    {"fork", "/seed", "n"},
};

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

}  // namespace
}  // namespace trine::server
