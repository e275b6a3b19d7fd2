#include "refimpl/serve/client_socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace assay {
namespace {

using Place = SocketPlace;
using NameOf = int (*)(int, sockaddr*, socklen_t*);

std::optional<Place> place_of(NameOf name_of, int descriptor) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (name_of(descriptor, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return Place(text.data(), ntohs(v4.sin_port));
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return Place(text.data(), ntohs(v6.sin6_port));
}

}  // namespace

std::optional<SocketPlace> peer_of(int descriptor) {
  return place_of(getpeername, descriptor);
}
std::optional<SocketPlace> own_place_of(int descriptor) {
  return place_of(getsockname, descriptor);
}

namespace {

template <class Use>
void for_each_connection(int own_port, const Use& use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    const int descriptor = std::atoi(entry->d_name);
    if (descriptor <= 2) continue;
    const auto peer = peer_of(descriptor);
    const auto own = own_place_of(descriptor);
    if (peer && own && own->second == own_port) use(descriptor, *peer);
  }
}

}  // namespace

ClientSocket::ClientSocket(const std::string& address, int port, int own_port) {
  for_each_connection(own_port, [&](int descriptor, const Place& peer) {
    if (peer == Place(address, port)) descriptor_ = descriptor;
  });
}

void ClientSocket::stop_reading_all(int own_port) {
  for_each_connection(own_port, [](int descriptor, const Place&) { shutdown(descriptor, SHUT_RD); });
}

bool ClientSocket::gone() const {
  if (descriptor_ < 0) return false;
  pollfd state = {.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace assay
