// How many tokens a server knows, found by which ids it refuses.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace assay {

// `takes(id)`: the server does not refuse it. None: it takes whatever is named.
std::optional<std::size_t> find_vocabulary(const std::function<bool(std::size_t id)>& takes);

}  // namespace assay
