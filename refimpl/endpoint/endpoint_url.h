// Where a server of OpenAI's API is: "http://127.0.0.1:8000", with or without "/v1" or the whole route behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

enum class EndpointKind : std::uint8_t { completions, chat };

struct EndpointUrl {
  std::string origin;                // "http://127.0.0.1:8000"
  std::string base;                  // what stands before "/v1" in every route; mostly empty
  std::optional<EndpointKind> kind;  // where the whole route was given
};

// Throws Error::usage.
EndpointUrl parse_endpoint_url(std::string_view text);

std::string_view route_of(EndpointKind kind);  // "/v1/completions"

}  // namespace assay
