// Whole messages over a socket.
#pragma once

#include <cstddef>
#include <span>

namespace assay {

// False where the other side is gone.
bool send_all(int socket, std::span<const std::byte> bytes);
// Waits for all of them.
bool receive_all(int socket, std::span<std::byte> bytes);

}  // namespace assay
