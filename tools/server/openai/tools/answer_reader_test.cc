#include "tools/server/openai/tools/answer_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

GenerationRequest WithTools() {
  GenerationRequest request;
  request.tools = {{"look", R"({"type":"object","properties":{"at":{"type":"integer"},
                       "on":{"type":"boolean"},"list":{"type":"array"},"text":{"type":"string"}}})"},
                   {"say", "{}"}};
  request.tool_choice.kind = ToolChoice::Kind::kAuto;
  return request;
}

void Append(const std::vector<AnswerPiece>& pieces, std::string* out, int* n_calls) {
  for (const AnswerPiece& piece : pieces) {
    if (piece.kind == AnswerPiece::Kind::kCall) {
      ++*n_calls;
      absl::StrAppend(out, "<", piece.call.name, piece.call.arguments, piece.call.cut ? "..." : "",
                      ">");
    } else if (piece.kind == AnswerPiece::Kind::kReasoning) {
      absl::StrAppend(out, "(", piece.text, ")");
    } else {
      *out += piece.text;
    }
  }
}

// Writes content as it is, calls as <name{arguments}>, and reasoning in parentheses.
std::string Read(ToolFamily family, const std::vector<std::string>& pieces,
                 const AnswerStart& start = {}, int* n_calls = nullptr) {
  const auto reader = NewAnswerReader(family, WithTools(), start);
  std::string out;
  int calls = 0;
  for (const std::string& piece : pieces) {
    std::vector<AnswerPiece> read;
    reader->Push(piece, &read);
    Append(read, &out, &calls);
  }
  std::vector<AnswerPiece> read;
  reader->Finish(&read);
  Append(read, &out, &calls);
  if (n_calls != nullptr) *n_calls = calls;
  // Joins reasoning that came in several pieces.
  for (size_t at; (at = out.find(")(")) != out.npos;) out.erase(at, 2);
  return out;
}

struct Case {
  ToolFamily family;
  const char* text;
  const char* expected;
};

constexpr ToolFamily kHermes = ToolFamily::kHermes, kLlama3 = ToolFamily::kLlama3,
                     kMistral = ToolFamily::kMistral, kGranite = ToolFamily::kGranite,
                     kCoder = ToolFamily::kCoder, kDeepSeek = ToolFamily::kDeepSeek,
                     kHarmony = ToolFamily::kHarmony, kGeneral = ToolFamily::kGeneral;

constexpr Case kCases[] = {
    {kHermes, "Hello <b>you</b>.", "Hello <b>you</b>."},
    {kHermes, "", ""},
    {kHermes, " \n", " \n"},
    {kHermes, "a <tool_cal", "a <tool_cal"},
    {kHermes, "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": [1, 2]}}\n</tool_call>",
     "<look{\"at\":[1,2]}>"},
    {kHermes, "I look.\n<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call>",
     "I look.\n<look{}>"},
    {kHermes, "<tool_call>{\"name\":\"look\"}</tool_call>", "<look{}>"},
    {kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":\"\"}</tool_call>", "<look{}>"},
    {kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>",
     "<look{\"a\":1}>"},
    {kHermes,
     "\n<tool_call>\n{\"name\":\"look\",\"arguments\":{}}\n</tool_call>\n<tool_call>\n"
     "{\"name\":\"say\",\"arguments\":{\"x\":\"</tool_call>\"}}\n</tool_call>\n",
     "<look{}><say{\"x\":\"</tool_call>\"}>"},
    {kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":{}}", "<look{}>"},  // no end
    {kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call> Then.",
     "<look{}> Then."},
    {kHermes, "<tool_call>{\"name\":\"look\"}\n</tool_call> Then.", "<look{}> Then."},
    {kHermes, "<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>", "<unknown{}>"},
    // A call that can't be read becomes content.
    {kHermes, "<tool_call>{\"name\":}</tool_call>", "<tool_call>{\"name\":}</tool_call>"},
    {kHermes, "<tool_call>{\"nam\":\"look\"}</tool_call>!",
     "<tool_call>{\"nam\":\"look\"}</tool_call>!"},
    {kHermes, "<tool_call>look()</tool_call>", "<tool_call>look()</tool_call>"},
    // A call that is cut short is given as far as it came, and its marks never become content.
    {kHermes, "<tool_call>{\"name\":\"look\",\"argu", "<look...>"},
    {kHermes, "So. <tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": [1, \"x",
     "So. <look{\"at\": [1, \"x...>"},
    {kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":\"{\\\"at\\\":1,\\u00",
     "<look{\"at\":1,...>"},
    {kHermes, "<tool_call>{\"arguments\":{\"a\":1},\"name\":\"look\"", "<look{\"a\":1}...>"},
    {kHermes, "<tool_call>{\"function\":{\"name\":\"look\",\"arguments\":{\"a", "<look{\"a...>"},
    {kHermes, "<tool_call>{\"name\":\"lo", ""},
    {kHermes, "Hm. <tool_call>", "Hm. "},
    {kHermes, "<tool_call>{\"name\":\"look\"}</tool", "<look{}>"},
    {kHermes, "<tool_call>{\"name\":\"look\"}</tool_call>\n<tool_c", "<look{}>"},
    {kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":[1]}",
     "<tool_call>{\"name\":\"look\",\"arguments\":[1]}"},
    {kHermes, "<tool_call> <tool_call>{\"name\":\"look\"}</tool_call>", "<tool_call> <look{}>"},
    {kHermes, "{\"name\":\"look\",\"arguments\":{}}", "{\"name\":\"look\",\"arguments\":{}}"},

    {kLlama3, "{\"name\": \"look\", \"parameters\": {\"at\": \"\xC3\xA9\"}}",
     "<look{\"at\":\"\xC3\xA9\"}>"},
    {kLlama3, "<|python_tag|>{\"name\": \"look\", \"parameters\": {}}<|eom_id|>", "<look{}>"},
    {kLlama3,
     "{\"name\":\"look\",\"parameters\":{}}; {\"name\":\"say\",\"parameters\":{\"a\":\"{\"}}",
     "<look{}><say{\"a\":\"{\"}>"},
    {kLlama3, "{\"type\":\"function\",\"function\":{\"name\":\"look\",\"parameters\":{}}}",
     "<look{}>"},
    // An answer in JSON that is not a call of a known tool.
    {kLlama3, "{\"name\": \"Ann\", \"age\": 3}", "{\"name\": \"Ann\", \"age\": 3}"},
    {kLlama3, "[1, 2] and {\"name\":\"look\"}", "[1, 2] and {\"name\":\"look\"}"},
    {kLlama3, "It is {\"name\":\"look\"}", "It is {\"name\":\"look\"}"},
    {kLlama3, "{\"name\": \"look\", \"parameters\": {\"at\": 1", "<look{\"at\": 1...>"},
    {kLlama3, "{\"name\": \"Ann\", \"age\": 3", "{\"name\": \"Ann\", \"age\": 3"},
    {kLlama3, "{\"na", "{\"na"},
    {kLlama3, "<|python_tag|>print(1)", "<|python_tag|>print(1)"},

    {kMistral,
     "[TOOL_CALLS] [{\"name\": \"look\", \"arguments\": {\"a\": 1}}, {\"name\": \"say\"}]",
     "<look{\"a\":1}><say{}>"},
    {kMistral, "Yes.[TOOL_CALLS]look[ARGS]{\"a\": 1}[TOOL_CALLS]say[CALL_ID]123456789[ARGS]{}",
     "Yes.<look{\"a\":1}><say{}>"},
    {kMistral, "[TOOL_CALLS]look", ""},
    {kMistral, "[TOOL_CALLS] I think", "[TOOL_CALLS] I think"},
    {kMistral, "[TOOL_CALLS]look[ARG", "<look...>"},
    {kMistral, "[TOOL_CALLS]look[ARGS]{\"a\": ", "<look{\"a\": ...>"},
    {kMistral, "[TOOL_CALLS] [{\"name\": \"look\", \"arguments\": {}}, {\"name\": \"say\", \"arg",
     "<look{}><say...>"},
    {kMistral, "[TOOL_CALLS] [{\"name\": \"look\", \"arguments\": {}},", "<look{}>"},
    {kMistral, "[TOOL_CALLS] I think {\"a\":1}", "[TOOL_CALLS] I think {\"a\":1}"},
    {kMistral, "[TOOL_CALLS] [{\"name\": \"look\"}, {}]",
     "[TOOL_CALLS] [{\"name\": \"look\"}, {}]"},
    {kMistral, "a [TOOL] b", "a [TOOL] b"},

    {kGranite, "<|tool_call|>[{\"name\":\"look\",\"arguments\":{}}]", "<look{}>"},
    {kGranite, "<|tool_call|>[{\"name\":\"look\",\"arguments\":{}}]<|/tool_call|>", "<look{}>"},
    {kGranite, "<|tool_call|>[]", "<|tool_call|>[]"},

    {kCoder,
     "I look.\n<tool_call>\n<function=look>\n<parameter=at>\n7\n</parameter>\n<parameter=text>\n7\n"
     "</parameter>\n</function>\n</tool_call>",
     "I look.\n<look{\"at\":7,\"text\":\"7\"}>"},
    {kCoder,
     "<tool_call><function=look><parameter=on>True</parameter><parameter=list>[1, {\"a\": 2}]"
     "</parameter></function></tool_call>\n<tool_call>\n<function=say>\n</function>\n</tool_call>",
     "<look{\"on\":true,\"list\":[1,{\"a\":2}]}><say{}>"},
    // Marks in a value, quotes and lines; no outer mark; what is not a number stays text.
    {kCoder,
     "<function=look>\n<parameter=text>\n\"a\"\n</function> </parameter> "
     "b\n</parameter>\n</function>",
     "<look{\"text\":\"\\\"a\\\"\\n</function> </parameter> b\"}>"},
    {kCoder, "<function=look><parameter=at>soon</parameter></function> Then.",
     "<look{\"at\":\"soon\"}> Then."},
    {kCoder, "<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call>", "<look{}>"},
    {kCoder, "a <func of <tools>", "a <func of <tools>"},
    {kCoder, "<function=look>so</function>", "<function=look>so</function>"},
    {kCoder, "<tool_call>so</tool_call>", "<tool_call>so</tool_call>"},
    {kCoder, "<tool_call>\n<function=lo", ""},
    {kCoder, "<tool_call>\n<function=look>\n<param", "<look{...>"},
    {kCoder, "<tool_call><function=look><parameter=at>1</parameter><parameter=text>\na\"b",
     "<look{\"at\":1,\"text\":\"a\\\"b...>"},
    {kCoder, "<tool_call><function=look></function></tool", "<look{}>"},

    {kDeepSeek,
     "So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{\"at\": "
     "1}\n```"
     "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>say\n```json\n{}\n```<"
     "｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     "So.<look{\"at\":1}><say{}>"},
    {kDeepSeek,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{\"at\": 1}<｜tool▁call▁end｜>"
     "<｜tool▁call▁begin｜>say<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "<look{\"at\":1}><say{}>"},
    {kDeepSeek, "<｜tool▁calls▁begin｜>{\"name\":\"look\",\"arguments\":{}}", "<look{}>"},
    {kDeepSeek, "<｜tool▁calls▁begin｜> Well then.", "<｜tool▁calls▁begin｜> Well then."},
    {kDeepSeek, "a <｜b｜> c", "a <｜b｜> c"},
    {kDeepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lo", ""},
    {kDeepSeek,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{\"at\": ",
     "<look{\"at\": ...>"},

    {kGeneral, "{\"name\":\"look\",\"arguments\":{}}", "<look{}>"},
    {kGeneral, "<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call>", "<look{}>"},
    {kGeneral, " [{\"name\":\"look\"},{\"name\":\"say\"}]", "<look{}><say{}>"},

    {kHarmony, "Hello.", "Hello."},
    {kHarmony, "<|channel|>final<|message|>Hello.<|return|>", "Hello."},
    {kHarmony,
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
     "(Hm.)Hello."},
    {kHarmony,
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.look <|constrain|>json<|message|>{\"at\": 1}<|call|>",
     "(Hm.)<look{\"at\":1}>"},
    {kHarmony, " to=functions.look<|channel|>commentary json<|message|>{}", "<look{}>"},
    {kHarmony, "<|channel|>commentary to=functions.look<|message|>{oh<|call|>", "{oh"},
    {kHarmony, "<|channel|>commentary to=functions.look<|message|>{\"at\": <|ca",
     "<look{\"at\": ...>"},
    {kHarmony, "<|channel|>commentary to=functions.look<|message|>", "<look...>"},
    {kHarmony, "<|channel|>commentary<|message|>First this.<|end|>", "First this."},
    {kHarmony, "<|channel|>fin", ""},
    {kHarmony, "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Yes.", "(Hm.)Yes."},
    {kHarmony, "<|channel|>final<|message|>a < b <| c", "a < b <| c"},
};

TEST(AnswerReaderTest, EveryFamily) {
  for (const Case& c : kCases) EXPECT_EQ(Read(c.family, {c.text}), c.expected) << c.text;
}

TEST(AnswerReaderTest, HoweverTheTextIsCut) {
  std::mt19937 random(1);
  for (const Case& c : kCases) {
    const std::string text = c.text;
    std::vector<std::string> single;
    for (const char byte : text) single.emplace_back(1, byte);
    EXPECT_EQ(Read(c.family, single), c.expected) << text;
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> pieces;
      for (size_t at = 0; at < text.size();) {
        const size_t bytes = 1 + random() % 9;
        pieces.push_back(text.substr(at, bytes));
        at += bytes;
      }
      EXPECT_EQ(Read(c.family, pieces), c.expected) << text;
    }
  }
}

// What clients require of every call.
TEST(AnswerReaderTest, Ids) {
  const auto id_of = [](ToolFamily family, std::string_view text) {
    std::vector<AnswerPiece> pieces;
    NewAnswerReader(family, WithTools(), {})->Push(text, &pieces);
    return pieces.size() == 1 ? pieces[0].call.id : "";
  };
  const std::string hermes = id_of(kHermes, "<tool_call>{\"name\":\"look\"}");
  EXPECT_TRUE(absl::StartsWith(hermes, "call_")) << hermes;
  EXPECT_EQ(hermes.size(), 29u);
  EXPECT_NE(hermes, id_of(kHermes, "<tool_call>{\"name\":\"look\"}"));
  EXPECT_EQ(id_of(kMistral, "[TOOL_CALLS][{\"name\":\"look\"}]").size(), 9u);
}

TEST(AnswerReaderTest, ContentIsPassedOnAtOnce) {
  const auto reader = NewAnswerReader(kHermes, WithTools(), {});
  const auto push = [&](std::string_view text) {
    std::vector<AnswerPiece> pieces;
    reader->Push(text, &pieces);
    std::string out;
    int calls = 0;
    Append(pieces, &out, &calls);
    return out;
  };
  EXPECT_EQ(push("One "), "One ");
  EXPECT_EQ(push("two <"), "two ");
  EXPECT_EQ(push("b>three"), "<b>three");
  EXPECT_EQ(push("<tool"), "");
  EXPECT_EQ(push("_call"), "");
  EXPECT_EQ(push("er>"), "<tool_caller>");
}

TEST(AnswerReaderTest, BehindAnOpening) {
  const AnswerStart call{.kind = AnswerStart::Kind::kCall, .name = ""};
  EXPECT_EQ(Read(kHermes, {"{\"name\":\"look\",\"arguments\":{}}"}, call), "<look{}>");
  EXPECT_EQ(Read(kLlama3, {"{\"name\":\"look\",\"parameters\":{}}"}, call), "<look{}>");
  EXPECT_EQ(Read(kMistral, {"[{\"name\":\"look\",\"arguments\":{}}]"}, call), "<look{}>");
  EXPECT_EQ(Read(kHarmony, {"{\"name\":\"look\",\"arguments\":{}}"}, call), "<look{}>");
  EXPECT_EQ(Read(kHermes, {"{\"name\":\"lo"}, call), "");
  EXPECT_EQ(Read(kHermes, {"{\"name\":\"look\",\"arguments\":{\"a"}, call), "<look{\"a...>");
  EXPECT_EQ(Read(kLlama3, {"{\"name\":\"look\","}, call), "<look...>");
  const AnswerStart arguments{.kind = AnswerStart::Kind::kArguments, .name = "look"};
  EXPECT_EQ(Read(kHarmony, {"{\"a\":", "1}"}, arguments), "<look{\"a\":1}>");
  const AnswerStart content{.kind = AnswerStart::Kind::kContent, .name = ""};
  EXPECT_EQ(Read(kHarmony, {"{\"a\":", "1}"}, content), "{\"a\":1}");
  const std::string call_text = "<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call>";
  EXPECT_EQ(Read(kHermes, {call_text, ""}, content), call_text);
}

TEST(AnswerReaderTest, WithoutToolsAllIsContent) {
  const GenerationRequest plain;
  EXPECT_FALSE(NeedsAnswerReader(kLlama3, plain));
  ASSERT_TRUE(NeedsAnswerReader(kHarmony, plain));
  for (const auto& [family, text] :
       {std::pair{kHermes, "<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call>"},
        std::pair{kHarmony, "<|channel|>commentary to=functions.look<|message|>{}<|call|>"}}) {
    std::vector<AnswerPiece> pieces;
    NewAnswerReader(family, plain, {})->Push(text, &pieces);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].kind, AnswerPiece::Kind::kContent);
  }
}

// Nothing is lost and nothing hangs, whatever a model writes.
TEST(AnswerReaderTest, AnyText) {
  const std::string_view kBits[] = {"<tool_call>",
                                    "</tool_call>",
                                    "[TOOL_CALLS]",
                                    "[ARGS]",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    "\"",
                                    "\\",
                                    "look",
                                    " ",
                                    "name\":\"look\"",
                                    "<|tool_call|>",
                                    "<|channel|>",
                                    "<|message|>",
                                    "<|end|>",
                                    "to=functions.look",
                                    "<|start|>",
                                    "<|python_tag|>",
                                    "<function=",
                                    "look>",
                                    "<parameter=at>",
                                    "</parameter>",
                                    "</function>",
                                    "<｜tool▁calls▁begin｜>",
                                    "<｜tool▁call▁begin｜>",
                                    "<｜tool▁sep｜>",
                                    ";",
                                    "\xC3\xA9"};
  std::mt19937 random(3);
  for (const ToolFamily family :
       {kHermes, kLlama3, kMistral, kGranite, kCoder, kDeepSeek, kHarmony, kGeneral}) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::string> pieces;
      std::string text;
      for (uint32_t i = 0; i < random() % 20; ++i) {
        pieces.emplace_back(kBits[random() % std::size(kBits)]);
        text += pieces.back();
      }
      int calls = 0;
      const std::string read = Read(family, pieces, {}, &calls);
      EXPECT_EQ(read, Read(family, {text})) << text;
      // Without a call, all of the text is there, except for a call that its end cut short.
      if (family != kHarmony && calls == 0) {
        EXPECT_TRUE(absl::StartsWith(text, read)) << text << "\n" << read;
        const std::string dropped(absl::StripLeadingAsciiWhitespace(text.substr(read.size())));
        EXPECT_TRUE(dropped.empty() || absl::StartsWith(dropped, "<tool_call>") ||
                    absl::StartsWith(dropped, "[TOOL_CALLS]") ||
                    absl::StartsWith(dropped, "<|tool_call|>") ||
                    absl::StartsWith(dropped, "<function=") ||
                    absl::StartsWith(dropped, "<｜tool▁call") ||
                    absl::StartsWith(dropped, "<|python_tag|>"))
            << text << "\n"
            << read;
      }
    }
  }
}

}  // namespace
}  // namespace trine::server
