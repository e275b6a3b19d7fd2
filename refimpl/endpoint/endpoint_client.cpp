#include "refimpl/endpoint/endpoint_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/endpoint/stream_chunk.h"

namespace assay {
namespace {

constexpr std::time_t kConnectSeconds = 10;
constexpr std::size_t kMostOfAnAnswer = 256 << 20;

std::string words_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection: return "cannot connect";
    case httplib::Error::ConnectionTimeout: return "cannot connect in time";
    case httplib::Error::Read: return "the connection ended, or nothing came in time";
    case httplib::Error::Write: return "the connection ended while the request was sent";
    case httplib::Error::Canceled: return "cancelled";
    case httplib::Error::SSLConnection: return "no TLS connection can be made (an http:// server?)";
    case httplib::Error::SSLServerVerification: return "the server's certificate is not trusted";
    default: return httplib::to_string(error);
  }
}

}  // namespace

std::string HttpAnswer::why() const {
  if (!failure.empty()) return failure;
  return fmt::format("status {}: {}", status, error_message_of(body));
}

struct EndpointClient::Connection {
  Connection(const EndpointUrl& url, const EndpointOptions& options)
      : base(url.base), client(url.origin), key(options.key) {
    client.set_connection_timeout(kConnectSeconds);
    client.set_read_timeout(std::chrono::milliseconds(static_cast<std::int64_t>(options.seconds * 1000)));
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
    if (!client.is_valid())
      throw Error::usage("no URL that can be asked: " + escape_for_terminal(url.origin));
  }

  HttpAnswer send(std::string_view method, std::string_view route, const std::string& body,
                  const std::function<bool(std::string_view)>& take) {
    HttpAnswer answer;
    httplib::Request request;
    request.method = method;
    request.path = base + std::string(route);
    if (!key.empty()) request.set_header("Authorization", "Bearer " + key);
    if (!body.empty()) request.set_header("Content-Type", "application/json");
    request.body = body;
    request.response_handler = [&](const httplib::Response& response) {
      answer.status = response.status;
      return true;
    };
    request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
      if (take && answer.status == 200) return take({data, size});
      answer.body.append(data, size);
      return answer.body.size() <= kMostOfAnAnswer;
    };
    const bool kept = std::exchange(asked, true);
    httplib::Result result = client.send(request);
    // A connection that was kept may have been closed meanwhile, which is seen when it is used: nothing came, so it is
    // asked once more over a new one.
    const bool nothing = !result && answer.status == 0 && answer.body.empty();
    if (kept && nothing &&
        (result.error() == httplib::Error::Read || result.error() == httplib::Error::Write))
      result = client.send(request);
    if (!result) answer.failure = words_of(result.error());
    return answer;
  }

  std::string base;
  httplib::Client client;
  std::string key;
  bool asked = false;  // before, over the connection that is kept
};

EndpointClient::EndpointClient(const EndpointUrl& url, const EndpointOptions& options)
    : connection_(std::make_unique<Connection>(url, options)) {}
EndpointClient::EndpointClient(EndpointClient&&) noexcept = default;
EndpointClient::~EndpointClient() = default;

HttpAnswer EndpointClient::get(std::string_view route) {
  return connection_->send("GET", route, "", {});
}

HttpAnswer EndpointClient::post(std::string_view route, const std::string& body) {
  return connection_->send("POST", route, body, {});
}

HttpAnswer EndpointClient::post(std::string_view route, const std::string& body,
                                const std::function<bool(std::string_view)>& take) {
  return connection_->send("POST", route, body, take);
}

void EndpointClient::stop() {
  connection_->client.stop();
}

ServedModel served_model(EndpointClient& client, const std::string& wanted) {
  ServedModel model{.name = wanted, .context = {}, .others = {}};
  const HttpAnswer answer = client.get("/v1/models");
  if (answer.status == 0)
    throw Error::io("the server does not answer: " + answer.failure).remedy("is it running there?");
  if (!answer.ok()) return model;
  const ParsedJson document = parse_json(answer.body, "/v1/models");
  if (!document.is_object() || !document.contains("data") || !document["data"].is_array()) return model;
  constexpr std::size_t kMostNamed = 8;
  std::string others;
  std::size_t count = 0;
  for (const ParsedJson& entry : document["data"]) {
    if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string()) continue;
    const std::string id = entry["id"].get<std::string>();
    if (model.name.empty() || model.name == id) {
      model.name = id;
      if (entry.contains("max_model_len") && entry["max_model_len"].is_number_unsigned())
        model.context = entry["max_model_len"].get<std::size_t>();
      return model;
    }
    if (++count > kMostNamed) continue;
    others += fmt::format("{}\"{}\"", others.empty() ? "" : ", ", escape_for_terminal(id.substr(0, 100)));
  }
  if (count > kMostNamed) others += fmt::format(" and {} more", count - kMostNamed);
  model.named = others.empty();
  model.others = std::move(others);
  return model;
}

void require_served(const ServedModel& model) {
  if (model.named) return;
  throw Error::usage(fmt::format("the server has no model \"{}\"", escape_for_terminal(model.name)))
      .remedy("it names " + model.others);
}

void require_key(const HttpAnswer& answer) {
  if (answer.status == 401 || answer.status == 403)
    throw Error::usage("the server: " + answer.why()).remedy("give its key by --api-key-file FILE");
}

std::string read_key(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error::input("cannot be read").in(file);
  for (std::string line; std::getline(in, line);) {
    const std::string_view key = trim(line);
    if (key.empty()) continue;
    for (const char c : key)
      if (c <= ' ' || c == 127) throw Error::input("holds what is no key").in(file);
    return std::string(key);
  }
  throw Error::input("holds no key").in(file);
}

}  // namespace assay
