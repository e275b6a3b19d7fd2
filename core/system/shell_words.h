// Words as a shell reads them: for lines that are printed to be run.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay {

// One word, whatever it holds, on one line and in plain ASCII where a terminal could be misled: as it is, in
// '…', or in $'…' (bash, zsh, ksh, POSIX.1-2024).
std::string shell_word(std::string_view text);
std::string shell_line(std::span<const std::string> words);

}  // namespace assay
