#include "refimpl/serve/listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <tuple>

#include "refimpl/serve/client_socket.h"

namespace assay {
namespace {

constexpr int kBacklog = 511;
constexpr int kLookMs = 100;  // between looks whether the server goes on

thread_local bool closes = false;

// A signal is no answer.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

bool is_ready(int descriptor, short events, std::time_t ms) {
  pollfd state = {.fd = descriptor, .events = events, .revents = 0};
  return uninterrupted([&] { return ::poll(&state, 1, static_cast<int>(ms)); }) > 0;
}

// A connection over all of its requests: what came with one of the next stays.
class Connection : public httplib::Stream {
 public:
  Connection(int descriptor, std::time_t read_ms, std::time_t write_ms)
      : descriptor_(descriptor), read_ms_(read_ms), write_ms_(write_ms) {}

  // Has something come within `ms`? The client's leaving is something.
  bool has_more(std::time_t ms) const { return begin_ < end_ || is_ready(descriptor_, POLLIN, ms); }

  bool is_readable() const override { return has_more(read_ms_); }
  bool is_writable() const override { return is_ready(descriptor_, POLLOUT, write_ms_); }

  ssize_t read(char* to, std::size_t size) override {
    if (begin_ == end_) {
      if (!is_readable()) return -1;
      if (size >= buffer_.size()) return receive(to, size);
      const ssize_t got = receive(buffer_.data(), buffer_.size());
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t taken = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, taken);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (!is_writable()) return -1;
    return uninterrupted([&] { return ::send(descriptor_, from, size, MSG_NOSIGNAL); });
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    put(peer_of(descriptor_), ip, port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    put(own_place_of(descriptor_), ip, port);
  }
  socket_t socket() const override { return descriptor_; }

 private:
  ssize_t receive(char* to, std::size_t size) {
    return uninterrupted([&] { return ::recv(descriptor_, to, size, 0); });
  }
  static void put(const std::optional<SocketPlace>& place, std::string& ip, int& port) {
    if (place) std::tie(ip, port) = *place;
  }

  int descriptor_;
  std::time_t read_ms_, write_ms_;
  std::array<char, 4096> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what of it was not yet read
};

}  // namespace

void Listener::lengthen_queue() const {
  ::listen(svr_sock_, kBacklog);
}

void Listener::close_after_answer() {
  closes = true;
}

bool Listener::process_and_close_socket(socket_t socket) {
  Connection connection(socket, read_timeout_sec_ * 1000, write_timeout_sec_ * 1000);
  const auto goes_on = [&] {
    for (std::time_t waited = 0; waited <= keep_alive_timeout_sec_ * 1000; waited += kLookMs) {
      if (svr_sock_ == INVALID_SOCKET) return false;
      if (connection.has_more(kLookMs)) return true;
    }
    return false;
  };
  bool answered = false;
  closes = false;
  for (std::size_t left = keep_alive_max_count_; left > 0 && !closes && goes_on(); --left) {
    bool closed = false;
    answered = process_request(connection, left == 1, closed, nullptr);
    if (!answered || closed) break;
  }
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return answered;
}

}  // namespace assay
