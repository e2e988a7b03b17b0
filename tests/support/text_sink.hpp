// A sink that keeps the written text in memory. Never fails.
#pragma once

#include <string>
#include <string_view>

#include "agent/process/process.hpp"

namespace haulout::testing {

struct TextSink final : agent::Sink {
  std::string text;
  void write(std::string_view more) override { text += more; }
};

}  // namespace haulout::testing
