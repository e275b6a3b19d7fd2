// --tensor-type REGEX=TYPE and --tensor-types FILE: types of a GGUF's tensors chosen by hand, in place of the
// mix. The first expression that is found in a tensor's name decides, as llama-quantize has it; rows that are
// no whole number of blocks still fall back to a type that fits.
//
//   attn_v=q8_0          a line, or a word of the file; '#' begins a comment
//   ffn_down_exps=q5_k
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/element_type.h"
#include "core/system/file.h"
#include "core/system/name_filter.h"

namespace assay {

class TensorRecipe {
 public:
  // `file`: may be empty. Throws Error::usage for an entry that is none, Error::input for one in the file.
  TensorRecipe(const std::vector<std::string>& entries, const fs::path& file);

  bool empty() const { return entries_.empty(); }
  std::optional<ElementType> type_of(std::string_view tensor) const;
  // Throws Error::refused, naming the entry, where one is found in none of the names.
  void check_used(const std::vector<std::string>& tensors) const;

 private:
  struct Entry {
    std::string text;
    NameFilter names;
    ElementType type;
  };
  static Entry parse(const std::string& text);
  std::vector<Entry> entries_;
};

}  // namespace assay
