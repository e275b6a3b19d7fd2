#include "kernels/plugin/fault_note.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "kernels/plugin/guarded_bytes.h"
#include "kernels/plugin/message.h"

namespace assay {
namespace {

std::atomic<int> note_socket{-1};
constexpr std::size_t kHandlerStack = std::size_t{64} * 1024;
constexpr std::uintptr_t kNearStack = 1 << 20;
constexpr std::size_t kMuch = 64 << 20;

// Within reach of the stack pointer: a frame that no longer fitted.
bool near_stack([[maybe_unused]] const void* address, [[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto* where = static_cast<const ucontext_t*>(context);
  const auto stack = static_cast<std::uintptr_t>(where->uc_mcontext.gregs[REG_RSP]);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at > stack - kNearStack && at < stack + 4096;
#else
  return false;
#endif
}

// Whether the process has come to the end of the memory it may have.
bool memory_used_up() {
  void* more = mmap(nullptr, kMuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (more == MAP_FAILED) return true;
  munmap(more, kMuch);
  return false;
}

// Only what a signal handler may: no memory, no locks.
void note(int signal, siginfo_t* info, void* context) {
  const char* what = "";
  if (memory_used_up()) {
    what = "with its memory used up";
  } else if (signal == SIGSEGV || signal == SIGBUS) {
    const char* place = guarded_place(info->si_addr);
    if (place != nullptr)
      what = place;
    else if (info->si_addr == nullptr)
      what = "at address 0";
    else if (near_stack(info->si_addr, context))
      what = "beyond the end of the stack";
  }
  const std::uint64_t text = std::strlen(what), length = sizeof text + text;
  std::array<char, 256> frame{};
  const std::uint32_t head[2] = {message::kMagic, static_cast<std::uint32_t>(message::Kind::fault)};
  std::memcpy(frame.data(), head, sizeof head);
  std::memcpy(frame.data() + 8, &length, sizeof length);
  std::memcpy(frame.data() + 16, &text, sizeof text);
  std::memcpy(frame.data() + 24, what, text);
  send(note_socket, frame.data(), 24 + text, MSG_NOSIGNAL | MSG_DONTWAIT);
  // SA_RESETHAND: on return the same instruction faults again (or abort() goes on), and now it kills.
}

}  // namespace

void install_fault_notes(int socket) {
  note_socket = socket;
  void* stack = mmap(nullptr, kHandlerStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack != MAP_FAILED) {
    stack_t alternative = {};
    alternative.ss_sp = stack;
    alternative.ss_size = kHandlerStack;
    sigaltstack(&alternative, nullptr);
  }
  struct sigaction action = {};
  action.sa_sigaction = note;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace assay
