// trine chat, through a pipe and on a pseudo-terminal.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class ChatCliTest : public CliFixture {
 protected:
  // `lines` are in the form of printf.
  Output Chat(const std::string& lines, const std::string& arguments = "") {
    return Shell("printf '" + lines + "' | '" TRINE_PROGRAM "' chat -n 12 --temp 0 " + arguments);
  }
  json Saved(const std::string& name) { return json::parse(std::ifstream(folder_ / name)); }
  std::string File(const std::string& name) { return (folder_ / name).string(); }
};

TEST_F(ChatCliTest, EachLineOfAPipeIsAMessage) {
  const Output output = Chat("What is the capital of France?\\nWhat is the capital of Italy?\\n");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_EQ(output.errors, "");
  EXPECT_THAT(output.text, HasSubstr("The capital of France is Paris.\n"));
  EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 2);
  EXPECT_THAT(output.text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(output.text, Not(HasSubstr("> ")));
}

TEST_F(ChatCliTest, KeepsAndSavesTheConversation) {
  const Output output = Chat("Hello\\n//slash\\n/save " + File("a.json") +
                                 "\\n/regen\\n/reset\\n/save " + File("b.json") + "\\n",
                             "-sys 'Be kind.' -p 'First'");
  EXPECT_EQ(output.code, 0) << output.errors;
  const json saved = Saved("a.json");
  ASSERT_EQ(saved.size(), 7u);
  EXPECT_EQ(saved[0], json({{"role", "system"}, {"content", "Be kind."}}));
  EXPECT_EQ(saved[1], json({{"role", "user"}, {"content", "First"}}));
  EXPECT_EQ(saved[2]["role"], "assistant");
  EXPECT_EQ(saved[3]["content"], "Hello");
  EXPECT_EQ(saved[5]["content"], "/slash");
  EXPECT_EQ(Saved("b.json"), json::array({saved[0]}));
  const Output loaded =
      Chat("/load " + File("a.json") + "\\n/system\\n/save " + File("c.json") + "\\n");
  EXPECT_EQ(loaded.code, 0) << loaded.errors;
  EXPECT_EQ(Saved("c.json").size(), 6u);
}

TEST_F(ChatCliTest, MessagesOfSeveralLines) {
  const Output output =
      Chat("one\\\\\\ntwo\\n\"\"\"\\nthree\\n\\nfour\"\"\"\\n/save " + File("a.json") + "\\n");
  EXPECT_EQ(output.code, 0) << output.errors;
  const json saved = Saved("a.json");
  ASSERT_EQ(saved.size(), 4u) << saved;
  EXPECT_EQ(saved[0]["content"], "one\ntwo");
  EXPECT_EQ(saved[2]["content"], "three\n\nfour");
}

TEST_F(ChatCliTest, TheEndOfTheInputEndsAMessageOfSeveralLines) {
  for (const char* lines : {"\"\"\"\\nhello\\nyou\\n", "hello\\\\\\nyou\\\\\\n"}) {
    const Output output =
        Chat(lines, "--chat-template '{{ raise_exception(messages[0].content) }}'");
    EXPECT_EQ(output.code, 1) << lines;
    EXPECT_EQ(output.errors, "trine: hello\\x0ayou\n") << lines;
  }
}

TEST_F(ChatCliTest, WhatWasSavedOutlivesAFullDisk) {
  const std::string more(2000, 'x');
  const Output output =
      Shell("ulimit -f 1; printf '/system Be kind.\n/save " + File("a.json") + "\n/system " + more +
            "\n/save " + File("a.json") + "\n' | '" TRINE_PROGRAM "' chat");
  EXPECT_EQ(output.code, 1);
  EXPECT_EQ(output.errors, "trine: " + File("a.json") + ": cannot be written: File too large\n");
  EXPECT_EQ(Saved("a.json"), json::array({{{"role", "system"}, {"content", "Be kind."}}}));
  EXPECT_EQ(Leftovers(), 0);
}

TEST_F(ChatCliTest, WhatIsSavedStaysPrivate) {
  std::ofstream(folder_ / "a.json") << "[]";
  fs::permissions(folder_ / "a.json", fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(Chat("/system x\\n/save " + File("a.json") + "\\n").code, 0);
  EXPECT_EQ(Saved("a.json").size(), 1u);
  EXPECT_EQ(fs::status(folder_ / "a.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ChatCliTest, EveryAnswerIsHeldToAGrammar) {
  const Output output = Chat("What is the capital of France?\\nHello\\n/regen\\n",
                             "--grammar 'root ::= \"blue\" | \"green\" [0-9]'");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, testing::MatchesRegex("((blue|green[0-9])\n){3}"));
}

TEST_F(ChatCliTest, ReadsOnlyWhatIsNew) {
  const Output output = Chat("Hello there, how are you today?\\n/stats\\nYes\\n/stats\\n");
  EXPECT_EQ(output.code, 0) << output.errors;
  std::vector<int> read;
  for (size_t at = output.text.find("[read "); at != std::string::npos;
       at = output.text.find("[read ", at + 1)) {
    read.push_back(std::stoi(output.text.substr(at + 6)));
  }
  ASSERT_EQ(read.size(), 2u) << output.text;
  EXPECT_LT(read[1], read[0]) << output.text;
  EXPECT_THAT(output.text, HasSubstr("4 messages; "));
}

TEST_F(ChatCliTest, AContextThatIsFullSaysSo) {
  const std::string words(400, 'x');
  const Output output = Chat(words + "\\nHi\\n", "-c 64");
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.errors, HasSubstr("the context holds 64"));
  EXPECT_THAT(output.errors, HasSubstr("/reset"));
  EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 1) << "the next is answered";
}

TEST_F(ChatCliTest, RefusesWhatIsWrong) {
  EXPECT_THAT(Chat("/nosuch\\n").errors, HasSubstr("/help"));
  EXPECT_EQ(Chat("/load /nosuch\\n").code, 1);
  EXPECT_THAT(Chat("/load /nosuch\\n").errors, HasSubstr("/nosuch: it can"));
  EXPECT_THAT(Chat("/regen\\n").errors, HasSubstr("no answer"));
  EXPECT_THAT(Chat("\\377\\n").errors, HasSubstr("UTF-8"));
  EXPECT_EQ(Chat("/system \\377\\n").code, 1);
  EXPECT_THAT(Chat("/system \\377\\n").errors, HasSubstr("the system message"));
  EXPECT_THAT(Chat("x\\n", "--chat-template '{% if %}'").errors, HasSubstr("line 1, column 7"));
  EXPECT_THAT(Chat("x\\n", "--chat-template '{{ raise_exception(\"Not today\") }}'").errors,
              HasSubstr("trine: Not today\n"));
  EXPECT_THAT(Chat("x\\n", "--chat-template-kwargs '[]'").errors, HasSubstr("no object"));
}

TEST_F(ChatCliTest, TakesATemplateAndItsVariables) {
  const Output output = Trine(
      "generate --chat -p x -n 1 --json --chat-template '{{ y }}' "
      "--chat-template-kwargs '{\"y\": \"Once upon a time\"}'");
  EXPECT_EQ(
      json::parse(output.text)["timings"]["prompt_tokens"],
      json::parse(
          Trine("generate -p 'Once upon a time' -n 1 --json").text)["timings"]["prompt_tokens"]);
  std::ofstream(folder_ / "t.jinja") << "{{ messages[0].content }}";
  EXPECT_EQ(Trine("generate --chat -p 'Once upon a time' -n 4 --temp 0 --chat-template " +
                  File("t.jinja"))
                .code,
            0);
  EXPECT_THAT(Trine("generate --chat -p x --chat-template " + File("nosuch")).errors,
              HasSubstr("nosuch: it can"));
}

// Runs the program on a pseudo-terminal.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TRINE_PROGRAM, "chat"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    winsize size{24, 80, 0, 0};
    pid_ = forkpty(&master_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    close(master_);
  }

  void Type(const std::string& keys) {
    ASSERT_EQ(write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // Waits until `text` has been shown since the last call. Returns false after a minute.
  bool Wait(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      const size_t at = shown_.find(text);
      if (at != std::string::npos) {
        before_ = shown_.substr(0, at);
        shown_.erase(0, at + text.size());
        return true;
      }
      pollfd ready{master_, POLLIN, 0};
      if (std::chrono::steady_clock::now() > end) return false;
      if (poll(&ready, 1, 1000) <= 0) continue;
      char bytes[4096];
      const ssize_t n = read(master_, bytes, sizeof(bytes));
      if (n <= 0) return false;
      shown_.append(bytes, static_cast<size_t>(n));
    }
  }
  // Types faster than a person. Reads what is shown meanwhile, so that neither side blocks. Returns
  // false when a minute was not enough.
  bool Paste(std::string keys) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!keys.empty() && std::chrono::steady_clock::now() < end) {
      pollfd ready{master_, POLLIN | POLLOUT, 0};
      if (poll(&ready, 1, 1000) <= 0) continue;
      if ((ready.revents & POLLIN) != 0) {
        char bytes[4096];
        const ssize_t n = read(master_, bytes, sizeof(bytes));
        if (n > 0) shown_.append(bytes, static_cast<size_t>(n));
      }
      if ((ready.revents & POLLOUT) != 0) {
        const ssize_t n = write(master_, keys.data(), std::min<size_t>(keys.size(), 512));
        if (n > 0) keys.erase(0, static_cast<size_t>(n));
      }
      if ((ready.revents & POLLHUP) != 0) return false;
    }
    return keys.empty();
  }
  int ExitCode() {
    int status = 0;
    // Read what the program still writes, so that it can end.
    char bytes[4096];
    while (read(master_, bytes, sizeof(bytes)) > 0) {
    }
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void Signal(int number) const { kill(pid_, number); }
  // Returns whether the terminal shows what is typed, as it does outside of line editing.
  bool Echoes() const {
    termios now{};
    return tcgetattr(master_, &now) == 0 && (now.c_lflag & ECHO) != 0;
  }
  const std::string& shown() const { return shown_; }
  // Returns what was shown before the text that the last Wait found.
  const std::string& before() const { return before_; }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
  std::string before_;
};

TEST_F(ChatCliTest, OnATerminalLinesAreEditedAndRemembered) {
  Terminal terminal({"--temp", "0", "-n", "12"});
  ASSERT_TRUE(terminal.Wait("> "));
  // "What is the capital of France?", typed with mistakes.
  terminal.Type("hat is the capital of Francex\x7f?\x01W\r");
  EXPECT_TRUE(terminal.Wait("The capital of France is Paris.")) << terminal.shown();
  EXPECT_TRUE(terminal.Wait("[read ")) << terminal.shown();
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("/stats\r");
  EXPECT_TRUE(terminal.Wait("2 messages")) << terminal.shown();
  terminal.Type("\x1b[A\x1b[A");
  EXPECT_TRUE(terminal.Wait("What is the capital of France?")) << terminal.shown();
  terminal.Type("\x15/exit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST_F(ChatCliTest, CtrlCStopsAnAnswerAndThenLeaves) {
  // Without its end token (8191) the answer goes on until it is stopped.
  Terminal terminal({"--temp", "0", "--logit-bias", "8191-inf", "-n", "-1", "--chat-template",
                     "{{ messages[-1].content }}"});
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("Once upon a time\r");
  ASSERT_TRUE(terminal.Wait("Once upon a time"));
  ASSERT_TRUE(terminal.Wait("there was"));
  terminal.Type("\x03");
  EXPECT_TRUE(terminal.Wait("[read ")) << terminal.shown();
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("half a line\x03");
  ASSERT_TRUE(terminal.Wait("^C"));
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("\x03");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

// A closed window sends a hang-up. The terminal is left as it was.
TEST_F(ChatCliTest, ASignalAtThePromptLeavesInOrder) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Terminal terminal({"--temp", "0"});
    ASSERT_TRUE(terminal.Wait("> "));
    terminal.Type("half a line");
    ASSERT_TRUE(terminal.Wait("half a line"));
    EXPECT_FALSE(terminal.Echoes());
    terminal.Signal(signal);
    EXPECT_EQ(terminal.ExitCode(), 130);
    EXPECT_TRUE(terminal.Echoes());
  }
}

TEST_F(ChatCliTest, ALongLineCanBePasted) {
  Terminal terminal({"--temp", "0"});
  ASSERT_TRUE(terminal.Wait("> "));
  std::string text;
  while (text.size() < 20000) text += "Gr\u00fc\u00dfe, \u4e16\u754c. ";
  text += "End.";
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(terminal.Paste("/system " + text + "\r"));
  ASSERT_TRUE(terminal.Wait("End."));
  ASSERT_TRUE(terminal.Wait("\n"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  ASSERT_TRUE(terminal.Wait("> "));
  // For the line from the history, the part around the cursor is shown.
  terminal.Type("\x10");
  ASSERT_TRUE(terminal.Wait("End."));
  EXPECT_LT(terminal.before().size(), 200u);
  terminal.Type("\x01");
  ASSERT_TRUE(terminal.Wait("/system Gr"));
  ASSERT_TRUE(terminal.Wait("\x1b[K"));
  EXPECT_LT(terminal.before().size(), 200u);
  terminal.Type("\x0b/save " + File("a.json") + "\r/exit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
  EXPECT_EQ(Saved("a.json")[0]["content"], text);
}

TEST_F(ChatCliTest, CtrlCDropsAMessageOfSeveralLines) {
  Terminal terminal({"--temp", "0", "-n", "1"});
  ASSERT_TRUE(terminal.Wait("> "));
  const std::string half[] = {"\"\"\"block", "goes on\\"};
  for (const std::string& line : half) {
    for (const char* typed : {"", "more"}) {
      terminal.Type(line + "\r");
      ASSERT_TRUE(terminal.Wait(". ")) << line;
      terminal.Type(typed + std::string("\x03"));
      ASSERT_TRUE(terminal.Wait("^C")) << line;
      ASSERT_TRUE(terminal.Wait("> ")) << line;
    }
  }
  terminal.Type("/stats\r");
  EXPECT_TRUE(terminal.Wait("0 messages")) << terminal.shown();
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("\"\"\"whole\r");
  ASSERT_TRUE(terminal.Wait(". "));
  terminal.Type("\x04");
  EXPECT_TRUE(terminal.Wait("[read ")) << "Ctrl-D ends it: " << terminal.shown();
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("\x03");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST_F(ChatCliTest, CtrlDLeaves) {
  Terminal terminal({"--temp", "0"});
  ASSERT_TRUE(terminal.Wait("> "));
  terminal.Type("\x04");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

}  // namespace
}  // namespace trine
