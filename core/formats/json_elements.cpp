#include "core/formats/json_elements.h"

#include "core/formats/json_events.h"
#include "core/system/error.h"

namespace assay {
namespace {

// What both readers below do with events that do not concern them.
class Depth {
 public:
  void null() {}
  void boolean(bool) {}
  void whole_number(std::uint64_t) {}
  void other_number(double, std::string_view) {}
  void string(std::string_view) {}
  void key(std::string_view) {}

 protected:
  int depth_ = 0;  // containers open
};

class ArrayFinder : public Depth {
 public:
  ArrayFinder(std::string_view text, std::string_view key, int max_depth)
      : reader_(text, max_depth, *this), wanted_(key) {}

  void find(SplitJson& split) {
    reader_.read();
    split.begin = begin_;
    split.end = end_;
  }

  void key(std::string_view name) {
    if (depth_ == 1) is_next_ = name == wanted_;
  }
  void start_object() { ++depth_; }
  void end_object() { --depth_; }
  void start_array() {
    if (depth_++ == 1 && is_next_ && end_ == 0) begin_ = reader_.position() - 1, inside_ = true;
  }
  void end_array() {
    if (--depth_ == 1 && std::exchange(inside_, false)) end_ = reader_.position();
  }
  [[noreturn]] void fail(std::string message) const {
    throw Error::input(std::move(message)).at(reader_.position());
  }

 private:
  JsonEventReader<ArrayFinder> reader_;
  const std::string_view wanted_;
  bool is_next_ = false;  // the value to come is the wanted member's
  bool inside_ = false;
  std::uint64_t begin_ = 0, end_ = 0;
};

class ObjectReader : public Depth {
 public:
  ObjectReader(std::string_view array, int max_depth, const std::function<void(std::string_view)>& element,
               PassingText* passing)
      : reader_(array, max_depth, *this), array_(array), element_(element), passing_(passing) {}

  void read() { reader_.read(); }

  void null() { other(); }
  void boolean(bool) { other(); }
  void whole_number(std::uint64_t) { other(); }
  void other_number(double, std::string_view) { other(); }
  void string(std::string_view) { other(); }
  void start_object() {
    if (depth_++ == 1) begin_ = reader_.position() - 1;
  }
  void end_object() {
    if (--depth_ != 1) return;
    element_(array_.substr(begin_, reader_.position() - begin_));
    if (passing_ != nullptr) passing_->passed(reader_.position());
  }
  void start_array() {
    other();
    ++depth_;
  }
  void end_array() { --depth_; }
  [[noreturn]] void fail(std::string message) const {
    throw Error::input(std::move(message)).at(reader_.position());
  }

 private:
  void other() {
    if (depth_ == 1) element_("null");
  }

  JsonEventReader<ObjectReader> reader_;
  const std::string_view array_;
  const std::function<void(std::string_view)>& element_;
  PassingText* const passing_;
  std::uint64_t begin_ = 0;
};

}  // namespace

SplitJson split_array(std::string_view text, std::string_view key, int max_depth) {
  SplitJson split;
  ArrayFinder(text, key, max_depth).find(split);
  if (split.end == 0) {
    split.rest = text;
    return split;
  }
  split.rest.reserve(text.size() - (split.end - split.begin) + 2);
  split.rest.append(text.substr(0, split.begin)).append("[]").append(text.substr(split.end));
  return split;
}

void for_each_object(std::string_view array, int max_depth,
                     const std::function<void(std::string_view)>& element, PassingText* passing) {
  ObjectReader(array, max_depth, element, passing).read();
}

}  // namespace assay
