// Which files lie below a folder, without asking for each how long it is: of a hundred thousand small files
// that would be a third of the work.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/system/file.h"

namespace assay {

// As list_tree(), but for the sizes, which are 0.
std::vector<TreeEntry> list_names(const fs::path& root, std::span<const std::string_view> skip_folders = {});

// The same one by one, in no order: a million of them need not be held.
void visit_names(const fs::path& root, std::span<const std::string_view> skip_folders,
                 const std::function<void(TreeEntry&&)>& visit);

}  // namespace assay
