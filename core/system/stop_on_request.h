// A server's way to end: the first signal is a request.
#pragma once

namespace assay {

// While one lives, the first SIGINT, SIGTERM or SIGHUP only asks: asked_to_stop() is true, interrupted() is not, and what
// is under way may end in its own time. The next one is as the first is elsewhere.
class StopOnRequest {
 public:
  StopOnRequest();
  StopOnRequest(const StopOnRequest&) = delete;
  StopOnRequest& operator=(const StopOnRequest&) = delete;
  ~StopOnRequest();
};
bool asked_to_stop();

}  // namespace assay
