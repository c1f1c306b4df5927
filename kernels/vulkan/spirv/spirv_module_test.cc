#include "kernels/vulkan/spirv/spirv_module.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kExactHead[] =
    "#version 460\n#extension GL_GOOGLE_include_directive : require\n#include \"exact.glsl\"\n";
constexpr char kBuffers[] =
    "layout(local_size_x = 1) in;\n"
    "layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n"
    "layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };\n";

class SpirvModuleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/trine-spirv-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Compiles a shader as the build does.
  SpirvModule Compile(const std::string& source) {
    std::ofstream(folder_ + "/x.comp") << source;
    const std::string command = std::string(TRINE_GLSLC) +
                                " --target-env=vulkan1.2 -O -Werror -I " + TRINE_SHADER_DIR +
                                " -o " + folder_ + "/x.spv " + folder_ + "/x.comp";
    EXPECT_EQ(std::system(command.c_str()), 0) << source;
    std::ifstream in(folder_ + "/x.spv", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    std::vector<uint32_t> words(bytes.size() / 4);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data()));
    return SpirvModule(std::move(words));
  }

  SpirvModule CompileMain(const std::string& body, const std::string& before = "") {
    return Compile(kExactHead + before + kBuffers + "void main() {" + body + "}");
  }

  std::string folder_;
};

TEST_F(SpirvModuleTest, PassesPreciseArithmetic) {
  const SpirvModule module = CompileMain(
      "precise float p = a[0] * a[1]; p = p + a[2]; p = p - 1.0; y[0] = max(Canon(p), a[3]);");
  EXPECT_EQ(module.error(), "");
  EXPECT_THAT(module.InexactUses(), IsEmpty());
}

TEST_F(SpirvModuleTest, CatchesWhatIsNotPrecise) {
  EXPECT_THAT(CompileMain("y[0] = a[0] * a[1];").InexactUses(),
              Contains(HasSubstr("NoContraction")));
  // -O fuses this multiply and add by itself.
  EXPECT_THAT(CompileMain("y[0] = a[0] * a[1] + a[2];").InexactUses(), Not(IsEmpty()));
}

TEST_F(SpirvModuleTest, CatchesAHelperThatIsNotPrecise) {
  const SpirvModule module = CompileMain("precise float p = Mad(a[0], a[1], a[2]); y[0] = p;",
                                         "float Mad(float x, float y, float z) { return x*y+z; }");
  EXPECT_THAT(module.InexactUses(), Not(IsEmpty()));
}

TEST_F(SpirvModuleTest, CatchesArithmeticOfTheDriver) {
  for (const char* body :
       {"precise float p = a[0] / a[1]; y[0] = p;", "precise float p = sqrt(a[0]); y[0] = p;",
        "precise float p = exp(a[0]); y[0] = p;",
        "precise float p = fma(a[0], a[1], 1.0); y[0] = p;",
        "precise float p = unpackHalf2x16(floatBitsToUint(a[0])).x; y[0] = p;",
        "precise float p = dot(vec2(a[0], a[1]), vec2(a[2], a[3])); y[0] = p;",
        "precise float p = mod(a[0], a[1]); y[0] = p;"}) {
    EXPECT_THAT(CompileMain(body).InexactUses(), Not(IsEmpty())) << body;
  }
}

TEST_F(SpirvModuleTest, CatchesFloatReductionsAndOtherWidths) {
  EXPECT_THAT(CompileMain("precise float p = subgroupAdd(a[0]); y[0] = p;",
                          "#extension GL_KHR_shader_subgroup_arithmetic : require\n")
                  .InexactUses(),
              Contains(HasSubstr("OpGroupNonUniformFAdd")));
  EXPECT_THAT(
      CompileMain("precise double p = double(a[0]) * 3.0lf; y[0] = float(p);").InexactUses(),
      Contains(HasSubstr("not of 32 bits")));
}

TEST_F(SpirvModuleTest, WantsTheRoundingModeOfArithmetic) {
  const std::string sum = "void main() { precise float p = a[0] + a[1]; y[0] = p; }";
  EXPECT_THAT(Compile(std::string("#version 460\n") + kBuffers + sum).InexactUses(),
              Contains(HasSubstr("nearest even")));
  const std::string copy = "void main() { y[0] = a[0]; }";
  EXPECT_THAT(Compile(std::string("#version 460\n") + kBuffers + copy).InexactUses(), IsEmpty());
}

TEST_F(SpirvModuleTest, ReadsTheInterface) {
  const SpirvModule module = Compile(
      "#version 460\nlayout(local_size_x = 1) in;\n"
      "layout(set = 0, binding = 0) readonly buffer A { uint n; float a[]; };\n"
      "layout(set = 0, binding = 1) buffer B { uint b[]; };\n"
      "layout(set = 0, binding = 2) writeonly buffer C { float c[]; };\n"
      "layout(push_constant) uniform P { uint k; uvec2 d; float s[3]; };\n"
      "void main() { b[0] += n + k + d.y; c[0] = a[0] < s[2] ? 1.0 : 0.0; }");
  ASSERT_EQ(module.error(), "");
  EXPECT_EQ(module.interface().binding_count, 3u);
  EXPECT_EQ(module.interface().reads, 0b011u);
  EXPECT_EQ(module.interface().writes, 0b110u);
  EXPECT_EQ(module.interface().push_bytes, 28u);
  EXPECT_THAT(module.interface().capabilities, Contains(1u));
}

TEST_F(SpirvModuleTest, RefusesWhatThePluginCouldNotBind) {
  const std::string head = "#version 460\nlayout(local_size_x = 1) in;\n";
  EXPECT_THAT(Compile(head + "layout(set = 0, binding = 1) buffer A { uint a[]; };"
                             "void main() { a[0] = 1; }")
                  .error(),
              HasSubstr("gap"));
  EXPECT_THAT(Compile(head + "layout(set = 1, binding = 0) buffer A { uint a[]; };"
                             "void main() { a[0] = 1; }")
                  .error(),
              HasSubstr("set 0"));
  EXPECT_THAT(Compile(head + "layout(set = 0, binding = 0) buffer A { uint a[]; };"
                             "layout(push_constant) uniform P { uint k[33]; };"
                             "void main() { a[0] = k[32]; }")
                  .error(),
              HasSubstr("132 bytes"));
  EXPECT_THAT(SpirvModule({1, 2, 3}).error(), HasSubstr("not a SPIR-V module"));
  EXPECT_THAT(SpirvModule({0x07230203, 0x10500, 0, 1, 0, 0x00090011}).error(),
              HasSubstr("cut short"));
}

// Runs the step of the build: a shader that is not exact must stop it.
TEST_F(SpirvModuleTest, StopsTheBuild) {
  CompileMain("y[0] = a[0] * a[1];");
  const auto embed = [&](const char* numerics) {
    const std::string command = std::string(TRINE_EMBED_SHADER) + " x " + numerics + " " + folder_ +
                                "/x.spv " + folder_ + "/x.cc 2>" + folder_ + "/log";
    return std::system(command.c_str());
  };
  EXPECT_NE(embed("exact"), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/x.cc"));
  EXPECT_EQ(embed("fast"), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/x.cc"));
}

}  // namespace
}  // namespace trine::vulkan
