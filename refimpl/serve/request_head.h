// What can be told of a request before its body is read.
#pragma once

#include <string_view>

namespace assay {

// One of those with a fixed path.
bool is_route(std::string_view path);
// As the Allow header has them: "GET, HEAD". Of a route that there is not all those of any, so that it is looked for.
std::string_view methods_of(std::string_view path);

// Not so where a page that was loaded from elsewhere has its own name point here. "127.example.org" is such a name.
bool names_this_machine(std::string_view host);

// Of a body, in digits; one beyond all numbers is one, too.
bool is_length(std::string_view text);

}  // namespace assay
