#include "kernels/vulkan/spirv/shaders.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

TEST(ShadersTest, EmbedsSpirvWithItsInterface) {
  const Shader& add = shaders::add_f32;
  EXPECT_STREQ(add.name, "add_f32");
  EXPECT_EQ(add.words[0], 0x07230203u);
  EXPECT_EQ(add.binding_count, 3u);
  EXPECT_EQ(add.reads, 0b011u);
  EXPECT_EQ(add.writes, 0b100u);
  EXPECT_EQ(add.push_bytes, 4u);
  EXPECT_TRUE(add.exact);
}

TEST(ShadersTest, ListsEachShaderOnce) {
  std::set<std::string> names;
  std::set<uint64_t> hashes;
  for (const Shader* shader : AllShaders()) {
    EXPECT_TRUE(names.insert(shader->name).second) << shader->name;
    EXPECT_TRUE(hashes.insert(shader->hash).second) << shader->name << " is another one's twin";
    EXPECT_GT(shader->word_count, 5u);
  }
  EXPECT_TRUE(names.contains("add_f32"));
}

}  // namespace
}  // namespace trine::vulkan
