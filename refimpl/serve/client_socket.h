// Is the client of a request still there? The HTTP library does not say until something is sent, and a text that nobody
// waits for is not to be computed to its end.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace assay {

using SocketPlace = std::pair<std::string, int>;  // address and port
std::optional<SocketPlace> peer_of(int descriptor);
std::optional<SocketPlace> own_place_of(int descriptor);

class ClientSocket {
 public:
  // The connection from that address and port to `own_port`, found among those this process has open.
  ClientSocket(const std::string& address, int port, int own_port);
  // It has closed its side, whole or its sending half, as a browser or curl does that goes away. Where the connection
  // was not found: no.
  bool gone() const;
  // Of all connections to that port: whoever waits for a further request there sees that none will come.
  static void stop_reading_all(int own_port);

 private:
  int descriptor_ = -1;  // the library's, which closes it after the answer
};

}  // namespace assay
