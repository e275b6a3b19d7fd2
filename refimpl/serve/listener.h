// The HTTP library's server, with the connections' loop our own: the library throws away what it has read beyond a request,
// and a client that sends two at once gets one answer.
#pragma once

#include <httplib.h>

namespace assay {

class Listener : public httplib::Server {
 public:
  // The library's own queue of connections to be accepted is short.
  void lengthen_queue() const;
  // Of the connection whose request this thread answers: no further request is read from it. To be called before
  // the answer is over, by one that says "Connection: close".
  static void close_after_answer();

 private:
  bool process_and_close_socket(socket_t socket) override;
};

}  // namespace assay
