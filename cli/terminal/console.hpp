// What the user sees: lines, and on a terminal a block below them that is redrawn in place. Lines that are said while
// the block stands appear above it. While another program has the terminal, the block is away. Borrows its sinks.
// Neither blocks nor fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/process/sink.hpp"
#include "k8s/exec_plugin.hpp"

namespace haulout::cli {

class Console {
 public:
  // `text`: where results and progress go (stdout, or stderr when stdout carries the report alone).
  Console(agent::Sink& text, agent::Sink& errors) : text_(text), errors_(errors) {}

  void say(std::string_view line);
  void warn(std::string_view line);
  // Redraws the block; lines must not be wider than the terminal. No line: the block goes.
  void set_block(std::vector<std::string> lines);

  // Another program may use the terminal, until come_back().
  void step_aside();
  void come_back();
  // What it writes to stderr, as it comes.
  void pass_on(std::string_view text);

 private:
  std::string erased() const;
  std::string drawn() const;

  agent::Sink& text_;
  agent::Sink& errors_;
  std::vector<std::string> block_;
  bool aside_ = false;
  bool inside_a_line_ = false;  // of the other program's
};

// A credential plugin that speaks with a person does so there. Borrows the console.
k8s::PluginStage plugin_stage(Console& console);

}  // namespace haulout::cli
