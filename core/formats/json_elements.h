// One long list in a JSON document, taken element by element: a document of all of it takes ten times its text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/system/memory_pages.h"

namespace assay {

// A document whose member `key` is an array: the document with that array empty, and where the array stands.
// Of any other document, the whole of it, and no array.
struct SplitJson {
  std::string rest;
  std::size_t begin = 0, end = 0;  // in the text, from '[' to behind ']'
};
// Throws Error::input with an offset where the text is not JSON, or is deeper than `max_depth`.
SplitJson split_array(std::string_view text, std::string_view key, int max_depth);

// Calls `element` with the text of each object in `array`, and with "null" for what is no object. `passing`, if
// any, is the array's memory: it is told what has been read.
void for_each_object(std::string_view array, int max_depth,
                     const std::function<void(std::string_view)>& element, PassingText* passing = nullptr);

}  // namespace assay
