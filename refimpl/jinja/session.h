// What one rendering may spend, and what it leaves to be cleared. A template comes from a stranger: it may ask for
// 'a' * 10**9, loop over loops, or double a string until nothing else fits. So every object that is made is charged
// for its bytes, every step and every byte that is copied counts as work, and the stack is measured.
//
//   Session session(limits);          // from here on objects made on this thread are charged to it
//   Session::current()->work(1);      // Error::input when it is too much
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::jinja {

struct Limits {
  std::size_t bytes = 256u << 20;    // of live objects and buffers
  std::size_t output = 64u << 20;    // of one text
  std::uint64_t work = 200'000'000;  // steps, and 64 bytes copied are one more: some seconds
  std::size_t stack = 3u << 20;      // of the machine's stack below the renderer
  int calls = 200;                   // macros in macros (Python gives up at about as many)
};

// A day and a time of day, for strftime_now.
struct Moment {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, microsecond = 0;
};
Moment current_moment();  // of the machine's clock, in its time zone
// "2026-01-31", "2026-01-31T23:59:00" or with a blank between; nullopt where it is no such time.
std::optional<Moment> moment_from_text(std::string_view text);
// As Python's datetime.strftime writes it, in the C locale.
std::string format_moment(const Moment& moment, std::string_view format);

// What a cycle of references could keep alive: cleared by the session when it ends.
class Clearable {
 public:
  virtual ~Clearable() = default;
  virtual void clear() = 0;
};

class Session {
 public:
  explicit Session(const Limits& limits = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  static Session* current();

  void work(std::uint64_t steps);
  void charge(std::size_t bytes);  // before they are taken
  void refund(std::size_t bytes) { live_ -= bytes; }
  void check_text(std::size_t bytes) const;  // a text of so many may be made
  void check_stack() const;
  void keep(std::shared_ptr<Clearable> object);
  // While it lives, one more call is open. Throws Error::input where that is one too many.
  class Call {
   public:
    explicit Call(Session& session);
    ~Call() { --session_.open_calls_; }

   private:
    Session& session_;
  };

  bool autoescape = false;    // inside {% autoescape true %}
  bool joins_markup = false;  // where `~` escapes too: only if that `true` is written as a constant
  Moment now;

 private:
  Limits limits_;
  Session* outer_;
  const char* stack_begin_;
  std::size_t live_ = 0;
  std::uint64_t spent_ = 0;
  int open_calls_ = 0;
  std::vector<std::shared_ptr<Clearable>> kept_;
};

// Outside of a session, nothing is counted.
void count_work(std::uint64_t steps);
inline void count_copy(std::size_t bytes) {
  count_work(bytes / 64);
}

// Text being put together, charged as it grows.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void append(std::string_view more);
  const std::string& text() const { return text_; }
  std::string take();

 private:
  std::string text_;
  std::size_t charged_ = 0;
};

// What a template did that its language does not allow.
[[noreturn]] void fail(std::string what);

}  // namespace assay::jinja
