#include "refimpl/jinja/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>

#include "core/system/error.h"

namespace assay::jinja {
namespace {

thread_local Session* current_session = nullptr;

// Where the stack stands, near enough.
__attribute__((noinline)) const char* stack_position() {
  const char* position = static_cast<const char*>(__builtin_frame_address(0));
  return position;
}

std::tm as_tm(const Moment& moment) {
  std::tm time = {};
  time.tm_year = moment.year - 1900;
  time.tm_mon = moment.month - 1;
  time.tm_mday = moment.day;
  time.tm_hour = moment.hour;
  time.tm_min = moment.minute;
  time.tm_sec = moment.second;
  const std::chrono::year_month_day date(std::chrono::year(moment.year),
                                         std::chrono::month(static_cast<unsigned>(moment.month)),
                                         std::chrono::day(static_cast<unsigned>(moment.day)));
  const std::chrono::sys_days days(date);
  time.tm_wday = static_cast<int>(std::chrono::weekday(days).c_encoding());
  time.tm_yday = static_cast<int>((days - std::chrono::sys_days(date.year() / 1 / 1)).count());
  time.tm_isdst = -1;
  return time;
}

}  // namespace

void fail(std::string what) {
  throw Error::input(std::move(what));
}

Session::Session(const Limits& limits)
    : limits_(limits), outer_(current_session), stack_begin_(stack_position()) {
  current_session = this;
}

Session::~Session() {
  // All of them are held here until the last is empty: no chain of them is taken apart by recursion.
  for (const auto& object : kept_) object->clear();
  kept_.clear();
  current_session = outer_;
}

Session* Session::current() {
  return current_session;
}

void Session::work(std::uint64_t steps) {
  spent_ += steps;
  if (spent_ > limits_.work)
    fail(fmt::format("the template has taken {} steps and is not done: it is stopped", limits_.work));
}

void Session::charge(std::size_t bytes) {
  if (bytes > limits_.bytes || live_ > limits_.bytes - bytes)
    fail(fmt::format("the template wants more than {} bytes of memory", limits_.bytes));
  live_ += bytes;
}

void Session::check_text(std::size_t bytes) const {
  if (bytes > limits_.output)
    fail(fmt::format("the template makes a text of {} bytes, and {} are the most", bytes, limits_.output));
}

void Session::check_stack() const {
  const std::ptrdiff_t used = stack_begin_ - stack_position();
  if (static_cast<std::size_t>(std::max(used, -used)) > limits_.stack)
    fail("expressions or calls are nested too deeply");
}

void Session::keep(std::shared_ptr<Clearable> object) {
  charge(sizeof object);
  kept_.push_back(std::move(object));
}

Session::Call::Call(Session& session) : session_(session) {
  if (session.open_calls_ >= session.limits_.calls)
    fail(fmt::format("calls are nested more than {} deep", session.limits_.calls));
  ++session_.open_calls_;
}

void count_work(std::uint64_t steps) {
  if (current_session != nullptr) current_session->work(steps);
}

Buffer::~Buffer() {
  if (current_session != nullptr) current_session->refund(charged_);
}

void Buffer::append(std::string_view more) {
  if (current_session != nullptr) {
    current_session->check_text(text_.size() + more.size());
    current_session->charge(more.size());
    charged_ += more.size();
    current_session->work(more.size() / 64);
  }
  text_ += more;
}

std::string Buffer::take() {
  if (current_session != nullptr) current_session->refund(charged_);
  charged_ = 0;
  return std::move(text_);
}

Moment current_moment() {
  std::timespec now = {};
  std::timespec_get(&now, TIME_UTC);
  std::tm local = {};
  ::localtime_r(&now.tv_sec, &local);
  return {local.tm_year + 1900,
          local.tm_mon + 1,
          local.tm_mday,
          local.tm_hour,
          local.tm_min,
          std::min(local.tm_sec, 59),
          static_cast<int>(now.tv_nsec / 1000)};
}

std::optional<Moment> moment_from_text(std::string_view text) {
  static constexpr std::array<std::string_view, 2> kForms = {"0000-00-00", "0000-00-00T00:00:00"};
  const auto fits = [&](std::string_view form) {
    if (form.size() != text.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i) {
      const bool digit = text[i] >= '0' && text[i] <= '9';
      if (form[i] == '0' ? !digit : !(text[i] == form[i] || (form[i] == 'T' && text[i] == ' '))) return false;
    }
    return true;
  };
  if (!fits(kForms[0]) && !fits(kForms[1])) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    if (at < text.size()) std::from_chars(text.data() + at, text.data() + at + digits, value);
    return value;
  };
  const Moment moment = {
      number(0, 4), number(5, 2), number(8, 2), number(11, 2), number(14, 2), number(17, 2), 0};
  const std::chrono::year_month_day date(std::chrono::year(moment.year),
                                         std::chrono::month(static_cast<unsigned>(moment.month)),
                                         std::chrono::day(static_cast<unsigned>(moment.day)));
  const bool valid =
      date.ok() && moment.year > 0 && moment.hour < 24 && moment.minute < 60 && moment.second < 60;
  return valid ? std::optional(moment) : std::nullopt;
}

// Directive by directive: one letter each, so that no width ("%99999d", an extension of the C library) makes a
// text without end. %f is Python's own; of a time without a zone %z and %Z are empty.
std::string format_moment(const Moment& moment, std::string_view format) {
  const std::tm time = as_tm(moment);
  std::string text;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      text += format[i];
      continue;
    }
    std::string directive = "%";
    while (++i < format.size()) {
      directive += format[i];
      if (std::string_view("-_0^#EO").find(format[i]) == std::string_view::npos) break;
    }
    const char letter = directive.back();
    if (letter == 'f') {
      text += fmt::format("{:06}", moment.microsecond);
    } else if (letter == '%' && directive.size() == 1) {
      text += '%';
    } else if (letter != 'z' && letter != 'Z') {
      if (letter >= '1' && letter <= '9') fail("strftime_now: a width in a directive is not supported");
      char written[128];
      text.append(written, std::strftime(written, sizeof written, directive.c_str(), &time));
    }
  }
  return text;
}

}  // namespace assay::jinja
