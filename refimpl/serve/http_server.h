// The model's door: HTTP as OpenAI's API has it (docs/serving.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "refimpl/endpoint/api_keys.h"
#include "refimpl/serve/text_service.h"

namespace assay {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any that is free
  ApiKeys keys;
  std::size_t body_bytes = 8u << 20;
  std::size_t connections = 128;                               // served at once
  std::chrono::milliseconds time = std::chrono::seconds(600);  // of one answer
  TextLimits limits;
};

class HttpServer {
 public:
  // Throws Error::io where host and port cannot be listened to.
  HttpServer(TextService& service, HttpOptions options);
  ~HttpServer();  // stops
  int port() const;
  void start();  // answers, in threads of its own
  // New texts are refused with 503; those under way go on.
  void refuse_more();
  std::size_t answers_under_way() const;
  void stop();

 private:
  class Routes;
  std::unique_ptr<Routes> routes_;
};

}  // namespace assay
