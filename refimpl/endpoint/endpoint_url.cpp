#include "refimpl/endpoint/endpoint_url.h"

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

Error bad_url(std::string_view text, const std::string& what) {
  return Error::usage(what + ": " + escape_for_terminal(text.substr(0, 200)))
      .remedy("give http://HOST:PORT or https://HOST");
}

bool cut_end(std::string_view& path, std::string_view end) {
  if (!path.ends_with(end)) return false;
  path.remove_suffix(end.size());
  return true;
}

}  // namespace

std::string_view route_of(EndpointKind kind) {
  return kind == EndpointKind::chat ? "/v1/chat/completions" : "/v1/completions";
}

EndpointUrl parse_endpoint_url(std::string_view text) {
  const std::size_t scheme = text.starts_with("http://") ? 7 : text.starts_with("https://") ? 8 : 0;
  if (scheme == 0) throw bad_url(text, "a URL begins with http:// or https://");
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127 || c == '@'; };
  if (std::any_of(text.begin(), text.end(), odd) || text.find_first_of("?#") != std::string_view::npos)
    throw bad_url(text, "no URL of a server, which has no name, blanks, query or fragment");
  const std::size_t slash = std::min(text.find('/', scheme), text.size());
  const std::string_view host = text.substr(scheme, slash - scheme);
  if (host.empty() || host.front() == ':') throw bad_url(text, "a URL names a host");
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.back() != ']') {
    const auto port = parse_u64(host.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) throw bad_url(text, "no port");
  }
  EndpointUrl url{std::string(text.substr(0, slash)), {}, {}};
  std::string_view path = text.substr(slash);
  while (cut_end(path, "/")) {
  }
  for (const EndpointKind kind : {EndpointKind::completions, EndpointKind::chat})
    if (cut_end(path, route_of(kind))) url.kind = kind;
  if (!url.kind) cut_end(path, "/v1");
  url.base = path;
  return url;
}

}  // namespace assay
