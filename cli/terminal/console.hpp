// The user's terminal: its properties, and the output of lines and of a block that is redrawn in place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/process/process.hpp"
#include "k8s/credentials.hpp"
#include "k8s/exec_plugin.hpp"

namespace haulout::cli {

// The size of the terminal in columns and lines, and what it can show.
struct Terminal {
  std::size_t width = 80;
  std::size_t height = 24;
  bool utf8 = true;
  bool color = true;
};

// The functions below find out the properties of the terminal and the name of its user. They never fail: they return a
// default for what cannot be found out.

// Returns true if a live view can be shown on `fd`: it is a terminal that can move its cursor (TERM is set and not
// "dumb").
bool can_redraw(int fd, const k8s::Environment& environment);
// Returns the present size of the terminal on `fd`, and whether it shows colors (NO_COLOR) and UTF-8 (the locale),
// according to the environment.
Terminal measure_terminal(int fd, const k8s::Environment& environment);
// Returns "user@host", for the annotation that says who cordoned a node.
std::string user_at_host(const k8s::Environment& environment);

// Output for the user: lines and, on a terminal, a block below them that is redrawn in place. Lines that are printed
// while the block is shown appear above it. The block is hidden while another program uses the terminal. The methods
// neither block nor fail. Borrows the sinks.
class Console {
 public:
  // `text` receives results and progress: stdout, or stderr if stdout carries only the report. `errors` receives
  // warnings.
  Console(agent::Sink& text, agent::Sink& errors) : text_(text), errors_(errors) {}

  // say() prints a line to `text`, warn() to `errors`. Both add the line break.
  void say(std::string_view line);
  void warn(std::string_view line);
  // Draws the lines as the block, which stays below all printed lines. They must not be wider than the terminal. An
  // empty list removes the block.
  void set_block(std::vector<std::string> lines);

  // Hides the block until come_back(), so that another program (a credential plugin) can use the terminal.
  void step_aside();
  void come_back();
  // Writes to `errors`, unchanged, what the other program has written to its stderr. Call it while the block is hidden.
  void pass_on(std::string_view text);

 private:
  std::string erased() const;
  std::string drawn() const;

  agent::Sink& text_;
  agent::Sink& errors_;
  std::vector<std::string> block_;
  bool aside_ = false;
  bool inside_a_line_ = false;  // true if the other program's output so far does not end with a line break
};

// Returns callbacks that let a credential plugin use the terminal, for example to prompt for a password. They hide the
// block of the console until the plugin has ended. Borrows the console.
k8s::PluginStage plugin_stage(Console& console);

}  // namespace haulout::cli
