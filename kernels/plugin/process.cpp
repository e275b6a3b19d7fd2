#include "kernels/plugin/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/plugin/socket.h"
#include "kernels/plugin/worker.h"

extern char** environ;

namespace assay {
namespace {

constexpr std::size_t kLastWords = 2048;
constexpr int kSliceMs = 100;  // how often a wait looks whether the user wants to stop
constexpr std::size_t kPiece = std::size_t{1} << 20;

struct Pair {
  int ours = -1, theirs = -1;
};

Pair socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error::from_errno("make a socket for a plugin", errno);
  return {ends[0], ends[1]};
}

Pair output_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error::from_errno("make a pipe for a plugin", errno);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

// Ours, with the limit the worker sets itself.
std::vector<std::string> environment(std::uint64_t memory) {
  const std::string prefix = std::string(kWorkerMemory) + "=";
  std::vector<std::string> list;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(prefix)) list.emplace_back(*entry);
  }
  list.push_back(prefix + std::to_string(memory));
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& list) {
  std::vector<char*> all;
  for (std::string& text : list) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// `socket` and `output` lie above the numbers they become.
int spawn(const PluginLimits& limits, const std::filesystem::path& library, int socket, int output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_adddup2(&files, output, 2);
  posix_spawn_file_actions_adddup2(&files, socket, kWorkerSocket);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, ours;
  sigemptyset(&none);
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &ours);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> arguments = {"assay", kWorkerCommand, absolute(library).string()};
  std::vector<std::string> variables = environment(limits.memory);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, limits.program.c_str(), &files, &attributes, pointers(arguments).data(),
                                pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw Error::from_errno("start a process for a plugin", error).in(limits.program);
  return pid;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

// The last line of what it printed that is not empty.
std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const auto newline = text.rfind('\n');
  if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  return std::string(text.substr(0, 300));
}

}  // namespace

PluginProcess::PluginProcess(const std::filesystem::path& library, const PluginLimits& limits)
    : limits_(limits) {
  // Above the worker's own numbers, so that no dup2 closes what a later one needs.
  const auto raised = [](int descriptor) {
    const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
    close(descriptor);
    if (high < 0) throw Error::from_errno("make a socket for a plugin", errno);
    return high;
  };
  const Pair talk = socket_pair(), output = output_pipe();
  socket_ = talk.ours;
  output_ = output.ours;
  const int theirs = raised(talk.theirs), their_output = raised(output.theirs);
  try {
    pid_ = spawn(limits, library, theirs, their_output);
  } catch (...) {
    for (const int descriptor : {theirs, their_output, socket_, output_}) close(descriptor);
    throw;
  }
  close(theirs);
  close(their_output);
  watch_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

PluginProcess::~PluginProcess() {
  kill_group();
  for (const int descriptor : {socket_, output_, watch_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void PluginProcess::kill_group() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  alive_ = false;
}

void PluginProcess::take_output() {
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = read(output_, piece.data(), piece.size());
    if (n <= 0) return;
    last_words_.append(piece.data(), static_cast<std::size_t>(n));
    if (last_words_.size() > kLastWords) last_words_.erase(0, last_words_.size() - kLastWords);
  }
}

PluginProcess::Read PluginProcess::receive(std::span<std::byte> into, Clock::time_point deadline) {
  while (!into.empty()) {
    const ssize_t n = recv(socket_, into.data(), into.size(), MSG_DONTWAIT);
    if (n > 0) {
      into = into.subspan(static_cast<std::size_t>(n));
      continue;
    }
    if (n == 0 || dead_seen_ || (errno != EAGAIN && errno != EINTR)) return Read::gone;
    if (interrupted()) return Read::interrupted;
    if (Clock::now() >= deadline) return Read::late;
    std::array<pollfd, 3> waits = {{{socket_, POLLIN, 0}, {output_, POLLIN, 0}, {watch_, POLLIN, 0}}};
    poll(waits.data(), waits.size(), kSliceMs);
    if ((waits[1].revents & POLLIN) != 0) take_output();
    // What it has sent before its death is still read; a child of its own may keep the socket open.
    dead_seen_ = (waits[2].revents & POLLIN) != 0;
  }
  return Read::done;
}

PluginProcess::Read PluginProcess::receive_body(std::uint64_t length, std::vector<std::byte>& body,
                                                Clock::time_point deadline) {
  while (body.size() < length) {
    const std::size_t begin = body.size();
    body.resize(begin + std::min<std::uint64_t>(kPiece, length - begin));
    const Read read = receive(std::span(body).subspan(begin), deadline);
    if (read != Read::done) return read;
  }
  return Read::done;
}

PluginProcess::Read PluginProcess::exchange(message::Kind kind, std::span<const std::byte> body,
                                            double allowed, message::Header& header,
                                            std::vector<std::byte>& answer) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(allowed));
  if (!send_all(socket_, message::frame(kind, body))) return Read::gone;
  for (;;) {
    std::array<std::byte, message::kHeaderBytes> head{};
    if (const Read read = receive(head, deadline); read != Read::done) return read;
    header = message::parse_header(head);
    answer.clear();
    if (const Read read = receive_body(header.length, answer, deadline); read != Read::done) return read;
    if (header.kind != message::Kind::fault) return Read::done;
    note_ = message::parse_line(answer);
  }
}

PluginProcess::Reply PluginProcess::ask(message::Kind kind, std::span<const std::byte> body,
                                        message::Kind expected, std::optional<message::Kind> otherwise) {
  if (!alive_) throw Error::internal("a dead plugin process was asked");
  try {
    message::Header header{};
    std::vector<std::byte> answer;
    const double allowed =
        kind == message::Kind::load ? std::max(limits_.seconds, kLoadSeconds) : limits_.seconds;
    const Read read = exchange(kind, body, allowed, header, answer);
    if (read != Read::done) return {{}, ended(read, allowed)};
    take_output();
    if (header.kind == expected || header.kind == otherwise) return {header.kind, std::move(answer)};
    kill_group();
    return {{}, Ending{"answer", "its answer is malformed: not what was asked for"}};
  } catch (const Error& error) {
    kill_group();
    return {{}, Ending{"answer", error.message()}};
  }
}

Ending PluginProcess::ended(Read why, double allowed) {
  take_output();
  switch (why) {
    case Read::late:
      kill_group();
      return {"timeout", fmt::format("no answer within {:g} s; it was killed", allowed)};
    case Read::interrupted: kill_group(); return {"interrupted", "interrupted"};
    case Read::gone:
    case Read::done: break;
  }
  return died();
}

Ending PluginProcess::died() {
  // It may have closed the socket and live on: a moment, then it is killed.
  siginfo_t dead = {};
  for (int i = 0; i < 20 && dead.si_pid == 0; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    waitid(P_PID, static_cast<id_t>(pid_), &dead, WEXITED | WNOHANG | WNOWAIT);
  }
  take_output();
  if (dead.si_pid == 0) {
    kill_group();
    return {"answer", "it closed the socket on which its answers are due"};
  }
  kill(-pid_, SIGKILL);  // what it has left behind
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  alive_ = false;
  std::string words = last_line(last_words_);
  if (!words.empty()) words = fmt::format("; its last words: {}", escape_for_terminal(words));
  if (WIFEXITED(status))
    return {"exit", fmt::format("it ended its process with exit code {}{}", WEXITSTATUS(status), words)};
  std::string how = fmt::format("killed by {}", signal_name(WTERMSIG(status)));
  if (!note_.empty()) how += ", " + escape_for_terminal(note_);
  return {"crash", how + words};
}

}  // namespace assay
