#include "tests/constraint/random_schema.h"

#include <cstdint>
#include <string>
#include <utility>

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

class Maker {
 public:
  explicit Maker(std::mt19937* random) : random_(*random) {}

  Json Root() {
    Json schema = Chance(6) ? Tree() : Schema(3);
    if (Chance(3)) schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    if (Chance(3)) schema["title"] = "a schema made at random";
    return schema;
  }

 private:
  uint32_t Pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool Chance(uint32_t one_in) { return Pick(one_in) == 0; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Pick(static_cast<uint32_t>(high - low + 1)));
  }

  Json Schema(int depth) {
    if (depth == 0) return Scalar();
    switch (Pick(9)) {
      case 0:
      case 1:
      case 2:
        return Object(depth);
      case 3:
      case 4:
        return Array(depth);
      case 5:
        return Combination(depth);
      default:
        return Scalar();
    }
  }

  Json Scalar() {
    switch (Pick(9)) {
      case 0:
        return {{"type", "boolean"}};
      case 1:
        return {{"type", "null"}};
      case 2:
        return Values();
      case 3:
      case 4:
        return Integer();
      case 5:
        return Number();
      case 6:
        return {{"type", {"string", "null", "integer"}}, {"maxLength", Between(0, 12)}};
      default:
        return String();
    }
  }

  Json Values() {
    const Json all = {"red",          "a \"quoted\" word", 1, -2.5, nullptr, true, "\n\t\\",
                      "\u00e9\u4e2d", Json{{"k", {1, 2}}}};
    if (Chance(3)) return {{"const", all[Pick(static_cast<uint32_t>(all.size()))]}};
    Json list = Json::array();
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (i == 0 || Chance(3)) list.push_back(all[i]);
    }
    return {{"enum", list}};
  }

  Json Integer() {
    Json schema = {{"type", "integer"}};
    const int64_t low = Between(-2000, 2000);
    if (!Chance(3)) schema[Chance(2) ? "minimum" : "exclusiveMinimum"] = low;
    if (!Chance(3)) schema[Chance(2) ? "maximum" : "exclusiveMaximum"] = low + Between(60, 100000);
    if (Chance(3)) schema["multipleOf"] = Between(1, 50);
    return schema;
  }

  Json Number() {
    Json schema = {{"type", "number"}};
    const double low = static_cast<double>(Between(-100000, 100000)) / 1000;
    if (!Chance(3)) schema[Chance(2) ? "minimum" : "exclusiveMinimum"] = low;
    if (!Chance(3))
      schema[Chance(2) ? "maximum" : "exclusiveMaximum"] = low + 0.125 * Between(1, 99);
    return schema;
  }

  Json String() {
    static constexpr const char* kFormats[] = {"date", "time",     "date-time", "uuid", "email",
                                               "ipv4", "hostname", "ipv6",      "uri"};
    static constexpr const char* kPatterns[] = {
        "^[A-Z][a-z]{2,8}$", "[0-9]+-[0-9]+", "^(a|bc)*$", "^\\w+\\s\\w+$", "x$", "^[^a-z]{1,6}$"};
    Json schema = {{"type", "string"}};
    switch (Pick(5)) {
      case 0:
        schema["format"] = kFormats[Pick(9)];
        break;
      case 1:
        schema["pattern"] = kPatterns[Pick(6)];
        if (Chance(2)) schema["maxLength"] = Between(5, 12);
        break;
      case 2:
        schema["minLength"] = Between(0, 6);
        schema["maxLength"] = Between(6, 20);
        break;
      case 3:
        schema["maxLength"] = Between(0, 10);
        break;
      default:
        break;
    }
    return schema;
  }

  Json Object(int depth) {
    static constexpr const char* kNames[] = {"name",  "age",    "a b", "\"",
                                             "items", "\u00e9", "x",   "id"};
    Json schema = {{"type", "object"}};
    Json properties = Json::object(), required = Json::array();
    uint32_t count = 0;
    for (const char* name : kNames) {
      if (!Chance(3)) continue;
      properties[name] = Schema(depth - 1);
      if (Chance(2)) required.push_back(name);
      ++count;
    }
    if (count > 0 || Chance(2)) schema["properties"] = properties;
    if (!required.empty()) schema["required"] = required;
    switch (Pick(5)) {
      case 0:
        schema["additionalProperties"] = false;
        break;
      case 1:
        schema["additionalProperties"] = Schema(0);
        break;
      case 2:
        schema["patternProperties"] = {{"^p_", Schema(0)}};
        break;
      default:
        break;
    }
    if (count > 1 && Chance(4)) schema["minProperties"] = Between(1, count);
    if (Chance(4)) schema["maxProperties"] = count + Between(0, 2);
    return schema;
  }

  Json Array(int depth) {
    Json schema = {{"type", "array"}};
    const int64_t min = Between(0, 2);
    if (!Chance(4)) schema["items"] = Schema(depth - 1);
    if (Chance(3)) schema["prefixItems"] = {Schema(depth - 1), Schema(0)};
    if (Chance(2)) schema["minItems"] = min;
    if (Chance(2)) schema["maxItems"] = min + Between(0, 3);
    return schema;
  }

  Json Combination(int depth) {
    switch (Pick(4)) {
      case 0:
        return {{"anyOf", {Schema(depth - 1), Schema(depth - 1), Scalar()}}};
      case 1: {
        Json first = {{"type", "object"}, {"required", {"kind"}}}, second = first;
        first["properties"] = {{"kind", {{"const", "a"}}}, {"v", Schema(depth - 1)}};
        second["properties"] = {{"kind", {{"enum", {"b", "c"}}}}, {"w", Scalar()}};
        return {{"oneOf", {first, second}}};
      }
      case 2: {
        const int64_t low = Between(-50, 50);
        return {{"allOf", {{{"type", "integer"}}, {{"minimum", low}}, {{"maximum", low + 20}}}}};
      }
      default:
        return {{"oneOf", {{{"type", "string"}, {"maxLength", 8}}, Integer(), {{"type", "null"}}}}};
    }
  }

  // A schema that refers to itself.
  Json Tree() {
    Json node = {{"type", "object"}, {"properties", {{"value", Scalar()}}}};
    node["properties"]["children"] = {
        {"type", "array"}, {"items", {{"$ref", "#/$defs/node"}}}, {"maxItems", Between(1, 3)}};
    node["required"] = {"value"};
    return {{"$defs", {{"node", node}}}, {"$ref", "#/$defs/node"}};
  }

  std::mt19937& random_;
};

}  // namespace

nlohmann::ordered_json RandomSchema(std::mt19937* random) { return Maker(random).Root(); }

}  // namespace trine
