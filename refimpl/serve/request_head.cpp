#include "refimpl/serve/request_head.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

struct Route {
  std::string_view path, methods;
};
constexpr std::string_view kPosted = "POST", kGot = "GET, HEAD", kAnywhere = "GET, HEAD, POST";
constexpr std::string_view kOneModel = "/v1/models/";
constexpr std::array<Route, 7> kRoutes = {{{"/v1/completions", kPosted},
                                           {"/v1/chat/completions", kPosted},
                                           {"/tokenize", kPosted},
                                           {"/detokenize", kPosted},
                                           {"/v1/models", kGot},
                                           {"/health", kGot},
                                           {"/metrics", kGot}}};

const Route* route_of(std::string_view path) {
  const auto found =
      std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& each) { return each.path == path; });
  return found == kRoutes.end() ? nullptr : &*found;
}

bool all_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

}  // namespace

bool is_route(std::string_view path) {
  return route_of(path) != nullptr;
}

std::string_view methods_of(std::string_view path) {
  if (const Route* route = route_of(path)) return route->methods;
  return path.size() > kOneModel.size() && path.starts_with(kOneModel) ? kGot : kAnywhere;
}

bool names_this_machine(std::string_view host) {
  if (host.starts_with('[')) return host == "[::1]" || host.starts_with("[::1]:");
  host = host.substr(0, host.find(':'));
  return host.empty() || host == "localhost" || (host.starts_with("127.") && all_of(host, "0123456789."));
}

bool is_length(std::string_view text) {
  return !text.empty() && all_of(text, "0123456789");
}

}  // namespace assay
