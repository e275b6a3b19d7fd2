// An Ops to which every operation comes through one template: derive, and say in call() what becomes of it.
//
//   class MyOps : public CallingOps<MyOps> {
//    public:
//     using CallingOps::CallingOps;
//     template <class Call> ResultOf<Call> call(const Call& call) { return run_reference(*this, call); }
//   };
#pragma once

#include "refimpl/ops/every_call.h"
#include "refimpl/ops/reference.h"

namespace assay {

// Overrides run() of each Call in the list, one class a Call.
template <class Derived, class Base, class List>
class CallingEach;
template <class Derived, class Base>
class CallingEach<Derived, Base, CallList<>> : public Base {
 public:
  using Base::Base;
};
template <class Derived, class Base, class Call, class... More>
class CallingEach<Derived, Base, CallList<Call, More...>>
    : public CallingEach<Derived, Base, CallList<More...>> {
  using Rest = CallingEach<Derived, Base, CallList<More...>>;

 public:
  using Rest::Rest;
  using Rest::run;
  ResultOf<Call> run(const Call& call) override { return static_cast<Derived&>(*this).call(call); }
};

template <class Derived, class Base = ReferenceOps>
class CallingOps : public CallingEach<Derived, Base, EveryCall> {
  using Each = CallingEach<Derived, Base, EveryCall>;

 public:
  using Each::Each;
};

}  // namespace assay
