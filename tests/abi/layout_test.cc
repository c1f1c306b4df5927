#include "tests/abi/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/abi/header_text.h"

namespace trine::abi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kHeader[] = R"(
#ifndef GUARD_H_
#define GUARD_H_
#define LIMIT 4u /* a; b */
#define SKIPPED __attribute__((x))
enum { A = 1, /* = 7, */ B = 1u << 1 };
typedef struct opaque opaque;
typedef struct pair {
  uint32_t size; /* { } */
  char name[16];
  const opaque* const* items;
  int (*call)(void* self, uint32_t n);
} pair;
#endif /* GUARD_H_ */
)";

TEST(HeaderTextTest, FindsConstantsStructsAndMembers) {
  const HeaderText header = ParseHeader(kHeader, {"SKIPPED"});
  EXPECT_THAT(header.constants, ElementsAre("LIMIT", "A", "B"));
  ASSERT_EQ(header.structs.size(), 1u);
  EXPECT_EQ(header.structs[0].name, "pair");
  EXPECT_THAT(header.structs[0].members, ElementsAre("size", "name", "items", "call"));
}

TEST(HeaderTextTest, WritesOneEntryForEach) {
  const std::string source = LayoutSource(ParseHeader(kHeader, {"SKIPPED"}));
  EXPECT_THAT(source, HasSubstr("Constant(\"B\", B)"));
  EXPECT_THAT(source, HasSubstr("Struct(\"pair\", sizeof(pair))"));
  EXPECT_THAT(source,
              HasSubstr("Member(\"pair\", \"call\", offsetof(pair, call), sizeof(pair::call))"));
}

TEST(LayoutTest, FindsBytesNobodyLists) {
  EXPECT_EQ(FindGap({Struct("s", 8), Member("s", "a", 0, 4), Member("s", "b", 4, 4)}), "");
  EXPECT_THAT(FindGap({Struct("s", 12), Member("s", "a", 0, 4), Member("s", "b", 8, 4)}),
              HasSubstr("before s.b"));
  EXPECT_THAT(FindGap({Struct("s", 8), Member("s", "a", 0, 4)}), HasSubstr("end of s"));
}

TEST(LayoutTest, TellsLostLinesFromAddedOnes) {
  const Difference same = Compare({"const A 1", "struct s 8"}, {"struct s 8", "const A 1"});
  EXPECT_THAT(same.lost, IsEmpty());
  EXPECT_THAT(same.added, IsEmpty());
  const Difference changed = Compare({"const A 1"}, {"const A 2", "const B 3"});
  EXPECT_THAT(changed.lost, ElementsAre("const A 1"));
  EXPECT_THAT(changed.added, ElementsAre("const A 2", "const B 3"));
}

TEST(LayoutTest, ANewMinorMayGrowStructsButKeepsTheRest) {
  const std::vector<std::string> older = {"const TRINE_ABI_MINOR 0", "const A 1", "struct s 8",
                                          "member s.a 0 8"};
  EXPECT_THAT(BrokenPromises(older, {"const TRINE_ABI_MINOR 1", "const A 1", "struct s 16",
                                     "member s.a 0 8", "member s.b 8 8"}),
              IsEmpty());
  EXPECT_THAT(BrokenPromises(
                  older, {"const TRINE_ABI_MINOR 1", "const A 2", "struct s 4", "member s.a 0 4"}),
              ElementsAre("const A 1", "struct s 8", "member s.a 0 8"));
}

TEST(LayoutTest, NoMinorChangesTheMajorOrTheError) {
  const std::vector<std::string> older = {
      "const TRINE_ABI_MAJOR 1", "const TRINE_ABI_VERSION 65536", "struct trine_error 256"};
  EXPECT_THAT(BrokenPromises(older, {"const TRINE_ABI_MAJOR 1", "const TRINE_ABI_VERSION 65537",
                                     "struct trine_error 256"}),
              IsEmpty());
  EXPECT_THAT(BrokenPromises(older, {"const TRINE_ABI_MAJOR 2", "const TRINE_ABI_VERSION 131072",
                                     "struct trine_error 260"}),
              ElementsAre("const TRINE_ABI_MAJOR 1", "struct trine_error 256"));
}

// A holder's later members move, or the member itself gets longer: either is found.
TEST(LayoutTest, AnEmbeddedStructDoesNotGrow) {
  EXPECT_THAT(BrokenPromises({"struct inner 8", "struct outer 16", "member outer.inner 8 8"},
                             {"struct inner 16", "struct outer 24", "member outer.inner 8 16"}),
              ElementsAre("member outer.inner 8 8"));
}

TEST(LayoutTest, ReadsGoldenFilesWithoutTheirComments) {
  EXPECT_THAT(GoldenLines("# about\n\nconst A 1\nstruct s 8\n"),
              ElementsAre("const A 1", "struct s 8"));
}

}  // namespace
}  // namespace trine::abi
