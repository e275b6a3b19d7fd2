#include "tests/support/range_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "tests/support/support.h"

namespace assay::test {
namespace {

void answer(int connection, const std::string& contents) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = ::read(connection, buffer, sizeof buffer);
    if (n <= 0) return;
    request.append(buffer, static_cast<std::size_t>(n));
  }
  unsigned long long first = 0, last = contents.size() - 1;
  std::string status = "200 OK", extra;
  if (const auto range = request.find("Range: bytes="); range != std::string::npos) {
    if (std::sscanf(request.c_str() + range, "Range: bytes=%llu-%llu", &first, &last) < 1) return;
    last = std::min<unsigned long long>(last, contents.size() - 1);
    status = "206 Partial Content";
    extra = "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
            std::to_string(contents.size()) + "\r\n";
  }
  const std::string body = contents.substr(first, last - first + 1);
  const std::string reply = "HTTP/1.1 " + status +
                            "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
                            "\r\n" + extra + "\r\n" + body;
  for (std::size_t done = 0; done < reply.size();) {
    const ssize_t n = ::send(connection, reply.data() + done, reply.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

RangeServer::RangeServer(const std::filesystem::path& file) : contents_(read_file(file)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, 8) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("cannot listen on loopback");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

RangeServer::~RangeServer() {
  thread_.request_stop();
  thread_.join();
  ::close(listener_);
}

void RangeServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd waiting{listener_, POLLIN, 0};
    if (::poll(&waiting, 1, 50) <= 0) continue;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection, contents_);
    ::close(connection);
  }
}

}  // namespace assay::test
