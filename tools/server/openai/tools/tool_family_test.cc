#include "tools/server/openai/tools/tool_family.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

TEST(ToolFamilyTest, OfWholeTemplates) {
  const std::pair<const char*, ToolFamily> kTemplates[] = {
      {"qwen25_tools", ToolFamily::kHermes},
      {"qwen3_thinking", ToolFamily::kHermes},
      {"hermes_tools", ToolFamily::kHermes},
      {"llama31_tools", ToolFamily::kLlama3},
      {"llama3", ToolFamily::kGeneral},
      {"harmony", ToolFamily::kHarmony},
      {"mistral_v3_tools", ToolFamily::kMistral},
      {"mistral_v1", ToolFamily::kGeneral},
      {"chatml", ToolFamily::kGeneral}};
  for (const auto& [name, family] : kTemplates) {
    std::ifstream file(absl::StrCat(TRINE_SOURCE_DIR "/tests/template/families/", name, ".jinja"));
    const std::string source(std::istreambuf_iterator<char>(file), {});
    ASSERT_NE(source, "") << name;
    EXPECT_EQ(ToolFamilyOf(source), family) << name;
  }
}

TEST(ToolFamilyTest, ByTheTemplate) {
  EXPECT_EQ(ToolFamilyOf("{{ '<tool_call>' }}"), ToolFamily::kHermes);
  EXPECT_EQ(ToolFamilyOf("<|start_header_id|> '\"parameters\": '"), ToolFamily::kLlama3);
  EXPECT_EQ(ToolFamilyOf("<|start_header_id|> <|python_tag|>"), ToolFamily::kLlama3);
  EXPECT_EQ(ToolFamilyOf("[AVAILABLE_TOOLS] [TOOL_CALLS]"), ToolFamily::kMistral);
  EXPECT_EQ(ToolFamilyOf("<|tool_call|>"), ToolFamily::kGranite);
  EXPECT_EQ(ToolFamilyOf("<|start|>assistant<|channel|>final<|message|>"), ToolFamily::kHarmony);
  EXPECT_EQ(ToolFamilyOf("'<tool_call>\\n<function=' + tool_call.name + '>\\n'"),
            ToolFamily::kCoder);
  EXPECT_EQ(ToolFamilyOf("'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type']"),
            ToolFamily::kDeepSeek);
  EXPECT_EQ(ToolFamilyOf("<|im_start|>"), ToolFamily::kGeneral);
}

}  // namespace
}  // namespace trine::server
