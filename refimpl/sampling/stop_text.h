// Stop strings, found as text arrives: the text before the first one that is whole, and nothing that may yet become one.
//
//   StopText stop({"\n\n", "User:"});
//   show(stop.push(stream.push(token)));      // held back: "User" until the next text says whether ":" follows
//   if (stop.stopped()) ...                   // the text ended before the stop string
//   show(stop.finish());                      // no more is coming: what was held back
//
// Text is looked at byte by byte, so that it ends at the same place however it is cut into tokens, many in one step
// included: at the stop string that is whole first; of several whole at once, the longest. A copy is a fork.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class StopText {
 public:
  // Throws Error::usage for an empty stop string. `keep`: the stop string is part of the text.
  explicit StopText(const std::vector<std::string>& stops, bool keep = false);

  // The text that is certain now. After a stop string: nothing more.
  std::string push(std::string_view text);
  std::string finish();
  bool stopped() const { return stopped_; }
  const std::string& which() const { return found_; }  // the stop string that ended the text

 private:
  struct Stop {
    std::string text;
    std::vector<std::size_t>
        fallback;             // of Knuth, Morris and Pratt: the longest beginning that also ends here
    std::size_t matched = 0;  // bytes of it that the text so far ends with
  };

  std::vector<Stop> stops_;
  bool keep_, stopped_ = false;
  std::string held_, found_;
};

}  // namespace assay
