// Switching costs a dozen instructions on x86-64, where it is done by hand (swapcontext() asks the kernel
// twice a switch, and a block of 256 threads switches a few thousand times); elsewhere it is swapcontext().
#include "kernels/cuda/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <vector>

#include "core/system/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASSAY_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_FIBER_ASAN 1
#endif
#endif
#ifdef ASSAY_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Saves what a called function must preserve on the stack it leaves, whose pointer goes to *from, and takes
// the same from the stack at `to` (System V ABI, x86-64, §3.2.1).
extern "C" void assay_switch_stack(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl assay_switch_stack
.type assay_switch_stack, @function
assay_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size assay_switch_stack, . - assay_switch_stack
)");
#endif

namespace assay::cuda {
namespace {

#ifdef ASSAY_FIBER_ASAN
constexpr std::size_t kStackBytes = 256 << 10;  // instrumented frames are several times as large
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif

// Memory of which only touched pages exist.
class FiberStack {
 public:
  FiberStack() {
    memory_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED) throw Error::io("no memory for the stacks of emulated threads");
  }
  ~FiberStack() {
    if (memory_ == nullptr) return;
    forget_frames();
    munmap(memory_, kStackBytes);
  }
  FiberStack(FiberStack&& other) noexcept : memory_(other.memory_) { other.memory_ = nullptr; }
  FiberStack& operator=(FiberStack&&) = delete;
  void* bottom() const { return memory_; }
  // Of functions that will never return: AddressSanitizer still guards what lies between their variables.
  void forget_frames() const {
#ifdef ASSAY_FIBER_ASAN
    __asan_unpoison_memory_region(memory_, kStackBytes);
#endif
  }

 private:
  void* memory_ = nullptr;
};

#if defined(__x86_64__)
struct Context {
  void* stack_pointer = nullptr;
};
void switch_context(Context& from, Context& to) {
  assay_switch_stack(&from.stack_pointer, to.stack_pointer);
}
void begin_context(Context& context, void* bottom, void (*entry)()) {
  // As if a call to `entry` had been interrupted before its first instruction: six registers, its address,
  // and above them a return address that nobody returns to; a called function finds its stack 8 bytes off a
  // multiple of 16.
  auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(bottom) + kStackBytes);
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(entry);
  for (int i = 0; i < 6; ++i) *--top = 0;
  context.stack_pointer = top;
}
#else
struct Context {
  ucontext_t context{};
};
void switch_context(Context& from, Context& to) {
  swapcontext(&from.context, &to.context);
}
void begin_context(Context& context, void* bottom, void (*entry)()) {
  getcontext(&context.context);
  context.context.uc_stack.ss_sp = bottom;
  context.context.uc_stack.ss_size = kStackBytes;
  context.context.uc_link = nullptr;
  makecontext(&context.context, entry, 0);
}
#endif

}  // namespace

struct FiberPool::State {
  struct Fiber {
    FiberStack stack;
    Context context;
    bool ended = false;
    void* fake_stack = nullptr;  // AddressSanitizer's
  };
  std::vector<Fiber> fibers;
  Entry entry = nullptr;
  void* argument = nullptr;
  std::size_t running = 0;
  Context caller;
  void* caller_fake_stack = nullptr;
  const void* caller_bottom = nullptr;
  std::size_t caller_bytes = 0;

  static thread_local State* current;  // the pool whose fiber runs on this system thread

  static void run_fiber() {
    State& state = *current;
    state.arrived_in_fiber(nullptr);
    const std::size_t fiber = state.running;
    state.entry(state.argument, fiber);
    state.fibers[fiber].ended = true;
    state.leave_fiber(true);
    __builtin_unreachable();
  }

  void leave_fiber([[maybe_unused]] bool for_ever) {
    Fiber& fiber = fibers[running];
#ifdef ASSAY_FIBER_ASAN
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fiber.fake_stack, caller_bottom, caller_bytes);
#endif
    switch_context(fiber.context, caller);
    arrived_in_fiber(fiber.fake_stack);
  }

  void arrived_in_fiber([[maybe_unused]] void* fake_stack) {
#ifdef ASSAY_FIBER_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &caller_bottom, &caller_bytes);
#endif
  }
};

thread_local FiberPool::State* FiberPool::State::current = nullptr;

FiberPool::FiberPool() : state_(std::make_unique<State>()) {}
FiberPool::~FiberPool() = default;

void FiberPool::reset(std::size_t count, Entry entry, void* argument) {
  while (state_->fibers.size() < count) state_->fibers.emplace_back();
  state_->entry = entry;
  state_->argument = argument;
  for (std::size_t i = 0; i < count; ++i) {
    State::Fiber& fiber = state_->fibers[i];
    fiber.stack.forget_frames();
    begin_context(fiber.context, fiber.stack.bottom(), &State::run_fiber);
    fiber.ended = false;
    fiber.fake_stack = nullptr;
  }
}

void FiberPool::resume(std::size_t index) {
  State& state = *state_;
  State::Fiber& fiber = state.fibers[index];
  State* const outer = State::current;
  State::current = &state;
  state.running = index;
#ifdef ASSAY_FIBER_ASAN
  __sanitizer_start_switch_fiber(&state.caller_fake_stack, fiber.stack.bottom(), kStackBytes);
#endif
  switch_context(state.caller, fiber.context);
#ifdef ASSAY_FIBER_ASAN
  __sanitizer_finish_switch_fiber(state.caller_fake_stack, nullptr, nullptr);
#endif
  State::current = outer;
}

void FiberPool::pause() {
  state_->leave_fiber(false);
}

bool FiberPool::ended(std::size_t fiber) const {
  return state_->fibers[fiber].ended;
}

}  // namespace assay::cuda
