// Memory that is given back before its owner ends: the text behind a parser, the entries of a list that have
// moved to another one. Inputs of 100 MB would else be held twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace assay {

// The pages that lie wholly in [begin, begin + bytes) go back to the system; what they held is lost (they read
// as zeros). The allocation stays.
void forget_pages(void* begin, std::size_t bytes);

// From now on, what is freed of a megabyte and more goes back to the system at once. glibc else takes the size of the
// largest block freed so far as the size below which freed memory is kept: after a text of 30 MB, lists of 20 stay.
void give_back_what_is_freed();

// Moves the last `count` elements of `from` to the end of `to`, in order, each as `make` turns it into one of
// that list. The old list shrinks as the new one grows: from its end, where a vector's elements can go.
template <typename To, typename From, typename Make>
void drain_tail(std::vector<From>& from, std::size_t count, std::vector<To>& to, Make&& make) {
  constexpr std::size_t kAtOnce = (std::size_t{1} << 18) / sizeof(From) + 1;
  const std::size_t before = to.size(), left = from.size() - count;
  while (from.size() > left) {
    to.push_back(make(std::move(from.back())));
    from.pop_back();
    if (from.size() % kAtOnce == 0 || from.size() == left)
      forget_pages(from.data() + from.size(), (from.capacity() - from.size()) * sizeof(From));
  }
  std::reverse(to.begin() + static_cast<std::ptrdiff_t>(before), to.end());
}

// All of them, as a list of its own.
template <typename To, typename From, typename Make>
std::vector<To> drain(std::vector<From>& from, Make&& make) {
  std::vector<To> to;
  to.reserve(from.size());
  drain_tail(from, from.size(), to, std::forward<Make>(make));
  std::vector<From>().swap(from);
  return to;
}

// A text that is read once, from its beginning: what has been read goes back to the system, a quarter of a
// megabyte at a time.
class PassingText {
 public:
  PassingText(char* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  // Nothing before `position` is looked at again.
  void passed(std::size_t position) {
    if (position < forgotten_ + kAtOnce || position > bytes_) return;
    forget_pages(begin_ + forgotten_, position - forgotten_);
    forgotten_ = position;
  }

 private:
  static constexpr std::size_t kAtOnce = std::size_t{1} << 18;
  char* begin_;
  std::size_t bytes_;
  std::size_t forgotten_ = 0;
};

}  // namespace assay
