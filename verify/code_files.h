// Files that can run code when a model is loaded. They are named, never opened as what they are: a denylist
// of pickle opcodes keeps losing to new tricks, so "contains pickle: cannot be proven safe" is the honest
// verdict.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay {

// `name` relative to the root; looks at the name and, for what may be an archive in disguise, at the bytes.
// `remote_code`: a file beside it has loaders run *.py files of its folder (verify/remote_code.h).
Findings find_code(const std::string& name, const fs::path& path, bool remote_code);

// The two halves of it. By the name alone; nullopt where the bytes have to be looked at. And by the file's
// first kCodeLook bytes, or all there are of it.
inline constexpr std::size_t kCodeLook = 4096;
std::optional<Findings> code_by_name(const std::string& name, bool remote_code);
Findings code_by_content(const std::string& name, const fs::path& path, std::span<const std::byte> head,
                         std::uint64_t size);

}  // namespace assay
