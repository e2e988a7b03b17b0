#include "k8s/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto time = k8s::parse_time(input);
  if (!time) return must(!time.error().message().empty(), "an error says what it is");
  const auto again = k8s::parse_time(k8s::format_micro_time(*time));
  must(again && *again == *time, "what is written is read again");
  const auto seconds = k8s::parse_time(k8s::format_time(*time));
  must(seconds && *seconds == std::chrono::floor<std::chrono::seconds>(*time),
       "whole seconds are cut off, not rounded");
}

static const Target target("time", one);

}  // namespace haulout::fuzz
