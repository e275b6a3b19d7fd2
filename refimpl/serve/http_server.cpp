#include "refimpl/serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <ctime>
#include <limits>
#include <optional>
#include <thread>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/serve/client_socket.h"
#include "refimpl/serve/listener.h"
#include "refimpl/serve/metrics.h"
#include "refimpl/serve/request_head.h"
#include "refimpl/serve/text_answer.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
using httplib::Request;
using httplib::Response;

constexpr auto kPatience = std::chrono::milliseconds(50);  // between looks at the client
// Clients give up idle connections after 4 or 5 seconds: who is asked on one that just closes sees an error.
constexpr std::time_t kIdleSeconds = 15, kReadSeconds = 10, kWriteSeconds = 10;
constexpr auto kLastWrites = std::chrono::milliseconds(200);
constexpr std::size_t kMostOfAConnection = 1'000'000;  // answers

// What an answer is refused with.
struct Refusal {
  int status;
  std::string_view type, code = "";
};
constexpr Refusal kBad = {400, "invalid_request_error"};
constexpr Refusal kNoKey = {401, "authentication_error", "invalid_api_key"};
constexpr Refusal kElsewhere = {403, "permission_error"};
constexpr Refusal kUnknown = {404, "invalid_request_error", "not_found"};
constexpr Refusal kNoModel = {404, "invalid_request_error", "model_not_found"};
constexpr Refusal kNoMethod = {405, "invalid_request_error"};
constexpr Refusal kNoLength = {411, "invalid_request_error"};
constexpr Refusal kTooLarge = {413, "invalid_request_error"};
constexpr Refusal kNoJson = {415, "invalid_request_error"};
constexpr Refusal kTooMuch = {429, "rate_limit_error", "queue_full"};
constexpr Refusal kFault = {500, "server_error"};
constexpr Refusal kEnding = {503, "server_error", "shutting_down"};
constexpr Refusal kTooSlow = {504, "server_error", "timeout"};

void refuse(Response& response, const Refusal& why, std::string_view message, std::string_view field = "") {
  response.status = why.status;
  response.set_content(dump_json(error_json(message, why.type, field, why.code), -1), "application/json");
}

void give(Response& response, const Json& document) {
  response.set_content(dump_json(document, -1), "application/json");
}

// The client's fault, or ours?
Refusal refusal_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::usage:
    case ErrorKind::input: return kBad;
    case ErrorKind::io: return kEnding;
    default: return kFault;
  }
}

void refuse(Response& response, const Error& error) {
  const std::string field = error.file();
  refuse(response, refusal_of(error), field.empty() ? error.line() : field + ": " + error.message(), field);
}

}  // namespace

class HttpServer::Routes {
 public:
  Routes(TextService& service, HttpOptions options) : service_(service), options_(std::move(options)) {
    set_limits();
    add_routes();
    const bool any = options_.port == 0;
    port_ = any                                                  ? server_.bind_to_any_port(options_.host)
            : server_.bind_to_port(options_.host, options_.port) ? options_.port
                                                                 : -1;
    if (port_ < 0)
      throw Error::io(fmt::format("cannot listen on {} port {}", options_.host, options_.port))
          .remedy("another port can be chosen with --port, 0 for any");
    server_.lengthen_queue();
  }

  void start() {
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      over_ = true;
    });
    // What stops before it runs would run for ever.
    while (!server_.is_running() && !over_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void stop() {
    if (thread_.joinable()) {
      std::this_thread::sleep_for(kLastWrites);
      ClientSocket::stop_reading_all(port_);
    }
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  int port() const { return port_; }
  void refuse_more() { ending_ = true; }
  std::size_t under_way() const { return under_way_; }

 private:
  struct Running;
  using Handle = void (Routes::*)(const Request&, Response&);

  void set_limits() {
    server_.new_task_queue = [threads = options_.connections] { return new httplib::ThreadPool(threads); };
    server_.set_payload_max_length(options_.body_bytes);
    server_.set_keep_alive_max_count(kMostOfAConnection);
    server_.set_keep_alive_timeout(kIdleSeconds);
    server_.set_read_timeout(kReadSeconds);
    server_.set_write_timeout(kWriteSeconds);
    server_.set_tcp_nodelay(true);
    // The library's own choice would let a second server have the same port.
    server_.set_socket_options([](::socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
  }

  void add_routes() {
    server_.set_pre_routing_handler(
        [this](const Request& request, Response& response) { return before_body(request, response); });
    post("/v1/completions", &Routes::complete);
    post("/v1/chat/completions", &Routes::chat);
    post("/tokenize", &Routes::tokenize);
    post("/detokenize", &Routes::detokenize);
    get("/v1/models", &Routes::models);
    get("/v1/models/(.+)", &Routes::one_model);
    get("/health", &Routes::health);
    get("/metrics", &Routes::metrics);
    server_.set_error_handler([](const Request&, Response& response) {
      if (!response.body.empty()) return;
      if (response.status == 404) return refuse(response, kUnknown, "there is no such route");
      if (response.status == 413) return refuse(response, kTooLarge, "the request's body is too large");
      const Refusal why = {response.status, response.status < 500 ? kBad.type : kFault.type};
      refuse(response, why, "the request cannot be read");
      response.set_header("Connection", "close");  // nobody knows where the next one begins
    });
    server_.set_exception_handler(
        [](const Request&, Response& response, std::exception_ptr fault) { refuse_fault(response, fault); });
    // Called when the answer was sent.
    server_.set_logger([](const Request&, const Response& response) {
      if (response.get_header_value("Connection") == "close") Listener::close_after_answer();
    });
    server_.set_post_routing_handler([this](const Request& request, Response& response) {
      metrics_.answered(is_route(request.path) ? request.path : "other", response.status);
    });
  }

  static void refuse_fault(Response& response, const std::exception_ptr& fault) {
    try {
      std::rethrow_exception(fault);
    } catch (const Error& error) {
      refuse(response, error);
    } catch (const std::bad_alloc&) {
      refuse(response, kFault, "out of memory");
    } catch (const std::exception& error) {
      refuse(response, kFault, fmt::format("internal fault: {}", error.what()));
    }
  }

  void get(const std::string& route, Handle handle) {
    server_.Get(route, [=, this](const Request& request, Response& response) {
      const bool open = route == "/health";
      if (open || admits(request, response)) (this->*handle)(request, response);
    });
  }
  void post(const std::string& route, Handle handle) {
    server_.Post(route, [=, this](const Request& request, Response& response) {
      if (!admits(request, response)) return;
      if (!request.get_header_value("Content-Type").starts_with("application/json"))
        return refuse(response, kNoJson, "the body has to be application/json");
      (this->*handle)(request, response);
    });
  }

  // Of a body, as its header has it; one beyond all numbers is longer than any.
  static std::uint64_t told_length(const Request& request) {
    return parse_u64(request.get_header_value("Content-Length"))
        .value_or(std::numeric_limits<std::uint64_t>::max());
  }

  // Bodies whose length is not told, or which would grow when unpacked, have no limit in the library: they are not read.
  httplib::Server::HandlerResponse before_body(const Request& request, Response& response) {
    const bool is_post = request.method == "POST";
    const std::size_t lengths = request.get_header_value_count("Content-Length");
    const std::string_view methods = methods_of(request.path);
    if (request.get_header_value_count("Host") > 1) {
      refuse(response, kBad, "more than one Host is named");
    } else if (methods.find(request.method) == std::string_view::npos) {
      response.set_header("Allow", std::string(methods));
      refuse(response, kNoMethod, fmt::format("this route answers {}", methods));
    } else if (lengths == 1 && !is_length(request.get_header_value("Content-Length"))) {
      refuse(response, kBad, "Content-Length is no length");
    } else if (request.has_header("Transfer-Encoding") || lengths > 1 || (is_post && lengths == 0)) {
      refuse(response, kNoLength, "the body's length has to be told, once, in Content-Length");
    } else if (request.has_header("Content-Encoding")) {
      refuse(response, kNoJson, "the body must not be packed");
    } else if (is_post && told_length(request) > options_.body_bytes) {
      refuse(response, kTooLarge, "the request's body is too large");
    } else {
      // The library reads no body of such a request: it is not to be taken for the next one.
      if (!is_post && lengths > 0) response.set_header("Connection", "close");
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.set_header("Connection", "close");
    return httplib::Server::HandlerResponse::Handled;
  }

  bool admits(const Request& request, Response& response) const {
    if (!options_.keys.admits(request.get_header_value("Authorization"))) {
      response.set_header("WWW-Authenticate", "Bearer");
      refuse(response, kNoKey, "a key has to be given, as Authorization: Bearer KEY");
      return false;
    }
    if (!options_.keys.wanted() && !names_this_machine(request.get_header_value("Host"))) {
      refuse(response, kElsewhere, "the Host asked for is not this machine");
      return false;
    }
    return true;
  }

  ClientSocket socket_of(const Request& request) const {
    return {request.remote_addr, request.remote_port, port_};
  }

  bool names_model(const std::string& model, Response& response) const {
    if (model.empty() || model == service_.model_name()) return true;
    refuse(response, kNoModel,
           fmt::format("the model '{}' is not served here, '{}' is",
                       escape_for_terminal(model.substr(0, 200)), service_.model_name()),
           "model");
    return false;
  }

  // ---- texts

  void complete(const Request& request, Response& response) {
    const TextRequest asked = parse_completion(request.body, options_.limits);
    if (!names_model(asked.model, response)) return;
    answer(request, response, asked, service_.prompts_of(asked), AnswerKind::completion);
  }

  void chat(const Request& request, Response& response) {
    const ChatRequestBody asked = parse_chat(request.body, options_.limits);
    if (!names_model(asked.text.model, response)) return;
    answer(request, response, asked.text, {service_.prompt_of(asked)}, AnswerKind::chat);
  }

  AnswerHead head_of(AnswerKind kind) {
    return {.kind = kind,
            .id = fmt::format("{}-{}", kind == AnswerKind::chat ? "chatcmpl" : "cmpl", ++answers_),
            .model = service_.model_name(),
            .fingerprint = service_.fingerprint(),
            .created = static_cast<std::int64_t>(std::time(nullptr))};
  }

  void answer(const Request& request, Response& response, const TextRequest& asked,
              std::vector<TextService::Prompt> prompts, AnswerKind kind);
  bool wait(Running& running, Response& response);
  bool send_events(const std::shared_ptr<Running>& running, httplib::DataSink& sink);

  // ---- all the rest

  void tokenize(const Request& request, Response& response) {
    const TokenizeRequest asked = parse_tokenize(request.body);
    if (!names_model(asked.model, response)) return;
    std::vector<TokenId> ids;
    if (asked.messages.empty()) {
      ids = service_.tokenizer_for("prompt").encode(asked.prompt, {.add_special = asked.add_special});
    } else {
      ids = service_
                .prompt_of({.messages = asked.messages,
                            .tools = asked.tools,
                            .add_generation_prompt = asked.add_generation_prompt})
                .tokens;
    }
    Json document = {{"count", ids.size()}, {"max_model_len", service_.context()}, {"tokens", ids}};
    for (const TokenId id : ids)
      if (asked.pieces) document["token_strs"].push_back(service_.names().name(id, false));
    give(response, document);
  }

  void detokenize(const Request& request, Response& response) {
    const DetokenizeRequest asked = parse_detokenize(request.body);
    if (!names_model(asked.model, response)) return;
    const Tokenizer& tokenizer = service_.tokenizer_for("tokens");
    service_.check_names(asked.tokens, "tokens");
    TokenStream stream(tokenizer, false);
    std::string text;
    for (const TokenId id : asked.tokens) text += stream.push(id);
    give(response, {{"prompt", text + stream.finish()}});
  }

  Json model() const {
    return {{"id", service_.model_name()},
            {"object", "model"},
            {"created", began_},
            {"owned_by", "assay"},
            {"max_model_len", service_.context()}};
  }
  void models(const Request&, Response& response) {
    give(response, {{"object", "list"}, {"data", Json::array({model()})}});
  }
  void one_model(const Request& request, Response& response) {
    if (request.matches[1] != service_.model_name())
      return refuse(response, kNoModel, "there is no such model: /v1/models names the one that is served");
    give(response, model());
  }

  void health(const Request&, Response& response) {
    if (service_.engine().broken()) return refuse(response, kFault, "the engine has ended");
    if (ending_) return refuse(response, kEnding, "the server is ending");
    give(response, {{"status", "ok"}});
  }

  void metrics(const Request&, Response& response) {
    response.set_content(metrics_.text(service_.engine().state()), "text/plain; version=0.0.4");
  }

  TextService& service_;
  HttpOptions options_;
  ServerMetrics metrics_;
  const std::int64_t began_ = static_cast<std::int64_t>(std::time(nullptr));
  std::atomic<std::size_t> answers_ = 0, under_way_ = 0;
  std::atomic<bool> ending_ = false, over_ = false;
  int port_ = -1;
  Listener server_;
  std::thread thread_;
};

// A request whose texts are being made.
struct HttpServer::Routes::Running {
  Running(Routes& routes, TextAnswer given, ClientSocket client)
      : routes(routes), answer(std::move(given)), socket(client), until(began + routes.options_.time) {
    ++routes.under_way_;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    routes.metrics_.generated_tokens += answer.usage().completion_tokens;
    routes.metrics_.whole_answer.add(seconds());
    --routes.under_way_;
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began).count(); }
  bool late() const { return Clock::now() > until; }
  // As TextAnswer::take.
  bool take(std::chrono::milliseconds patience) {
    const bool came = answer.take(patience);
    if (came && !std::exchange(started, true)) routes.metrics_.first_token.add(seconds());
    return came;
  }

  Routes& routes;
  TextAnswer answer;
  ClientSocket socket;
  const Clock::time_point began = Clock::now();
  const Clock::time_point until;
  bool started = false;
};

void HttpServer::Routes::answer(const Request& request, Response& response, const TextRequest& asked,
                                std::vector<TextService::Prompt> prompts, AnswerKind kind) {
  if (ending_) return refuse(response, kEnding, "the server is ending");
  auto running = std::make_shared<Running>(
      *this, TextAnswer(service_, asked, std::move(prompts), head_of(kind)), socket_of(request));
  if (!running->answer.ask()) {
    response.set_header("Retry-After", "1");
    return refuse(response, kTooMuch, "too many requests are waiting");
  }
  if (!wait(*running, response)) return;
  if (!asked.stream) {
    while (!running->answer.over())
      if (!wait(*running, response)) return;
    // By a provider: it is under way until it was sent.
    const auto whole = std::make_shared<const std::string>(running->answer.whole());
    return response.set_content_provider(
        whole->size(), "application/json",
        [running, whole](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
          return sink.write(whole->data() + offset, length);
        });
  }
  response.set_header("Cache-Control", "no-cache");
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, running](std::size_t, httplib::DataSink& sink) { return send_events(running, sink); });
}

// For something to come. False: nothing more will, and the response says why. Looks at clock and client each time: while
// tokens come without a pause, too.
bool HttpServer::Routes::wait(Running& running, Response& response) {
  for (;;) {
    if (running.late()) {
      refuse(response, kTooSlow, "the answer took too long");
      return false;
    }
    if (running.socket.gone()) {
      ++metrics_.clients_gone;
      refuse(response, kBad, "the client has left");  // which nobody reads
      return false;
    }
    if (running.take(kPatience)) return true;
  }
}

// As much as is there by now. False: the client has left.
bool HttpServer::Routes::send_events(const std::shared_ptr<Running>& running, httplib::DataSink& sink) {
  std::string text;
  bool over = false;
  try {
    if (running->started && !running->answer.over() && running->late()) {
      text = running->answer.events() + TextAnswer::failed_event("the answer took too long", kTooSlow.type);
      over = true;
    } else {
      text = running->answer.events();  // of what was taken to know that all is well
      if (text.empty() && !running->answer.over()) running->take(kPatience);
      while (!running->answer.over() && running->take(std::chrono::milliseconds(0))) continue;
      text += running->answer.events();
      over = running->answer.over();
    }
  } catch (const Error& error) {
    text += TextAnswer::failed_event(error.message(), refusal_of(error).type);
    over = true;
  } catch (const std::exception& fault) {  // which the library would not catch here
    text += TextAnswer::failed_event(fmt::format("internal fault: {}", fault.what()), kFault.type);
    over = true;
  }
  if (running->socket.gone() || (!text.empty() && !sink.write(text.data(), text.size()))) {
    ++metrics_.clients_gone;
    return false;
  }
  if (over) sink.done();
  return true;
}

HttpServer::HttpServer(TextService& service, HttpOptions options)
    : routes_(std::make_unique<Routes>(service, std::move(options))) {}
HttpServer::~HttpServer() {
  stop();
}
int HttpServer::port() const {
  return routes_->port();
}
void HttpServer::start() {
  routes_->start();
}
void HttpServer::refuse_more() {
  routes_->refuse_more();
}
std::size_t HttpServer::answers_under_way() const {
  return routes_->under_way();
}
void HttpServer::stop() {
  routes_->stop();
}

}  // namespace assay
