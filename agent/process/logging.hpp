// The log for debugging: text or JSON lines on stderr. It never contains credentials: callers log methods, targets and
// status codes, not headers or bodies. The log passes each line, without its line break, to `write`. One instance per
// program. Borrows the clock. Never fails.
//
// If the program is a service whose stderr is the journal's stream, each line begins with its priority as in
// sd-daemon(3), so that `journalctl -p` selects it. Text lines then have no time, because the journal records it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::agent {

enum class LogFormat { text, json };

enum class Severity { debug, info, notice, warning, error };
std::string_view to_string(Severity severity);

// Returns the prefix of a line for the journal, for example "<4>".
std::string_view journal_priority(Severity severity);
// Returns true if the descriptor is the stream that systemd names in $JOURNAL_STREAM ("device:inode").
bool is_journal(const std::string& journal_stream, int descriptor);

struct LogOptions {
  LogFormat format = LogFormat::text;
  unsigned verbosity = 0;  // 0: notices, warnings and errors; 1: info, too; 2 and more: everything
  bool to_journal = false;
};

class Log {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  Log(LogOptions options, Clock& clock, std::function<void(const std::string& line)> write);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool enabled(Severity severity) const { return severity >= threshold_; }
  void write(Severity severity, std::string_view message, const Fields& fields = {});

 private:
  class Impl;
  Severity threshold_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::agent
