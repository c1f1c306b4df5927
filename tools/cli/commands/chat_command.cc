// trine chat: holds a conversation on the terminal, or line by line through a pipe.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/engine/generate.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/conversation.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/generation_arguments.h"
#include "tools/cli/terminal/line_reader.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"

namespace trine {
namespace {

constexpr char kHelp[] =
    "/reset           begin anew; the system message stays\n"
    "/regen           the last answer once more\n"
    "/system TEXT     another system message; without TEXT none\n"
    "/save FILE       write the conversation, as JSON\n"
    "/load FILE       go on with one that was saved\n"
    "/stats           how full the context is, how fast it goes\n"
    "/help            this\n"
    "/exit            leave; so does Ctrl-D, and Ctrl-C on an empty line\n"
    "A \\ at the end of a line: the message goes on. \"\"\": it goes on until the next \"\"\".\n"
    "Ctrl-C stops an answer, or drops a message; Ctrl-D ends one of several lines.\n"
    "A message that begins with / is written with //.\n";

struct Arguments {
  EngineArguments engine;
  SamplingArguments sampling;
  ConstraintArguments constraint;
  ChatArguments chat;
  std::string first_message;
  std::vector<std::string> stop;
  int64_t n_predict = -1;
};

std::atomic<Session*> answering = nullptr;
volatile std::sig_atomic_t answer_stopped = 0;

void StopAnswer() {
  Session* const session = answering;
  if (session != nullptr) session->Cancel();
}

// Ctrl-C stops an answer and not the conversation.
void OnCtrlC(int) {
  answer_stopped = 1;
  StopAnswer();
}

double PerSecond(double n, double ms) { return ms > 0 ? 1000.0 * n / ms : 0; }

class Chat {
 public:
  // Ends when `end` has been raised.
  Chat(std::unique_ptr<Conversation> conversation, int64_t n_predict, bool constrained,
       const OrderlyEnd& end)
      : conversation_(std::move(conversation)),
        n_predict_(n_predict),
        constrained_(constrained),
        end_(end),
        reader_(end.wake_file()) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    colours_ = reader_.terminal() && (no_color == nullptr || *no_color == '\0') &&
               (term == nullptr || std::strcmp(term, "dumb") != 0);
  }

  int Run(const std::string& first_message) {
    if (reader_.terminal()) std::printf("%s/help says what there is.%s\n", Dim(), Plain());
    if (!first_message.empty()) Say(first_message);
    std::string message;
    while (!leave_ && !end_.raised() && ReadMessage(&message)) {
      if (message.empty()) continue;
      if (message[0] == '/' && message.substr(0, 2) != "//") {
        RunCommand(message);
      } else {
        Say(message[0] == '/' ? message.substr(1) : message);
      }
    }
    const bool stopped = answer_stopped != 0 && !reader_.terminal();
    return stopped || end_.raised() ? kInterrupted : failed_ ? 1 : 0;
  }

 private:
  const char* Bold() const { return colours_ ? "\x1b[1;32m" : ""; }
  const char* Dim() const { return colours_ ? "\x1b[2m" : ""; }
  const char* Plain() const { return colours_ ? "\x1b[0m" : ""; }

  LineReader::Outcome ReadLine(const char* sign, std::string* line) {
    return reader_.Read(std::string(Bold()) + sign + Plain(), DisplayWidth(sign), line);
  }

  // Reads the next message. Returns false at the end of the input. Drops interrupted messages.
  bool ReadMessage(std::string* message) {
    while (true) {
      const auto outcome = ReadLine("> ", message);
      if (outcome == LineReader::Outcome::kLine) {
        if (ReadRest(message)) return true;
      } else if (outcome == LineReader::Outcome::kEnd || message->empty()) {
        return false;
      }
    }
  }

  // Reads the rest of a message, until it or the input ends. Returns false when interrupted.
  bool ReadRest(std::string* message) {
    const bool block = message->rfind("\"\"\"", 0) == 0;
    if (block) message->erase(0, 3);
    for (size_t line = 0;;) {
      if (block) {
        const size_t end = message->find("\"\"\"", line);
        if (end != std::string::npos) {
          message->resize(end);
          return true;
        }
      } else {
        if (message->empty() || message->back() != '\\') return true;
        message->pop_back();
      }
      std::string more;
      const auto outcome = ReadLine(". ", &more);
      if (outcome != LineReader::Outcome::kLine) return outcome == LineReader::Outcome::kEnd;
      if (!block || !message->empty()) *message += '\n';
      line = message->size();
      *message += more;
    }
  }

  void Report(const absl::Status& status) {
    Complain(status);
    failed_ = failed_ || !reader_.terminal();
    if (status.code() == absl::StatusCode::kOutOfRange) {
      std::fprintf(stderr, "trine: /reset begins anew; -c takes a larger context\n");
    }
  }

  template <class Ask>
  void Answer(Ask ask) {
    Progress progress("reading");
    GenerateOptions options;
    options.max_tokens = n_predict_;
    options.on_prompt = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    options.on_text = [&](std::string_view text) {
      progress.Clear();
      std::fwrite(text.data(), 1, text.size(), stdout);
      return std::fflush(stdout) == 0;
    };
    last_ = Generation();
    answer_stopped = 0;
    answering = &conversation_->session();
    if (end_.raised()) StopAnswer();  // a signal came before there was an answer to stop
    const absl::Status status = [&] {
      const ScopedSignals interrupt({SIGINT}, OnCtrlC);
      return ask(options);
    }();
    answering = nullptr;
    progress.Clear();
    if (!status.ok()) return Report(status);
    std::printf("\n");
    std::fflush(stdout);
    // A complete constrained answer was closed in time.
    if (last_.finish == FinishReason::kContextFull && !(constrained_ && last_.complete)) {
      std::fprintf(stderr,
                   "trine: the context is full: /reset begins anew; -c takes a larger one\n");
    }
    if (reader_.terminal()) PrintSpeed();
    std::fflush(stdout);
    // Through a pipe there is no user who could continue.
    leave_ = leave_ || (answer_stopped != 0 && !reader_.terminal()) || std::ferror(stdout) != 0;
  }

  void Say(const std::string& text) {
    Answer(
        [&](const GenerateOptions& options) { return conversation_->Say(text, options, &last_); });
  }

  void PrintSpeed() const {
    std::printf("%s[read %lld tokens, %.1f/s; wrote %zu, %.1f/s]%s\n", Dim(),
                static_cast<long long>(last_.prompt_tokens),
                PerSecond(static_cast<double>(last_.prompt_tokens), last_.prompt_ms),
                last_.tokens.size(),
                PerSecond(static_cast<double>(last_.tokens.size()), last_.generate_ms), Plain());
  }

  void PrintStats() const {
    const Session& session = conversation_->session();
    std::printf("%zu messages; %lld of %lld tokens\n", conversation_->messages().size(),
                static_cast<long long>(session.sequence().size()),
                static_cast<long long>(session.engine().context()));
    PrintSpeed();
  }

  void RunCommand(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const size_t begin = line.find_first_not_of(' ', space);
    const std::string rest = begin == std::string::npos ? "" : line.substr(begin);
    if (name == "/reset") {
      conversation_->Reset();
      last_ = Generation();
    } else if (name == "/regen") {
      Answer([&](const GenerateOptions& options) { return conversation_->Again(options, &last_); });
    } else if (name == "/system") {
      const absl::Status status = conversation_->SetSystem(rest);
      if (!status.ok()) Report(status);
    } else if (name == "/stats") {
      PrintStats();
    } else if (name == "/help") {
      std::fputs(kHelp, stdout);
    } else if (name == "/exit" || name == "/quit") {
      leave_ = true;
    } else if ((name == "/save" || name == "/load") && !rest.empty()) {
      const absl::Status status =
          name == "/save" ? conversation_->Save(rest) : conversation_->Load(rest);
      if (!status.ok()) Report(status);
    } else {
      Report(absl::InvalidArgumentError(name == "/save" || name == "/load"
                                            ? name + " needs the name of a file"
                                            : name + ": /help says what there is"));
    }
    std::fflush(stdout);
  }

  std::unique_ptr<Conversation> conversation_;
  const int64_t n_predict_;
  const bool constrained_;
  const OrderlyEnd& end_;
  LineReader reader_;
  bool colours_ = false;
  bool leave_ = false;
  bool failed_ = false;
  Generation last_;
};

absl::StatusOr<std::unique_ptr<Conversation>> Open(const Arguments& a, Engine* engine) {
  auto chat = LoadChatTemplate(a.chat, *engine);
  if (!chat.ok()) return chat.status();
  auto chat_options = MakeChatOptions(a.chat);
  if (!chat_options.ok()) return chat_options.status();
  const auto sampler = MakeSamplerOptions(a.sampling);
  if (!sampler.ok()) return sampler.status();
  auto constraint = MakeConstraint(a.constraint, *engine);
  if (!constraint.ok()) return constraint.status();
  SessionOptions options;
  if (a.engine.keeps_blocks()) options.prefix_space = "";
  options.sampler = *sampler;
  options.constraint = *std::move(constraint);
  options.stop = a.stop;
  auto session = Session::Create(engine, options);
  if (!session.ok()) return session.status();
  auto conversation = std::make_unique<Conversation>(*std::move(session), *std::move(chat),
                                                     *std::move(chat_options));
  if (absl::Status s = conversation->SetSystem(a.chat.system_prompt); !s.ok()) return s;
  return conversation;
}

int RunChat(const Arguments& a) {
  std::optional<OrderlyEnd> end;  // declared before the engine, which keeps counts when it ends
  auto engine = LoadEngine(a.engine);
  if (!engine.ok()) return Complain(engine.status());
  auto conversation = Open(a, engine->get());
  if (!conversation.ok()) return Complain(conversation.status());
  end.emplace(StopAnswer);
  const int code = Chat(*std::move(conversation), a.n_predict, IsConstrained(a.constraint), *end)
                       .Run(a.first_message);
  const absl::Status traced = (*engine)->WriteTrace();
  return traced.ok() ? code : Complain(traced);
}

}  // namespace

void AddChatCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<Arguments>(
      app, run, RunChat, "chat", "Talk with a model; /help, once there, says what there is");
  command.AddOption("-p,--prompt", a->first_message, "The first message");
  command
      .AddOption("-n,--n-predict,--predict", a->n_predict,
                 "Tokens of an answer; -1: until it or the context ends")
      .Range(int64_t{-1}, int64_t{1} << 30)
      .ShowDefault();
  command.AddOption("-r,--stop,--reverse-prompt", a->stop,
                    "End an answer where this text appears; may be repeated");
  AddChatOptions(command, &a->chat);
  AddEngineOptions(command, "Positions of the conversation", &a->engine);
  AddKvStoreOptions(command, &a->engine);
  AddSamplingOptions(command, &a->sampling);
  AddConstraintOptions(command, &a->constraint);
}

}  // namespace trine
