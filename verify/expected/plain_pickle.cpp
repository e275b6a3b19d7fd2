#include "verify/expected/plain_pickle.h"

#include <vector>

namespace assay {
namespace {

constexpr std::size_t kMostValues = 1'000'000;
constexpr std::size_t kMostRecalled = 256u << 20;  // bytes of texts that stand once and are meant often
constexpr std::uint8_t kProtocol = 0x80, kFrame = 0x95, kMemoize = 0x94, kShortText = 0x8c, kTrue = 0x88,
                       kFalse = 0x89;

class PlainPickle {
 public:
  explicit PlainPickle(std::string_view bytes) : bytes_(bytes) {}

  std::optional<ParsedJson> read() {
    while (good_ && at_ < bytes_.size()) {
      const auto opcode = static_cast<std::uint8_t>(bytes_[at_++]);
      if (opcode == '.') {
        if (stack_.size() != 1 || !marks_.empty() || at_ != bytes_.size()) return std::nullopt;
        return std::move(stack_[0]);
      }
      step(opcode);
      if (++values_ > kMostValues) good_ = false;
    }
    return std::nullopt;
  }

 private:
  void step(std::uint8_t opcode) {
    switch (opcode) {
      case kProtocol: number(1); break;
      case kFrame: number(8); break;
      case kMemoize: remember(memo_.size()); break;
      case 'q': remember(number(1)); break;
      case 'r': remember(number(4)); break;
      case 'h': recall(number(1)); break;
      case 'j': recall(number(4)); break;
      case '}': stack_.push_back(ParsedJson::object()); break;
      case ']': stack_.push_back(ParsedJson::array()); break;
      case '(': marks_.push_back(stack_.size()); break;
      case kShortText: text(number(1)); break;
      case 'X': text(number(4)); break;
      case 'N': stack_.push_back(nullptr); break;
      case kTrue: stack_.push_back(true); break;
      case kFalse: stack_.push_back(false); break;
      case 'K': stack_.push_back(number(1)); break;
      case 'M': stack_.push_back(number(2)); break;
      case 'J': stack_.push_back(static_cast<std::int32_t>(number(4))); break;
      case 's': set_items(stack_.size() >= 3 ? stack_.size() - 2 : 0); break;
      case 'a': append(stack_.size() >= 2 ? stack_.size() - 1 : 0); break;
      case 'u': set_items(mark()); break;
      case 'e': append(mark()); break;
      default: good_ = false;
    }
  }

  std::uint64_t number(std::size_t bytes) {
    if (bytes_.size() - at_ < bytes) {
      good_ = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes_[at_ + i]);
    at_ += bytes;
    return value;
  }
  void text(std::uint64_t length) {
    if (!good_ || bytes_.size() - at_ < length) {
      good_ = false;
      return;
    }
    stack_.emplace_back(std::string(bytes_.substr(at_, length)));
    at_ += length;
  }
  // Lists and dictionaries are remembered before they are filled; only texts and numbers may be called for again.
  void remember(std::uint64_t place) {
    if (stack_.empty() || place > memo_.size() || !good_) {
      good_ = false;
      return;
    }
    const ParsedJson kept = stack_.back().is_structured() ? ParsedJson() : stack_.back();
    if (place == memo_.size())
      memo_.push_back(kept);
    else
      memo_[place] = kept;
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size() || memo_[place].is_null()) {
      good_ = false;
      return;
    }
    if (memo_[place].is_string()) recalled_ += memo_[place].get_ref<const std::string&>().size();
    if (recalled_ > kMostRecalled) {
      good_ = false;
      return;
    }
    stack_.push_back(memo_[place]);
  }
  // The place of the last mark, which is taken away; 0: there is none.
  std::size_t mark() {
    if (marks_.empty()) return 0;
    const std::size_t at = marks_.back();
    marks_.pop_back();
    return at;
  }
  void set_items(std::size_t first) {
    if (first == 0 || first > stack_.size() || !stack_[first - 1].is_object() ||
        (stack_.size() - first) % 2 != 0) {
      good_ = false;
      return;
    }
    for (std::size_t i = first; i < stack_.size(); i += 2) {
      if (!stack_[i].is_string()) {
        good_ = false;
        return;
      }
      stack_[first - 1][stack_[i].get<std::string>()] = std::move(stack_[i + 1]);
    }
    stack_.resize(first);
  }
  void append(std::size_t first) {
    if (first == 0 || first > stack_.size() || !stack_[first - 1].is_array()) {
      good_ = false;
      return;
    }
    for (std::size_t i = first; i < stack_.size(); ++i) stack_[first - 1].push_back(std::move(stack_[i]));
    stack_.resize(first);
  }

  const std::string_view bytes_;
  std::size_t at_ = 0, values_ = 0, recalled_ = 0;
  bool good_ = true;
  std::vector<ParsedJson> stack_, memo_;
  std::vector<std::size_t> marks_;
};

}  // namespace

std::optional<ParsedJson> read_plain_pickle(std::string_view bytes) {
  return PlainPickle(bytes).read();
}

}  // namespace assay
