// The process a plugin lives in: loads it, and runs its kernels on the cases it is asked for.
#pragma once

#include <filesystem>

namespace assay {

// What the process that examines agrees on with the one that runs.
inline constexpr int kWorkerSocket = 3;
inline constexpr const char* kWorkerCommand = "plugin-worker";
// Environment of the worker: bytes of private memory on top of what it starts with; 0 or absent: unlimited.
inline constexpr const char* kWorkerMemory = "ASSAY_PLUGIN_MEMORY";

// Answers requests on kWorkerSocket until it is closed; the exit code. Throws Error::usage where there is no
// such socket.
int serve_plugin(const std::filesystem::path& library);

}  // namespace assay
