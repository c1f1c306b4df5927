#include "tools/server/openai/answers/plain_answers.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

TEST(EmbeddingsBodyTest, Floats) {
  const std::vector<std::vector<float>> vectors = {{0.1f, -2, 1e-9f}, {}};
  EXPECT_EQ(EmbeddingsBody(vectors, false, "m\"", 5),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":)"
            R"([0.1,-2,1e-09]},{"object":"embedding","index":1,"embedding":[]}],)"
            R"("model":"m\"","usage":{"prompt_tokens":5,"total_tokens":5}})");
}

TEST(EmbeddingsBodyTest, Base64IsLittleEndian) {
  const std::vector<std::vector<float>> vectors = {{1.0f, -0.1f}};
  const Json body = Json::parse(EmbeddingsBody(vectors, true, "m", 5));
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(body["data"][0]["embedding"].get<std::string>(), &bytes));
  EXPECT_EQ(bytes, std::string("\x00\x00\x80\x3f\xcd\xcc\xcc\xbd", 8));
}

TEST(ModelsBodyTest, Shapes) {
  const ModelCard card{
      .id = "tales", .created = 9, .context_length = 512, .vocab_size = 100, .embedding_size = 8};
  const std::string one = R"({"id":"tales","object":"model","created":9,"owned_by":"trine",)"
                          R"("meta":{"n_ctx":512,"n_vocab":100,"n_embd":8,"chat":true}})";
  EXPECT_EQ(ModelBody(card), one);
  EXPECT_EQ(ModelsBody({&card, 1}), R"({"object":"list","data":[)" + one + "]}");
}

TEST(TokenizeBodyTest, Shapes) {
  const std::vector<int32_t> tokens = {3, 4};
  const std::vector<std::string> pieces = {" a", "\xC3"};
  EXPECT_EQ(TokenizeBody(tokens, {}), R"({"tokens":[3,4],"count":2})");
  EXPECT_EQ(TokenizeBody(tokens, pieces),
            R"({"tokens":[{"id":3,"piece":" a"},{"id":4,"piece":[195]}],"count":2})");
  EXPECT_EQ(DetokenizeBody("a\n"), R"({"content":"a\n"})");
}

}  // namespace
}  // namespace trine::server
