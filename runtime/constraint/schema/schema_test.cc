#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/constraint/mask/constraint_test_util.h"
#include "runtime/constraint/schema/schema_compiler.h"
#include "runtime/constraint/schema/schema_facts.h"

namespace trine {
namespace {

const ConstraintVocabulary& Vocabulary() {
  static const auto* const vocabulary = new ConstraintVocabulary(SmallVocabulary());
  return *vocabulary;
}

absl::Status CompileLong(const std::string& schema) {
  return constraint::CompileJsonSchema(schema).status();
}

struct SchemaCase {
  std::string schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;  // refused, or not complete
};

void Check(const SchemaCase& c) {
  SCOPED_TRACE(c.schema);
  const auto constraint = MustMakeSchema(c.schema, Vocabulary());
  ASSERT_NE(constraint, nullptr);
  for (const std::string& text : c.good) {
    EXPECT_EQ(Read(constraint, text), Reading::kComplete) << text;
  }
  for (const std::string& text : c.bad) {
    EXPECT_NE(Read(constraint, text), Reading::kComplete) << text;
  }
}

TEST(SchemaTest, AnyValue) {
  for (const char* schema : {"true", "{}", R"({"title":"x","description":"y","x-mine":1})"}) {
    Check({schema,
           {"null", "true", "[]", "{}", "[1,2, 3]", R"({"a":[{"b":null}],"": "x"})", "-0.5", "\"\"",
            R"("a\n\"\\\u0000é")"},
           {"", "nul", "[1,]", "[,1]", "{\"a\"}", "01", "+1", ".5", "1.", "\"\n\"", "\"\\x\"", "-",
            "[1,  2]", "{\"a\":1,}", " 1"}});
  }
}

TEST(SchemaTest, TypesAndValues) {
  Check({R"({"type":["string","null"]})", {"null", "\"a\""}, {"1", "true", "[]"}});
  Check({R"({"type":"integer"})", {"0", "-7", "123456789012345"}, {"1.0", "-0", "00", "1e3"}});
  Check({R"({"enum":["a",1,null,{"k":[1,2]}]})", {"\"a\"", "1", "null", R"({"k":[1,2]})"}, {"2"}});
  Check({R"({"const":"x\"y"})", {R"("x\"y")"}, {"\"x\""}});
  Check({R"({"enum":[1,"a",2.5],"type":"integer"})", {"1"}, {"\"a\"", "2.5"}});
  Check({R"({"enum":[1,2,3],"const":2})", {"2"}, {"1", "3"}});
}

TEST(SchemaTest, Objects) {
  const char* person =
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},)"
      R"("x":{"const":1}},"required":["name","x"]})";
  Check({person,
         {R"({"name":"a","x":1})", R"({"name": "a", "age": 3, "x": 1})"},
         {"{}", R"({"name":"a"})", R"({"x":1,"name":"a"})", R"({"name":"a","x":1,"y":2})"}});
  Check({R"({"properties":{"a":{"type":"null"}},"additionalProperties":{"type":"boolean"},)"
         R"("type":"object"})",
         {"{}", R"({"a":null,"b":true})", R"({"ab":false,"":true})"},
         {R"({"a":true})", R"({"b":1})", R"({"b":true,"a":true})"}});
  Check({R"({"type":"object","patternProperties":{"^a":{"type":"null"},"^b":{"type":"boolean"}},)"
         R"("additionalProperties":false})",
         {"{}", R"({"ax":null,"b":true})"},
         {R"({"ax":true})", R"({"c":null})"}});
  Check({R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":1,)"
         R"("maxProperties":2})",
         {R"({"a":1})", R"({"a":1,"c":2})"},
         {"{}", R"({"a":1,"b":1,"c":1})"}});
  Check({R"({"type":"object","required":["q"]})", {R"({"q":[]})"}, {"{}", R"({"r":1})"}});
  Check({R"({"type":"object","properties":{"a":false,"b":{"type":"null"}}})",
         {"{}", R"({"b":null})"},
         {R"({"a":1})"}});
}

TEST(SchemaTest, Arrays) {
  Check({R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":3})",
         {"[null]", "[null,null, null]"},
         {"[]", "[null,null,null,null]", "[1]"}});
  Check({R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":{"const":3},)"
         R"("minItems":1})",
         {"[1]", "[1,2]", "[1,2,3,3]"},
         {"[]", "[2]", "[1,3]"}});
  Check({R"({"type":"array","items":[{"const":1},{"const":2}],"additionalItems":false})",
         {"[]", "[1]", "[1,2]"},
         {"[1,2,3]"}});
  Check({R"({"type":"array","items":false})", {"[]"}, {"[1]"}});
  Check({R"({"type":"array","maxItems":1,"uniqueItems":true})", {"[]", "[3]"}, {"[1,1]"}});
  Check({R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"minItems":2,"maxItems":2})",
         {"[1,2]"},
         {"[1]", "[]", "[1,2,3]"}});
}

TEST(SchemaTest, Strings) {
  Check(
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"a\\n\\\"\"", "\"éé\"", "\"\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80\""},
       {"\"a\"", "\"abcd\"", "\"é\""}});
  Check({R"({"type":"string","pattern":"b+"})", {"\"abbc\"", "\"b\""}, {"\"ac\"", "\"\""}});
  Check({R"({"type":"string","pattern":"^[^a]$"})",
         {"\"b\"", "\"\\\"\"", "\"\\n\""},
         {"\"a\"", "\"bb\""}});
  Check({R"({"type":"string","pattern":"^(a|bc)*$","minLength":3,"maxLength":4})",
         {"\"aaa\"", "\"abc\"", "\"bcbc\""},
         {"\"aa\"", "\"bca\\\"\"", "\"aaaaa\"", "\"bcb\""}});
  Check({R"({"type":"string","format":"date"})",
         {"\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\""},
         {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\""}});
  Check(
      {R"({"type":"string","format":"ipv4"})", {"\"127.0.0.1\""}, {"\"256.0.0.1\"", "\"1.2.3\""}});
  Check({R"({"type":"string","format":"ipv6"})",
         {"\"::\"", "\"1::\"", "\"::1\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6:7:8\""},
         {"\"1:2\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\""}});
}

TEST(SchemaTest, Combinations) {
  Check({R"({"anyOf":[{"type":"null"},{"const":3}]})", {"null", "3"}, {"4"}});
  Check({R"({"allOf":[{"type":"integer","minimum":3},{"maximum":5}]})", {"3", "5"}, {"2", "6"}});
  Check({R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"null"}},)"
         R"("required":["k","v"]},{"type":"object","properties":{"k":{"const":"b"}},)"
         R"("required":["k"]}]})",
         {R"({"k":"a","v":null})", R"({"k":"b"})"},
         {R"({"k":"a"})", R"({"k":"c"})"}});
  Check({R"({"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"properties":{"a":)"
         R"({"maxLength":1},"b":{"type":"null"}},"required":["b"]}]})",
         {R"({"a":"x","b":null})", R"({"b":null})"},
         {R"({"a":"xy","b":null})"}});
  Check({R"({"anyOf":[{"minimum":5},{"maximum":1}],"type":"integer"})", {"5", "1"}, {"3", "null"}});
  Check({R"({"$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"},"v":{"type":)"
         R"("null"}},"required":["v"]}},"$ref":"#/$defs/t"})",
         {R"({"v":null})", R"({"next":{"v":null},"v":null})"},
         {R"({"next":{},"v":null})"}});
  Check({R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}});
}

// Every integer near the bounds, and decimals around them.
TEST(SchemaTest, NumbersExactly) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    int64_t low = static_cast<int64_t>(random() % 4000) - 2000;
    int64_t high = low + static_cast<int64_t>(random() % 3000);
    if (round % 4 == 0) low *= 1000003, high = low + 12345678;
    const bool open = round % 2 == 0;
    const int64_t step = round % 3 == 0 ? 1 + static_cast<int64_t>(random() % 40) : 1;
    const std::string schema =
        absl::StrCat(R"({"type":"integer",")", open ? "exclusiveMinimum" : "minimum", "\":", low,
                     R"(,"maximum":)", high, R"(,"multipleOf":)", step, "}");
    const auto made = Constraint::FromJsonSchema(schema, Vocabulary());
    bool any = false;
    for (int64_t n = low; n <= std::min(high, low + 5000); ++n) {
      any = any || (n % step == 0 && n >= low + (open ? 1 : 0));
    }
    if (!any && !made.ok()) continue;
    ASSERT_TRUE(made.ok()) << made.status() << schema;
    for (const int64_t middle : {low, high, (low + high) / 2, int64_t{0}, low / 10, high * 10}) {
      for (int64_t n = middle - 15; n <= middle + 15; ++n) {
        const bool good = n >= low + (open ? 1 : 0) && n <= high && n % step == 0;
        ASSERT_EQ(Read(*made, absl::StrCat(n)) == Reading::kComplete, good) << schema << " " << n;
      }
    }
  }
  for (int round = 0; round < 25; ++round) {
    const int64_t low = static_cast<int64_t>(random() % 40000) - 20000;
    const int64_t high = low + static_cast<int64_t>(random() % 30000);
    const bool open = round % 2 == 0;
    const auto decimal = [](int64_t n, int places) {
      const int64_t unit = places == 3 ? 1000 : 100;
      return absl::StrCat(n < 0 ? "-" : "", std::abs(n) / unit, ".",
                          absl::StrCat(unit + std::abs(n) % unit).substr(1));
    };
    const std::string schema =
        absl::StrCat(R"({"type":"number","minimum":)", decimal(low, 3), ",\"",
                     open ? "exclusiveMaximum" : "maximum", "\":", decimal(high, 3), "}");
    const auto made = Constraint::FromJsonSchema(schema, Vocabulary());
    if (!made.ok()) continue;
    for (const int64_t middle : {low, high, (low + high) / 2}) {
      for (int64_t n = middle - 25; n <= middle + 25; ++n) {
        if (n == 0 || decimal(n, 3) == "-0.000") continue;
        const bool good = n >= low && n < high + (open ? 0 : 1);
        ASSERT_EQ(Read(*made, decimal(n, 3)) == Reading::kComplete, good)
            << schema << decimal(n, 3);
        if (n % 10 != 0) continue;
        ASSERT_EQ(Read(*made, decimal(n / 10, 2)) == Reading::kComplete, good) << schema;
      }
    }
  }
}

TEST(SchemaTest, SaysWhatCantBeHonoured) {
  const struct {
    const char* schema;
    const char* message;
  } cases[] = {
      {"{", "no valid JSON"},
      {"3", "#: schema: it is no schema"},
      {"false", "#: false allows no value"},
      {R"({"type":"integer","minimum":5,"maximum":3})", "#: minimum: it is above maximum"},
      {R"({"type":"string","minLength":5,"maxLength":3})", "#: minLength: it is above maxLength"},
      {R"({"type":"object","properties":{"a":{"type":"array","minItems":2,"maxItems":1}},)"
       R"("required":["a"]})",
       "#/properties/a: minItems: it is above maxItems"},
      {R"({"not":{}})", "#: not: this keyword is not supported"},
      {R"({"properties":{"a":{"if":{}}}})", "#/properties/a: if: this keyword is not supported"},
      {R"({"minlength":3})", "#: minlength: this keyword is not supported"},
      {R"({"type":"array","uniqueItems":true})", "#: uniqueItems:"},
      {R"({"type":"text"})", "\"text\" is the name of no type"},
      {R"({"type":"number","multipleOf":0.1})", "#: multipleOf: only whole numbers"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "look-around"},
      {R"({"type":"string","pattern":"(a)\\1"})", "\\1 is not supported"},
      {R"({"type":"string","format":"iri"})", "'iri' is not known"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
       "#: oneOf: a value might satisfy both"},
      {R"({"$ref":"#/$defs/none"})", "there is no #/$defs/none"},
      {R"({"$ref":"other.json"})", "only places in the same document"},
      {R"({"$ref":"#"})", "round in a circle"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "endless"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "no type is left"},
      {R"({"enum":[]})", "enum: no value"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})", "forbids 'a'"},
      {R"({"type":"string","maxLength":100000000})", "has more than"},
  };
  for (const auto& c : cases) {
    const auto made = Constraint::FromJsonSchema(c.schema, Vocabulary());
    ASSERT_FALSE(made.ok()) << c.schema;
    EXPECT_NE(made.status().message().find(c.message), absl::string_view::npos)
        << c.schema << ": " << made.status();
    EXPECT_EQ(made.status().message().find('\n'), absl::string_view::npos);
  }
  EXPECT_FALSE(Constraint::FromJsonSchema(std::string(100000, '['), Vocabulary()).ok());
}

TEST(SchemaTest, ListsOfItems) {
  const char* list = R"({"type":"array","prefixItems":[{"const":1},{"const":2},{"const":3}],)";
  Check({std::string(list) + R"("items":false})",
         {"[]", "[1]", "[1,2]", "[1, 2, 3]"},
         {"[2]", "[1,2,3,4]", "[1,2,]", "[,1]", "[1 2]"}});
  Check({std::string(list) + R"("items":{"const":4},"minItems":2,"maxItems":5})",
         {"[1,2]", "[1,2,3]", "[1,2,3,4]", "[1,2,3,4, 4]"},
         {"[]", "[1]", "[1,2,4]", "[1,2,3,4,4,4]", "[1,2,3,]", "[1,2,34]"}});
  Check({std::string(list) + R"("items":{"const":4},"minItems":5})",
         {"[1,2,3,4,4]", "[1,2,3,4,4,4]"},
         {"[1,2,3]", "[1,2,3,4]"}});
  Check({std::string(list) + R"("maxItems":2,"minItems":2})", {"[1,2]"}, {"[]", "[1]", "[1,2,3]"}});
  Check({R"({"type":"array","items":{"const":4},"minItems":1,"maxItems":3})",
         {"[4]", "[4,4,4]"},
         {"[]", "[4,4,4,4]", "[,4]"}});
  Check({R"({"type":"array","items":{"const":4},"maxItems":0})", {"[]"}, {"[4]"}});
}

TEST(SchemaTest, LongListsAreNotDeep) {
  std::string items = "true";
  for (int i = 1; i < 19000; ++i) items += ",true";
  const auto made = CompileLong("{\"type\":\"array\",\"prefixItems\":[" + items + "]}");
  EXPECT_TRUE(made.ok()) << made;
}

TEST(SchemaTest, EqualValues) {
  Check({R"({"enum":[{"a":1,"b":[2.5,"x"]},7,"7"],"const":{"b":[2.50,"x"],"a":1.0}})",
         {R"({"b":[2.5,"x"],"a":1.0})"},
         {"7"}});
  Check({R"({"allOf":[{"enum":[1,2.0,3,-0.0]},{"enum":[0,2,4]}]})", {"2.0", "-0.0"}, {"1", "4"}});
  // Different values that would be equal if their parts were written without separators.
  for (const char* schema :
       {R"({"enum":[{"a":1,"b":2}],"const":{"a":12}})", R"({"enum":[[1,2]],"const":[12]})",
        R"({"enum":["1"],"const":1})", R"({"enum":[[[],[]]],"const":[[[]]]})",
        R"({"enum":[{"a":1}],"const":["a",1]})"}) {
    EXPECT_FALSE(Constraint::FromJsonSchema(schema, Vocabulary()).ok()) << schema;
  }
}

// Compiles these in linear time or refuses them: quadratic work would take minutes.
TEST(SchemaTest, LargeSchemasTakeNoLonger) {
  std::string names, properties, values, others;
  for (int i = 0; i < 60000; ++i) absl::StrAppend(&names, i == 0 ? "" : ",", "\"name", i, "\"");
  CompileLong("{\"type\":\"object\",\"required\":[" + names + "]}").IgnoreError();
  for (int i = 0; i < 300000; ++i) absl::StrAppend(&properties, i == 0 ? "" : ",", "\"", i, "\":1");
  const auto many = CompileLong("{" + properties + "}");
  ASSERT_FALSE(many.ok());
  EXPECT_NE(many.message().find("too many properties"), absl::string_view::npos);
  for (int i = 0; i < 4000; ++i) {
    absl::StrAppend(&values, i == 0 ? "" : ",", "{\"a\":[", i, "]}");
    absl::StrAppend(&others, i == 0 ? "" : ",", "{\"a\":[", i, ".5]}");
  }
  const auto apart =
      CompileLong("{\"oneOf\":[{\"enum\":[" + values + "]},{\"enum\":[" + others + "]}]}");
  EXPECT_TRUE(apart.ok()) << apart;
  // The pointer of each property contains the long name above it.
  std::string below;
  for (int i = 0; i < 10000; ++i) absl::StrAppend(&below, i == 0 ? "" : ",", "\"", i, "\":{}");
  EXPECT_FALSE(CompileLong("{\"properties\":{\"" + std::string(1000000, 'n') +
                           "\":{\"properties\":{" + below + "}}}}")
                   .ok());
}

TEST(SchemaTest, HostileSchemasAreRefusedSoon) {
  // Each level refers to the next one twice.
  for (const char* keyword : {"allOf", "anyOf"}) {
    std::string doubling = "{\"$defs\":{";
    for (int i = 0; i < 50; ++i) {
      const std::string next = absl::StrCat("{\"$ref\":\"#/$defs/d", i + 1, "\"}");
      absl::StrAppend(&doubling, "\"d", i, "\":{\"", keyword, "\":[", next, ",", next, "]},");
    }
    absl::StrAppend(&doubling, "\"d50\":{}},\"$ref\":\"#/$defs/d0\"}");
    EXPECT_FALSE(Constraint::FromJsonSchema(doubling, Vocabulary()).ok());
  }
  std::string values = "1";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&values, ",", i);
  EXPECT_FALSE(Constraint::FromJsonSchema("{\"enum\":[" + values + "]}", Vocabulary()).ok());
  std::string branches;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&branches, i == 0 ? "" : ",", R"({"type":"string","pattern":"^a)", i,
                    "[b-y]{1,9}$\"}");
  }
  EXPECT_FALSE(Constraint::FromJsonSchema("{\"oneOf\":[" + branches + "]}", Vocabulary()).ok());
}

}  // namespace
}  // namespace trine
