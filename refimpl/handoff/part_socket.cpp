#include "refimpl/handoff/part_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <thread>
#include <utility>

#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/handoff/handoff_part.h"

namespace assay {
namespace {

constexpr std::string_view kGreeting = "assay hand-off 1\n";
constexpr std::uint64_t kMostText = 1 << 16;
constexpr std::size_t kAtOnce = std::size_t{1} << 20;
constexpr Patience kGlance{50}, kAgain{20}, kForGreeting{5'000}, kForLastWords{1'000};

Patience left_until(HandoffClock::time_point until) {
  return std::max(Patience(1), std::chrono::duration_cast<Patience>(until - HandoffClock::now()));
}

Error gone() {
  return Error::io("the other side of the hand-off is gone");
}

// Addresses of a name, to be connected to or listened at.
using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
Addresses addresses_of(const SocketPlace& place, bool to_listen) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found);
  if (failed != 0)
    throw Error::io(fmt::format("{}: {}", escape_for_terminal(place.host), ::gai_strerror(failed)));
  return {found, ::freeaddrinfo};
}

void send_at_once(int descriptor) {
  const int yes = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

int listening_at(const SocketPlace& place) {
  const Addresses addresses = addresses_of(place, true);
  int why = EADDRNOTAVAIL;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const int descriptor = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (descriptor < 0) continue;
    const int yes = 1;
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(descriptor, a->ai_addr, a->ai_addrlen) == 0 && ::listen(descriptor, 8) == 0) return descriptor;
    why = errno;
    ::close(descriptor);
  }
  throw Error::from_errno(fmt::format("listen on {}:{}", escape_for_terminal(place.host), place.port), why);
}

}  // namespace

std::optional<SocketPlace> socket_place(const std::string& text) {
  constexpr std::string_view kScheme = "tcp://";
  if (!text.starts_with(kScheme)) return std::nullopt;
  const std::string rest = text.substr(kScheme.size());
  const std::size_t colon = rest.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : parse_u64(rest.substr(colon + 1));
  std::string host = rest.substr(0, std::min(colon, rest.size()));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (!port || *port > 65535 || host.empty())
    throw Error::usage(fmt::format("\"{}\" is no address", escape_for_terminal(text)))
        .remedy("give tcp://HOST:PORT");
  return SocketPlace{host, static_cast<std::uint16_t>(*port)};
}

FrameSocket::FrameSocket(FrameSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), patience_(other.patience_) {}
FrameSocket& FrameSocket::operator=(FrameSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(patience_, other.patience_);
  return *this;
}
FrameSocket::~FrameSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// In looks, so that Ctrl-C is seen.
void FrameSocket::wait(short events) const {
  const auto until = HandoffClock::now() + patience_;
  for (;;) {
    pollfd state = {.fd = descriptor_, .events = events, .revents = 0};
    const int ready = ::poll(&state, 1, static_cast<int>(kGlance.count()));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw Error::from_errno("wait for the other side of a hand-off", errno);
    if (interrupted()) throw Error::io("the hand-off was interrupted");
    if (HandoffClock::now() > until)
      throw Error::io("nothing more of the hand-off came").remedy("give it more time with --handoff-timeout");
  }
}

void FrameSocket::send(std::span<const std::byte> frame) {
  std::vector<std::byte> length;
  put_number(length, frame.size());
  for (std::span<const std::byte> bytes : {std::span<const std::byte>(length), frame}) {
    while (!bytes.empty()) {
      wait(POLLOUT);
      const ssize_t sent =
          ::send(descriptor_, bytes.data(), std::min(bytes.size(), kAtOnce), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (sent <= 0) throw gone();
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }
}

void FrameSocket::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    wait(POLLIN);
    const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) throw gone();
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

// Memory grows as bytes come: a length is only what somebody says.
std::vector<std::byte> FrameSocket::receive(std::uint64_t most) {
  std::array<std::byte, 8> length{};
  read(length);
  const std::uint64_t size = whole_number_at(length);
  if (size > most) throw Error::input(fmt::format("a part of a hand-off of {} bytes", size));
  std::vector<std::byte> frame;
  while (frame.size() < size) {
    const std::size_t have = frame.size();
    frame.resize(std::min<std::uint64_t>(size, have + kAtOnce));
    read(std::span(frame).subspan(have));
  }
  return frame;
}

std::string FrameSocket::receive_text(std::uint64_t most) {
  const std::vector<std::byte> frame = receive(most);
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

bool FrameSocket::has_something() const {
  pollfd state = {.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) > 0;
}

void FrameSocket::end_sending() const {
  ::shutdown(descriptor_, SHUT_WR);
}

void FrameSocket::drain(Patience time) {
  std::vector<std::byte> bytes(kAtOnce);
  const auto until = HandoffClock::now() + time;
  while (HandoffClock::now() < until) {
    if (!has_something()) {
      std::this_thread::sleep_for(Patience(1));
      continue;
    }
    if (::recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT) <= 0) return;
  }
}

FrameSocket connect_to(const SocketPlace& place, Patience patience) {
  const auto until = HandoffClock::now() + patience;
  const Addresses addresses = addresses_of(place, false);
  for (;;) {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      const int descriptor = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
      if (descriptor >= 0 && ::connect(descriptor, a->ai_addr, a->ai_addrlen) == 0) {
        send_at_once(descriptor);
        return {descriptor, patience};
      }
      if (descriptor >= 0) ::close(descriptor);
    }
    if (interrupted()) throw Error::io("the hand-off was interrupted");
    if (HandoffClock::now() > until)
      throw Error::io(
          fmt::format("nobody takes a hand-off on tcp://{}:{}", escape_for_terminal(place.host), place.port))
          .remedy("start the decoder: assay run MODEL --handoff-from tcp://HOST:PORT");
    std::this_thread::sleep_for(kAgain);
  }
}

PartSocketSink::PartSocketSink(const SocketPlace& place, const std::string& authorization, Patience patience)
    : PartSocketSink(place, authorization, patience, HandoffClock::now() + patience) {}

PartSocketSink::PartSocketSink(const SocketPlace& place, const std::string& authorization, Patience patience,
                               HandoffClock::time_point until)
    : socket_(connect_to(place, left_until(until))) {
  try {
    socket_.set_patience(left_until(until));
    socket_.send(std::string(kGreeting) + authorization);
    const std::string answer = socket_.receive_text(kMostText);
    if (!answer.empty()) throw Error::input("the decoder says: " + escape_for_terminal(answer));
    socket_.set_patience(patience);
  } catch (Error& error) {
    throw error.in(fmt::format("tcp://{}:{}", place.host, place.port));
  }
}

// Whoever refuses a part says why before it closes.
void PartSocketSink::tell_refusal(const Error& error) {
  std::string why;
  try {
    if (socket_.has_something()) why = socket_.receive_text(kMostText);
  } catch (const Error&) {
    throw error;
  }
  if (why.empty()) throw error;
  throw Error::input("the decoder refused it: " + escape_for_terminal(why));
}

void PartSocketSink::put(std::uint64_t, std::span<const std::byte> part) {
  try {
    if (socket_.has_something()) throw gone();  // before the end it says something only where it refuses
    socket_.send(part);
  } catch (const Error& error) {
    tell_refusal(error);
  }
}

void PartSocketSink::close() {
  const std::string why = socket_.receive_text(kMostText);
  if (!why.empty()) throw Error::input("the decoder refused it: " + escape_for_terminal(why));
}

PartSocketSource::PartSocketSource(const SocketPlace& place, Admits admits, Patience patience)
    : listening_(listening_at(place)), admits_(std::move(admits)), patience_(patience) {}

PartSocketSource::~PartSocketSource() {
  if (listening_ >= 0) ::close(listening_);
}

std::uint16_t PartSocketSource::port() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(listening_, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

void PartSocketSource::wait_for_prefill() {
  const auto until = HandoffClock::now() + patience_;
  while (!socket_) {
    pollfd state = {.fd = listening_, .events = POLLIN, .revents = 0};
    if (interrupted()) throw Error::io("the hand-off was interrupted");
    if (HandoffClock::now() > until)
      throw Error::io("no hand-off began here").remedy("start the prefill, or give it more time");
    if (::poll(&state, 1, static_cast<int>(kGlance.count())) <= 0) continue;
    const int descriptor = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) continue;
    send_at_once(descriptor);
    FrameSocket socket(descriptor, std::min(left_until(until), kForGreeting));
    try {
      const std::string greeting = socket.receive_text(kMostText);
      const bool known = greeting.starts_with(kGreeting);
      if (known && admits_(greeting.substr(kGreeting.size()))) {
        socket.send("");
        socket.set_patience(patience_);
        socket_.emplace(std::move(socket));
      } else {
        socket.send(known ? "no such key" : "another version of hand-offs");
      }
    } catch (const Error&) {
      continue;  // a stranger, and the prefill is still to come
    }
  }
}

std::vector<std::byte> PartSocketSource::next(std::uint64_t) {
  if (!socket_) wait_for_prefill();
  try {
    return socket_->receive(kPartHeaderBytes + kMostPartBytes + kDigestBytes);
  } catch (const Error& error) {
    if (error.message() != gone().message()) throw;
    throw Error::io("the prefill ended before its hand-off was whole");
  }
}

void PartSocketSource::taken() {
  socket_->send("");
  socket_->end_sending();
}

void PartSocketSource::refuse(const std::string& why) {
  if (!socket_) return;
  try {
    socket_->send(std::string_view(why).substr(0, kMostText));
    socket_->end_sending();
    socket_->drain(kForLastWords);  // else what it is still sending would wipe out what it was told
  } catch (const Error&) {
    return;  // it is gone
  }
}

}  // namespace assay
