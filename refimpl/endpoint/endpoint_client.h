// A client of such a server, over one connection that is kept.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "refimpl/endpoint/endpoint_url.h"

namespace assay {

struct EndpointOptions {
  std::string key;       // of Authorization: Bearer; empty: none is sent
  double seconds = 600;  // without a byte of the answer
};

struct HttpAnswer {
  int status = 0;       // 0: there was no answer
  std::string body;     // of one that was not streamed to a taker
  std::string failure;  // of the connection, in words
  bool ok() const { return status == 200 && failure.empty(); }
  std::string why() const;  // where it is not ok
};

class EndpointClient {
 public:
  EndpointClient(const EndpointUrl& url, const EndpointOptions& options);
  EndpointClient(EndpointClient&&) noexcept;
  ~EndpointClient();

  // `route` as from "/v1" on.
  HttpAnswer get(std::string_view route);
  HttpAnswer post(std::string_view route, const std::string& body);
  // What comes of an answer of status 200 is given to `take` as it comes; false ends it.
  HttpAnswer post(std::string_view route, const std::string& body,
                  const std::function<bool(std::string_view)>& take);
  // Ends a request under way in another thread.
  void stop();

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// What the server says of a model, in /v1/models.
struct ServedModel {
  std::string name;   // the one wanted, else the first; "": none is named
  bool named = true;  // false: models are named, and the one wanted is none of them
  std::optional<std::size_t>
      context;         // tokens of a prompt and of what is written behind it, where that is told
  std::string others;  // names, where the one wanted is none of them
};
// Throws Error::io where nobody answers.
ServedModel served_model(EndpointClient& client, const std::string& wanted);
// Throws Error::usage where the server does not have it: to be asked where it refuses to answer.
void require_served(const ServedModel& model);
// Throws Error::usage where the answer says that a key is wanted, or another one.
void require_key(const HttpAnswer& answer);

// The first key of the file. Throws Error::input where there is none.
std::string read_key(const std::string& file);

}  // namespace assay
