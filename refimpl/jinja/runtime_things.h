// The objects that only a running template makes: macros, loops, `self`.
#pragma once

#include "refimpl/jinja/evaluator.h"
#include "refimpl/jinja/things.h"

namespace assay::jinja {

class MacroValue : public Thing {
 public:
  MacroValue(Evaluator& evaluator, const MacroBody& body, std::string name, bool named, ActivationPtr around,
             Context& context)
      : Thing(sizeof(MacroValue) + name.size()),
        evaluator_(evaluator),
        body_(body),
        name_(std::move(name)),
        named_(named),
        around_(std::move(around)),
        context_(context) {}
  std::string_view type_name() const override { return "Macro"; }
  std::string represent() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(Session& session, Arguments& arguments) const override;

 private:
  Evaluator& evaluator_;
  const MacroBody& body_;
  std::string name_;
  bool named_;
  ActivationPtr around_;
  Context& context_;
};

// The variable `loop`.
class LoopValue : public Thing, public std::enable_shared_from_this<LoopValue> {
 public:
  LoopValue(Evaluator& evaluator, const For& loop, ActivationPtr around, Value over, IteratorPtr iterator,
            int depth);
  std::string_view type_name() const override { return "LoopContext"; }
  std::string represent() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  std::optional<std::size_t> length() const override;
  IteratorPtr iterate() const override;
  bool callable() const override { return true; }
  Value call(Session& session, Arguments& arguments) const override;

  bool next(Value& item) const;
  Value cycle(const Values& items) const;
  bool changed(const Values& values) const;

 private:
  bool peek() const;
  Evaluator& evaluator_;
  const For& loop_;
  ActivationPtr around_;
  Value over_;
  mutable IteratorPtr iterator_;
  int depth_;
  mutable std::int64_t index_ = -1;
  mutable std::optional<std::int64_t> length_;
  mutable Value after_, current_, before_, last_changed_;
};

// `self`, whose attributes are the blocks.
class SelfValue : public Thing {
 public:
  SelfValue(Evaluator& evaluator, Context& context)
      : Thing(sizeof(SelfValue)), evaluator_(evaluator), context_(context) {}
  std::string_view type_name() const override { return "TemplateReference"; }
  std::string represent() const override { return "<TemplateReference None>"; }
  std::optional<Value> attribute(std::string_view name) const override;

 private:
  Evaluator& evaluator_;
  Context& context_;
};

}  // namespace assay::jinja
